"""Pruning: masks over parameters. `name` is computed of `name`_orig and the buffer `name`_mask
before each forward."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import mica
from mica._C import Tensor


class BasePruningMethod:
    """A way to choose what is pruned: compute_mask(t, default_mask) gives the new mask."""

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask over `t`, of which `default_mask` has pruned a part."""
        raise NotImplementedError(f"{type(self).__name__} defines no compute_mask().")

    def apply_mask(self, module: Any) -> Tensor:
        """The masked tensor."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original  # type: ignore[no-any-return]

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prunes the tensor `name`; what was pruned of it before stays so."""
        found = [
            (k, h)
            for k, h in module._forward_pre_hooks.items()
            if isinstance(h, BasePruningMethod) and h._tensor_name == name
        ]
        old = None
        for number, hook in found:
            old = hook
            del module._forward_pre_hooks[number]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old is None:
            original = getattr(module, name)
            default = mica.ones_like(original)
            module.register_parameter(name + "_orig", module._parameters.pop(name))
        else:
            original = getattr(module, name + "_orig")
            default = getattr(module, name + "_mask").detach().clone()
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        hook = method
        if old is not None:
            hook = PruningContainer(old)
            hook.add_pruning_method(method)
        with mica.no_grad():
            mask = hook.compute_mask(scores, default_mask=default)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Any = None) -> Tensor:
        """A pruned copy of a tensor."""
        scores = t if importance_scores is None else importance_scores
        default = mica.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Makes the masked tensor the parameter for good."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.detach()
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other, each on what the others left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method of the same tensor."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if getattr(self, "_tensor_name", method._tensor_name) != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._tensor_name = method._tensor_name
        members = method._pruning_methods if isinstance(method, PruningContainer) else (method,)
        self._pruning_methods += tuple(members)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
            part = method.compute_mask(t[left], default_mask=mask[left])
            new = mask.clone()
            new[left] = part.to(mask.dtype)
            return new
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask=mask)  # type: ignore[no-any-return]
        dim = method.dim % t.dim()
        kept = [i for i in range(t.shape[dim]) if mask.select(dim, i).any()]
        index = mica.tensor(kept)
        part = method.compute_mask(t.index_select(dim, index), mask.index_select(dim, index))
        return mask.index_copy(dim, index, part.to(mask.dtype))


class Identity(BasePruningMethod):
    """Prunes nothing, and makes mask and original."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


def _count(amount: Any, size: int) -> int:
    """How many of `size` an amount is: a share of 1, or a number."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    integral = isinstance(amount, numbers.Integral)
    if (integral and amount < 0) or (not integral and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )
    if integral and int(amount) > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount) if integral else round(float(amount) * size)


class _OfAmount(BasePruningMethod):
    def __init__(self, amount: Any) -> None:
        _count(amount, 1 << 62)
        self.amount = amount


class RandomUnstructured(_OfAmount):
    """Prunes elements drawn at random."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            draw = mica.rand_like(t)
            mask.view(-1)[mica.topk(draw.view(-1), k=count).indices] = 0
        return mask


class L1Unstructured(_OfAmount):
    """Prunes the elements of the smallest magnitude."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[mica.topk(mica.abs(t).view(-1), k=count, largest=False).indices] = 0
        return mask


def _channels(t: Tensor, default_mask: Tensor, dim: int, keep: Tensor) -> Tensor:
    mask = mica.zeros_like(t)
    places: list[Any] = [slice(None)] * t.dim()
    places[dim] = keep
    mask[tuple(places)] = 1
    return mask * default_mask.to(mask.dtype)


class RandomStructured(_OfAmount):
    """Prunes channels along `dim` drawn at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        draw = mica.rand(size)
        threshold = mica.kthvalue(draw, k=count).values
        return _channels(t, default_mask, self.dim, draw > threshold)


class LnStructured(_OfAmount):
    """Prunes the channels along `dim` of the smallest L`n` norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = mica.norm(t, p=self.n, dim=others)
        kept = mica.topk(norms, k=size - count, largest=True).indices
        return _channels(t, default_mask, self.dim, kept)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Makes mask and original, and prunes nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes elements drawn at random: a share, or a number of them."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the elements of the smallest magnitude."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes channels along `dim` drawn at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prunes the channels along `dim` of the smallest L`n` norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes by a mask that is given."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes (module, name) pairs as if they were one tensor."""
    pairs = list(parameters)
    given = importance_scores or {}
    scores = [given.get((m, n), getattr(m, n)).detach().reshape(-1) for m, n in pairs]
    masks = [getattr(m, n + "_mask", mica.ones_like(getattr(m, n))).reshape(-1) for m, n in pairs]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found {pruning_method}'
        )
    container.add_pruning_method(method)
    final = container.compute_mask(mica.cat(scores), mica.cat(masks))
    start = 0
    for module, name in pairs:
        size = getattr(module, name).numel()
        custom_from_mask(module, name, final[start : start + size].view_as(getattr(module, name)))
        start += size


def remove(module: Any, name: str) -> Any:
    """Makes the masked tensor the parameter for good."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether the module or one below it is pruned."""
    hooks = (h for _, m in module.named_modules() for h in m._forward_pre_hooks.values())
    return any(isinstance(h, BasePruningMethod) for h in hooks)
