"""mica.utils.data: datasets, samplers, and a loader with worker processes."""

from mica.utils.data._dataset import (
    ChainDataset as ChainDataset,
    ConcatDataset as ConcatDataset,
    Dataset as Dataset,
    IterableDataset as IterableDataset,
    StackDataset as StackDataset,
    Subset as Subset,
    TensorDataset as TensorDataset,
    random_split as random_split,
)
from mica.utils.data._loader import (
    DataLoader as DataLoader,
    default_collate as default_collate,
    default_convert as default_convert,
)
from mica.utils.data._samplers import (
    BatchSampler as BatchSampler,
    DistributedSampler as DistributedSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequentialSampler as SequentialSampler,
    SubsetRandomSampler as SubsetRandomSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)
from mica.utils.data._workers import (
    WorkerInfo as WorkerInfo,
    get_worker_info as get_worker_info,
)
