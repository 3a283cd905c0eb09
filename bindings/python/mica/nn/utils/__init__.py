"""mica.nn.utils: gradient clipping, flat parameter vectors, reparametrisation, sequences."""

from typing import Any

from mica.nn.utils import (
    fusion as fusion,
    parametrizations as parametrizations,
    parametrize as parametrize,
    prune as prune,
    rnn as rnn,
    stateless as stateless,
)
from mica.nn.utils._gradients import (
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
    clip_grads_with_norm_ as clip_grads_with_norm_,
    get_total_norm as get_total_norm,
    parameters_to_vector as parameters_to_vector,
    vector_to_parameters as vector_to_parameters,
)
from mica.nn.utils._spectral_norm import (
    remove_spectral_norm as remove_spectral_norm,
    spectral_norm as spectral_norm,
)
from mica.nn.utils._weight_norm import (
    remove_weight_norm as remove_weight_norm,
    weight_norm as weight_norm,
)
from mica.nn.utils.fusion import (
    fuse_conv_bn_eval as fuse_conv_bn_eval,
    fuse_conv_bn_weights as fuse_conv_bn_weights,
    fuse_linear_bn_eval as fuse_linear_bn_eval,
    fuse_linear_bn_weights as fuse_linear_bn_weights,
)


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """`clip_grad_norm_` by its old name, which warns.

    As `torch.nn.utils.clip_grad_norm`.

    Args:
        parameters (Tensor or iterable of Tensor): As for `clip_grad_norm_`.
        max_norm (float): The norm that the gradients shall have at most.
        norm_type (float): Order of the norm. Default: 2.
        error_if_nonfinite (bool): Raise where the norm is infinite or NaN. Default: False.
        foreach (bool, optional): Without effect.

    Returns:
        Tensor: The norm before, `()`.

    Raises:
        RuntimeError: The norm is not finite, and `error_if_nonfinite` is True.

    Warns:
        FutureWarning: Always.

    Example:
        >>> import warnings
        >>> weight = mica.zeros(2, requires_grad=True)
        >>> weight.grad = mica.tensor([3.0, 4.0])
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     mica.nn.utils.clip_grad_norm(weight, 1.0)
        tensor(5.)
    """
    import warnings

    text = "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are not initialised: their values are arbitrary.

    As `torch.nn.utils.skip_init`: saves the time of drawing weights that a state dict replaces at once. The
    module is made on the device `meta`, which computes nothing, and then given memory.

    Args:
        module_cls (type): A class of modules that takes `device` by name.
        *args: For the class.
        **kwargs: For the class; `device` is where the module shall be, by default the CPU.

    Returns:
        Module: An instance of the class.

    Raises:
        TypeError: The class takes no `device`.

    Example:
        >>> layer = mica.nn.utils.skip_init(mica.nn.Linear, 2, 3)
        >>> layer.load_state_dict({"weight": mica.ones(3, 2), "bias": mica.zeros(3)})
        <All keys matched successfully>
        >>> layer(mica.ones(2)).detach()
        tensor([2., 2., 2.])
    """
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


def _convert_weights(module: Any, memory_format: Any, kinds: tuple[str, ...]) -> Any:
    for m in module.modules():
        if type(m).__name__ in kinds:
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Puts the weights of all `Conv2d` and `ConvTranspose2d` within a module into a memory format, in place.

    As `torch.nn.utils.convert_conv2d_weight_memory_format`.

    Args:
        module (Module): Looked through with all that is below it.
        memory_format (memory_format): `mica.channels_last` or `mica.contiguous_format`.

    Returns:
        Module: `module`.

    Example:
        >>> model = mica.nn.Sequential(mica.nn.Conv2d(2, 3, 2))
        >>> _ = mica.nn.utils.convert_conv2d_weight_memory_format(model, mica.channels_last)
        >>> model[0].weight.is_contiguous(memory_format=mica.channels_last)
        True
    """
    return _convert_weights(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Puts the weights of all `Conv3d` and `ConvTranspose3d` within a module into a memory format, in place.

    As `torch.nn.utils.convert_conv3d_weight_memory_format`.

    Args:
        module (Module): Looked through with all that is below it.
        memory_format (memory_format): `mica.channels_last_3d` or `mica.contiguous_format`.

    Returns:
        Module: `module`.

    Example:
        >>> model = mica.nn.Sequential(mica.nn.Conv3d(2, 3, 2))
        >>> _ = mica.nn.utils.convert_conv3d_weight_memory_format(model, mica.channels_last_3d)
        >>> model[0].weight.is_contiguous(memory_format=mica.channels_last_3d)
        True
    """
    return _convert_weights(module, memory_format, ("Conv3d", "ConvTranspose3d"))
