"""biject_to and transform_to: from a constraint to a transform of unconstrained values into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mica.distributions import _matrix_transforms as matrices, constraints, transforms


class ConstraintRegistry:
    """Finds the transform of unconstrained numbers into the region of a constraint.

    As `torch.distributions.constraint_registry.ConstraintRegistry`. `biject_to(constraint)` gives a
    bijection, whose Jacobian is known; `transform_to(constraint)` any transform, for parameters that an
    optimiser moves. Both raise NotImplementedError for a constraint whose class nobody registered.

    Example:
        >>> d = mica.distributions
        >>> f = d.transform_to(d.constraints.interval(1.0, 3.0))
        >>> f(mica.tensor(0.0))
        tensor(2.)
        >>> d.biject_to(d.constraints.simplex), d.transform_to(d.constraints.simplex)
        (StickBreakingTransform(), SoftmaxTransform())
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Registers the function that makes a transform for a class of constraints.

        Args:
            constraint (type or Constraint): The class, or an instance of it.
            factory (callable, optional): Takes the constraint and returns a Transform. Default: None, for a
                decorator.

        Returns:
            callable: The factory, or the decorator.

        Raises:
            TypeError: `constraint` is neither a class of constraints nor a constraint.
        """
        if factory is None:
            return lambda f: self.register(constraint, f)
        cls = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(cls, type) or not issubclass(cls, constraints.Constraint):
            raise TypeError(
                f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}"
            )
        self._registry[cls] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints: register a factory for the class."
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(constraint: Any) -> Callable[[Any], Any]:
    def add(factory: Any) -> Any:
        biject_to.register(constraint, factory)
        return transform_to.register(constraint, factory)

    return add


@_both(constraints.real)
def _real(constraint: Any) -> Any:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _independent_bijection(constraint: Any) -> Any:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _independent(constraint: Any) -> Any:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.positive)
@_both(constraints.nonnegative)
def _positive(constraint: Any) -> Any:
    bound = constraint.lower_bound
    exp = transforms.ExpTransform()
    if isinstance(bound, (int, float)) and bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(bound, 1)])


@_both(constraints.less_than)
def _less_than(constraint: Any) -> Any:
    affine = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), affine])


@_both(constraints.interval)
@_both(constraints.half_open_interval)
def _interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _stick(constraint: Any) -> Any:
    return matrices.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint: Any) -> Any:
    return matrices.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: Any) -> Any:
    return matrices.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: Any) -> Any:
    return matrices.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> Any:
    return matrices.CorrCholeskyTransform()


def _of_parts(registry: ConstraintRegistry, kind: Any, constraint: Any) -> Any:
    parts = [registry(c) for c in constraint.cseq]
    if kind is matrices.CatTransform:
        return kind(parts, constraint.dim, constraint.lengths)
    return kind(parts, constraint.dim)


for _registry in (biject_to, transform_to):
    for _constraint, _kind in (
        (constraints.cat, matrices.CatTransform),
        (constraints.stack, matrices.StackTransform),
    ):
        _registry.register(_constraint, lambda c, r=_registry, k=_kind: _of_parts(r, k, c))
