"""What goes wrong among ranks, under the names of torch.distributed."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError"]


class DistError(RuntimeError):
    """The base of this module's errors. As `torch.distributed.DistError`."""


class DistBackendError(DistError):
    """An engine failed. As `torch.distributed.DistBackendError`."""


class DistNetworkError(DistError):
    """A connection was refused or broke. As `torch.distributed.DistNetworkError`."""


class DistStoreError(DistError):
    """A store did not get a key in time. As `torch.distributed.DistStoreError`."""
