"""mica.utils.data: datasets, samplers, and a loader with worker processes."""

from mica.utils.data._collate import (
    collate as collate,
    default_collate as default_collate,
    default_collate_fn_map as default_collate_fn_map,
    default_convert as default_convert,
)
from mica.utils.data._datapipe import (
    DataChunk as DataChunk,
    DFIterDataPipe as DFIterDataPipe,
    IterDataPipe as IterDataPipe,
    MapDataPipe as MapDataPipe,
    functional_datapipe as functional_datapipe,
)
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
from mica.utils.data._fetch import _DatasetKind as _DatasetKind
from mica.utils.data._loader import (
    DataLoader as DataLoader,
    _BaseDataLoaderIter as _BaseDataLoaderIter,
    _InfiniteConstantSampler as _InfiniteConstantSampler,
    _MultiProcessingDataLoaderIter as _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter as _SingleProcessDataLoaderIter,
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

from mica.utils.data import datapipes as datapipes  # isort: skip (made of the above)
