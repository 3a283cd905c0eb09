"""Pruning: masks over parameters. `name` is computed of `name`_orig and the buffer `name`_mask
before each forward."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import mica
from mica._C import Tensor


class BasePruningMethod:
    """A way to choose which elements of a parameter are pruned; subclasses define `compute_mask`.

    As `torch.nn.utils.prune.BasePruningMethod`. An object of it is a hook of the pruned module, which
    multiplies the parameter `name_orig` by the buffer `name_mask` before each call and puts the product at
    `name`.

    Attributes:
        PRUNING_TYPE (str): `unstructured` (`compute_mask` sees the elements that are left, as a vector),
            `structured` (it sees the channels that are left) or `global` (it sees all).

    Example:
        >>> from mica.nn.utils import prune
        >>> class Small(prune.BasePruningMethod):
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t.abs() >= 2)
        >>> Small().prune(mica.tensor([1.0, -2.0, 3.0]))
        tensor([ 0., -2.,  3.])
    """

    _tensor_name: str
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Chooses what stays: the method that subclasses define.

        Args:
            t (Tensor): The parameter, or the importance of its elements.
            default_mask (Tensor): Of its shape: 1 for what is left, 0 for what is pruned.

        Returns:
            Tensor: The new mask, of that shape.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no compute_mask().")

    def apply_mask(self, module: Any) -> Tensor:
        """The masked parameter of a module.

        Args:
            module (Module): It is pruned by this object.

        Returns:
            Tensor: `name_mask * name_orig`.
        """
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original  # type: ignore[no-any-return]

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prunes a parameter of a module by a method of this class; what was pruned of it before stays so.

        Args:
            module (Module): Changed in place.
            name (str): Of the parameter.
            *args: Those of the class.
            importance_scores (Tensor, optional): By which elements are chosen, of the parameter's shape.
                Default: None, which takes the parameter.
            **kwargs: Those of the class.

        Returns:
            BasePruningMethod: The hook: the method, or a `PruningContainer` where the parameter was pruned
            before.

        Raises:
            AttributeError: The module has no parameter `name`.
            AssertionError: The scores have another shape than the parameter.
        """
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
        """A pruned copy of a tensor that belongs to no module.

        Args:
            t (Tensor): Of any shape.
            default_mask (Tensor, optional): Of its shape: 0 for what is pruned already. Default: None,
                nothing is.
            importance_scores (Tensor, optional): By which elements are chosen, of its shape. Default: None,
                which takes `t`.

        Returns:
            Tensor: `t` with zeros.
        """
        scores = t if importance_scores is None else importance_scores
        default = mica.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Makes the masked tensor the parameter for good; `prune.remove` takes the hook off, too.

        Args:
            module (Module): It is pruned by this object; changed in place.
        """
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.detach()
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one parameter, one after the other, each on what the others left.

    As `torch.nn.utils.prune.PruningContainer`: the hook of a parameter that was pruned more than once. It has
    a length, an iterator and indices.

    Args:
        *args (BasePruningMethod): The methods, or one iterable of them.

    Raises:
        TypeError: One is no pruning method.
        ValueError: They are of different parameters.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(3, 2)
        >>> _ = prune.L1Unstructured.apply(layer, "weight", 2)
        >>> hook = prune.RandomUnstructured.apply(layer, "weight", 1)
        >>> type(hook).__name__, len(hook), int(layer.weight_mask.sum())
        ('PruningContainer', 2, 3)
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        if len(args) == 1 and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method of the same parameter behind the others.

        Args:
            method (BasePruningMethod): The method that is applied after those that are there.

        Raises:
            TypeError: It is no pruning method.
            ValueError: It is of another parameter.
        """
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
    """Prunes nothing: the module gets the mask, all ones, and the original.

    As `torch.nn.utils.prune.Identity`.

    Example:
        >>> from mica.nn.utils import prune
        >>> prune.Identity().prune(mica.ones(2))
        tensor([1., 1.])
    """

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
    """Prunes elements drawn at random.

    As `torch.nn.utils.prune.RandomUnstructured`.

    Args:
        amount (float or int): The share, in [0, 1], or the number of elements to prune, of those left.

    Raises:
        ValueError: `amount` is out of its range or above what is left.
        TypeError: `amount` is no number.

    Example:
        >>> from mica.nn.utils import prune
        >>> int(prune.RandomUnstructured(0.5).prune(mica.ones(8)).sum())
        4
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            draw = mica.rand_like(t)
            mask.view(-1)[mica.topk(draw.view(-1), k=count).indices] = 0
        return mask


class L1Unstructured(_OfAmount):
    """Prunes the elements of the smallest magnitude.

    As `torch.nn.utils.prune.L1Unstructured`.

    Args:
        amount (float or int): The share, in [0, 1], or the number of elements to prune, of those left.

    Raises:
        ValueError: `amount` is out of its range or above what is left.
        TypeError: `amount` is no number.

    Example:
        >>> from mica.nn.utils import prune
        >>> prune.L1Unstructured(2).prune(mica.tensor([1.0, -3.0, 2.0]))
        tensor([ 0., -3.,  0.])
    """

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[mica.topk(mica.abs(t).view(-1), k=count, largest=False).indices] = 0
        return mask


def _channel_count(t: Tensor, dim: int) -> int:
    """How many channels a tensor has along `dim`, of which structured pruning takes some."""
    if t.dim() < 2:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors; this one has the shape {tuple(t.shape)}."
        )
    return t.shape[dim]


def _channels(t: Tensor, default_mask: Tensor, dim: int, keep: Tensor) -> Tensor:
    mask = mica.zeros_like(t)
    places: list[Any] = [slice(None)] * t.dim()
    places[dim] = keep
    mask[tuple(places)] = 1
    return mask * default_mask.to(mask.dtype)


class RandomStructured(_OfAmount):
    """Prunes whole channels, drawn at random.

    As `torch.nn.utils.prune.RandomStructured`.

    Args:
        amount (float or int): The share, in [0, 1], or the number of channels to prune, of those left.
        dim (int): The dimension whose entries are the channels. Default: -1.

    Raises:
        ValueError: `amount` is out of its range or, in use, above what is left, or the parameter has fewer
            than 2 dimensions.
        TypeError: `amount` is no number.

    Example:
        >>> from mica.nn.utils import prune
        >>> prune.RandomStructured(1, dim=0).prune(mica.ones(3, 2)).sum()
        tensor(4.)
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        size = _channel_count(t, self.dim)
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        draw = t.new_empty((size,), dtype=mica.get_default_dtype()).uniform_()
        threshold = mica.kthvalue(draw, k=count).values
        return _channels(t, default_mask, self.dim, draw > threshold)


class LnStructured(_OfAmount):
    """Prunes the whole channels of the smallest norm.

    As `torch.nn.utils.prune.LnStructured`.

    Args:
        amount (float or int): The share, in [0, 1], or the number of channels to prune, of those left.
        n (float): Order of the norm, a number, `inf` and `-inf` too.
        dim (int): The dimension whose entries are the channels. Default: -1.

    Raises:
        ValueError: `amount` is out of its range or, in use, above what is left, or the parameter has fewer
            than 2 dimensions.
        TypeError: `amount` is no number.

    Example:
        >>> from mica.nn.utils import prune
        >>> prune.LnStructured(1, n=2, dim=0).prune(mica.tensor([[1.0, 1.0], [2.0, 0.0]]))
        tensor([[0., 0.],
                [2., 0.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        size = _channel_count(t, self.dim)
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = mica.norm(t, p=self.n, dim=others)
        kept = mica.topk(norms, k=size - count, largest=True).indices
        return _channels(t, default_mask, self.dim, kept)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given.

    As `torch.nn.utils.prune.CustomFromMask`.

    Args:
        mask (Tensor): Of the parameter's shape: 1 for what stays, 0 for what is pruned.

    Raises:
        AssertionError: In use, the mask has another shape than the parameter.

    Example:
        >>> from mica.nn.utils import prune
        >>> prune.CustomFromMask(mica.tensor([1, 0])).prune(mica.ones(2))
        tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.mask.shape != default_mask.shape:
            raise AssertionError(
                f"Shape {tuple(self.mask.shape)} of the given mask is not {tuple(default_mask.shape)}."
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Gives a parameter a mask of ones, and prunes nothing.

    As `torch.nn.utils.prune.identity`. The module gets the parameter `name_orig` and the buffer `name_mask`;
    `name` is their product, computed before each call.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.

    Returns:
        Module: `module`.

    Raises:
        AttributeError: The module has no parameter `name`.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(4, 2)
        >>> prune.identity(layer, "weight").weight_mask.sum()
        tensor(8.)
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes elements of a parameter, drawn at random.

    As `torch.nn.utils.prune.random_unstructured`. The module gets the parameter `name_orig` and the buffer
    `name_mask`; `name` is their product, computed before each call.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.
        amount (float or int): The share, in [0, 1], or the number of elements to prune, of those left.

    Returns:
        Module: `module`.

    Raises:
        AttributeError: The module has no parameter `name`.
        ValueError: `amount` is out of its range or above what is left.
        TypeError: `amount` is no number.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(4, 2)
        >>> int(prune.random_unstructured(layer, "weight", amount=0.25).weight_mask.sum())
        6
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the elements of a parameter of the smallest magnitude.

    As `torch.nn.utils.prune.l1_unstructured`. The module gets the parameter `name_orig` and the buffer
    `name_mask`; `name` is their product, computed before each call.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.
        amount (float or int): The share, in [0, 1], or the number of elements to prune, of those left.
        importance_scores (Tensor, optional): By which elements are chosen, of the parameter's shape. Default:
            None, which takes the parameter.

    Returns:
        Module: `module`.

    Raises:
        AttributeError: The module has no parameter `name`.
        ValueError: `amount` is out of its range or above what is left.
        TypeError: `amount` is no number.
        AssertionError: The scores have another shape than the parameter.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(4, 2)
        >>> int((prune.l1_unstructured(layer, "weight", amount=3).weight == 0).sum())
        3
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes whole channels of a parameter, drawn at random.

    As `torch.nn.utils.prune.random_structured`. The module gets the parameter `name_orig` and the buffer
    `name_mask`; `name` is their product, computed before each call.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.
        amount (float or int): The share, in [0, 1], or the number of channels to prune, of those left.
        dim (int): The dimension whose entries are the channels.

    Returns:
        Module: `module`.

    Raises:
        AttributeError: The module has no parameter `name`.
        ValueError: `amount` is out of its range or above what is left, or the parameter has fewer than 2
            dimensions.
        TypeError: `amount` is no number.
        IndexError: The parameter has no dimension `dim`.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(4, 2)
        >>> int(prune.random_structured(layer, "weight", amount=1, dim=0).weight_mask.sum())
        4
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prunes the whole channels of a parameter of the smallest norm.

    As `torch.nn.utils.prune.ln_structured`. The module gets the parameter `name_orig` and the buffer
    `name_mask`; `name` is their product, computed before each call.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.
        amount (float or int): The share, in [0, 1], or the number of channels to prune, of those left.
        n (float): Order of the norm, a number, `inf` and `-inf` too.
        dim (int): The dimension whose entries are the channels.
        importance_scores (Tensor, optional): By which elements are chosen, of the parameter's shape. Default:
            None, which takes the parameter.

    Returns:
        Module: `module`.

    Raises:
        AttributeError: The module has no parameter `name`.
        ValueError: `amount` is out of its range or above what is left, or the parameter has fewer than 2
            dimensions.
        TypeError: `amount` is no number.
        IndexError: The parameter has no dimension `dim`.
        AssertionError: The scores have another shape than the parameter.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(4, 2)
        >>> _ = mica.nn.init.eye_(layer.weight)
        >>> prune.ln_structured(layer, "weight", amount=0.5, n=2, dim=1).weight_mask
        tensor([[1., 1., 0., 0.],
                [1., 1., 0., 0.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes a parameter by a mask that is given.

    As `torch.nn.utils.prune.custom_from_mask`. The module gets the parameter `name_orig` and the buffer
    `name_mask`; `name` is their product, computed before each call.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.
        mask (Tensor): Of the parameter's shape: 1 for what stays, 0 for what is pruned.

    Returns:
        Module: `module`.

    Raises:
        AttributeError: The module has no parameter `name`.
        AssertionError: The mask has another shape than the parameter.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = mica.nn.Linear(4, 2)
        >>> prune.custom_from_mask(layer, "bias", mica.tensor([1, 0])).bias_mask
        tensor([1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prunes several parameters as if they were one tensor, so that some lose more than others.

    As `torch.nn.utils.prune.global_unstructured`.

    Args:
        parameters (iterable of (Module, str)): Modules, changed in place, and names of parameters of theirs.
        pruning_method (type): A class of unstructured methods, as `L1Unstructured`.
        importance_scores (dict of (Module, str) to Tensor, optional): By which elements are chosen. Default:
            None, which takes the parameters.
        **kwargs: Those of the class, as `amount`.

    Raises:
        TypeError: The method is not unstructured, or `parameters` is no iterable.
        ValueError: `parameters` is empty, or `amount` is out of its range or above what is left.

    Example:
        >>> from mica.nn.utils import prune
        >>> first, second = mica.nn.Linear(2, 2), mica.nn.Linear(2, 2)
        >>> pairs = [(first, "weight"), (second, "weight")]
        >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
        >>> int(first.weight_mask.sum() + second.weight_mask.sum())
        5
    """
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
    """Makes a pruned parameter a plain one for good, with zeros where it was pruned.

    As `torch.nn.utils.prune.remove`. Training may change the zeros afterwards.

    Args:
        module (Module): Changed in place.
        name (str): Of the parameter.

    Returns:
        Module: `module`.

    Raises:
        ValueError: The parameter is not pruned.

    Example:
        >>> from mica.nn.utils import prune
        >>> layer = prune.l1_unstructured(mica.nn.Linear(3, 2), "weight", amount=4)
        >>> int((prune.remove(layer, "weight").weight == 0).sum()), prune.is_pruned(layer)
        (4, False)
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned.

    As `torch.nn.utils.prune.is_pruned`.

    Args:
        module (Module): The module that is looked at.

    Returns:
        bool: The answer.

    Example:
        >>> from mica.nn.utils import prune
        >>> prune.is_pruned(mica.nn.Sequential(mica.nn.Linear(3, 2)))
        False
    """
    hooks = (h for _, m in module.named_modules() for h in m._forward_pre_hooks.values())
    return any(isinstance(h, BasePruningMethod) for h in hooks)
