"""mica.nn.utils: gradient clipping, flat parameter vectors, reparametrisation, sequences."""

from typing import Any

from mica.nn.utils import (
    fusion as fusion,
    parametrizations as parametrizations,
    parametrize as parametrize,
    prune as prune,
    rnn as rnn,
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
    """clip_grad_norm_() by its old name."""
    import warnings

    text = "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are not initialised."""
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


def _convert_weights(module: Any, memory_format: Any, kinds: tuple[str, ...]) -> Any:
    for m in module.modules():
        if type(m).__name__ in kinds:
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """The module, with the weights of its convolutions of two dimensions in a memory format."""
    return _convert_weights(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """The module, with the weights of its convolutions of three dimensions in a memory format."""
    return _convert_weights(module, memory_format, ("Conv3d", "ConvTranspose3d"))
