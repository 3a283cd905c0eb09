"""A program's own backend, as torch calls PrivateUse1: its name, and the methods that are called as it."""

from __future__ import annotations

from typing import Any

from mica import _C


def rename_privateuse1_backend(backend_name: str) -> None:
    """Says which backend is the program's own: the one that "PrivateUse1" stands for.

    As `torch.utils.rename_privateuse1_backend`. The backend may be any that a plugin provides, or a name that is
    new: then devices of it can be spelled, and kernels registered for it, and there is none until a plugin or
    `mica.library.register_device()` provides it. Where it has a device, it is the accelerator
    (`mica.accelerator`), whatever other backends are loaded.

    Args:
        backend_name (str): The backend's name.

    Raises:
        ValueError: It is no name of a backend: letters, digits, "_", "-" and ".", beginning with a letter.

    Example:
        >>> mica.utils.rename_privateuse1_backend("npu")
        >>> lib = mica.library.Library("npu_ops", "DEF")
        >>> _ = lib.define("twice(Tensor x) -> Tensor")
        >>> lib.impl("twice", lambda x: x + x, "PrivateUse1")  # the backend "npu"
    """
    _C._rename_private_backend(backend_name)


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: list[Any] | None = None,
) -> None:
    """Does nothing: every backend that is known has its methods, x.npu(), x.is_npu, module.npu() and so on.

    As `torch.utils.generate_methods_for_privateuse1_backend`.

    Args:
        for_tensor (bool): Ignored. Default: True.
        for_module (bool): Ignored. Default: True.
        for_packed_sequence (bool): Ignored. Default: True.
        for_storage (bool): Ignored. Default: False.
        unsupported_dtype (list of dtype, optional): Ignored; a backend refuses what it lacks. Default: None.

    Example:
        >>> mica.utils.rename_privateuse1_backend("npu")
        >>> mica.utils.generate_methods_for_privateuse1_backend()
        >>> mica.ones(2).is_npu
        False
    """
