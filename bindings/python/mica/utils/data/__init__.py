"""mica.utils.data: datasets, samplers, and a loader with worker processes."""

from mica.utils.data._dataset import (  # noqa: F401
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from mica.utils.data._loader import DataLoader, default_collate, default_convert  # noqa: F401
from mica.utils.data._samplers import (  # noqa: F401
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
)
from mica.utils.data._workers import WorkerInfo, get_worker_info  # noqa: F401
