"""A gradient for each sample of a batch, as `grad_sample` of a module's parameters.

`call_for_per_sample_grads(module)` gives a function that is called as the module is. The module runs
under vmap, each sample with weights of its own that are all the module's: what reaches these weights
in backward is the gradient of each sample. Opacus and what is built on it call this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mica._C import Tensor
from mica.func import functional_call, vmap
from mica.nn.modules.module import Module
from mica.utils._pytree import tree_flatten, tree_map, tree_unflatten


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """A module's call whose backward gives every parameter a gradient for each sample, `grad_sample`.

    As `torch.nn.utils._per_sample_grad.call_for_per_sample_grads`. `grad_sample` is `(N, *parameter.shape)`;
    `grad` stays as it was.

    Args:
        module (Module): Computes each sample by itself (no batch norm in training).
        batch_size (int, optional): Of the inputs, `N`. Default: None, which looks at their tensors.
        loss_reduction (str): How the loss was reduced over samples, `sum` or `mean`; for `mean` the gradients
            are those of the sum. Default: `sum`.
        batch_first (bool): Samples are along the first dimension of inputs and outputs, else along the
            second. Default: True.

    Returns:
        callable: Called as the module is.

    Raises:
        RuntimeError: `module` is no module, `batch_size` no positive int, the reduction unknown, or a
            parameter has `grad_sample` already.

    Example:
        >>> from mica.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer = mica.nn.Linear(2, 1)
        >>> call_for_per_sample_grads(layer)(mica.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        >>> layer.weight.grad_sample.flatten(1)
        tensor([[1., 2.],
                [3., 4.]])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"The loss_reduction ({loss_reduction}) is unknown; expected 'sum' or 'mean'.")
    if not isinstance(module, Module):
        raise RuntimeError(f"The module is no nn.Module; it is a ({type(module).__name__}).")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"The batch_size ({batch_size!r}) is no int.")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"The batch_size ({batch_size}) is not positive.")
    for name, p in module.named_parameters():
        if getattr(p, "grad_sample", None) is not None:
            raise RuntimeError(
                f"Parameter ({name}) holds grad_sample of an earlier backward; set it to None first."
            )

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        place = 0 if batch_first else 1
        count = batch_size or _batch((args, kwargs), place)
        rows = {n: _rows(p, count, loss_reduction) for n, p in module.named_parameters() if p.requires_grad}

        leaves, spec = tree_flatten((args, kwargs))
        of = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.dim() > place]

        def sample(own: dict[str, Tensor], *inputs: Tensor) -> Any:
            given = list(leaves)
            for i, x in zip(of, inputs):
                given[i] = x.unsqueeze(place)
            args, kwargs = tree_unflatten(given, spec)
            return tree_map(lambda y: y.squeeze(place), functional_call(module, own, args, kwargs))

        places = (0, *(place for _ in of))
        return vmap(sample, places, place, randomness="different")(rows, *(leaves[i] for i in of))

    return call


def _batch(inputs: Any, place: int) -> int:
    sizes = {x.shape[place] for x in tree_flatten(inputs)[0] if isinstance(x, Tensor) and x.dim() > place}
    if len(sizes) != 1:
        raise RuntimeError(
            f"The inputs have no one size ({sorted(sizes)}) in dimension ({place}), where the samples lie; give batch_size."
        )
    return int(sizes.pop())


def _rows(parameter: Tensor, count: int, loss_reduction: str) -> Tensor:
    """The parameter once for each sample, with a hook that takes what reaches them."""
    rows = parameter.detach().repeat(count, *(1 for _ in parameter.shape)).requires_grad_()

    def take(grad: Tensor) -> None:
        found = grad * count if loss_reduction == "mean" else grad
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = found.detach() if before is None else before + found.detach()  # type: ignore[attr-defined]

    rows.register_hook(take)
    return rows
