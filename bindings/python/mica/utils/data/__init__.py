"""mica.utils.data: datasets, samplers and a loader in the calling process."""

from mica.utils.data._dataset import Dataset, Subset, TensorDataset, random_split  # noqa: F401
from mica.utils.data._loader import DataLoader, default_collate  # noqa: F401
