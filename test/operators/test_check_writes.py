"""The debug mode that holds kernels to what their schemas declare as written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import mica


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    before = mica.library.set_check_writes(True)
    yield
    mica.library.set_check_writes(before)


@pytest.fixture
def library() -> Iterator[mica.library.Library]:
    made = mica.library.Library("written", "DEF")
    yield made
    made._destroy()


def test_a_kernel_that_writes_an_undeclared_argument_is_named(library: mica.library.Library) -> None:
    library.define("sly(Tensor self, Tensor other) -> Tensor")
    library.impl("sly", lambda self, other: (other.numpy().__setitem__(0, 7.0), self + 1)[1], "CPU")
    with pytest.raises(RuntimeError, match="written::sly wrote its argument `other`.*not declare as written"):
        mica.ops.written.sly(mica.ones(2), mica.ones(2))


def test_a_kernel_that_returns_its_argument_is_named(library: mica.library.Library) -> None:
    library.define("same(Tensor self) -> Tensor")
    library.impl("same", lambda self: self, "CPU")
    with pytest.raises(RuntimeError, match="written::same returned memory of its argument `self`"):
        mica.ops.written.same(mica.ones(2))


def test_what_is_declared_passes(library: mica.library.Library) -> None:
    library.define("fill_first_(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    library.impl("fill_first_", lambda self, other: (self.numpy().__setitem__(0, 7.0), self)[1], "CPU")
    x = mica.ones(2)
    mica.ops.written.fill_first_(x, mica.ones(2))
    assert x.tolist() == [7.0, 1.0]


def test_off_it_checks_nothing(library: mica.library.Library) -> None:
    library.define("same(Tensor self) -> Tensor")
    library.impl("same", lambda self: self, "CPU")
    mica.library.set_check_writes(False)
    assert mica.ops.written.same(mica.ones(2)).tolist() == [1.0, 1.0]


def test_a_training_step_holds_to_its_schemas() -> None:
    model = mica.nn.Sequential(
        mica.nn.Conv2d(1, 4, 3), mica.nn.BatchNorm2d(4), mica.nn.ReLU(), mica.nn.MaxPool2d(2),
        mica.nn.Flatten(), mica.nn.Linear(36, 3),
    )  # fmt: skip
    optimizer = mica.optim.Adam(model.parameters())
    loss = mica.nn.functional.cross_entropy(model(mica.randn(5, 1, 8, 8)), mica.tensor([0, 1, 2, 0, 1]))
    loss.backward()
    optimizer.step()
    x = mica.randn(6, 6)
    x.add_(x)
    x[1:].mul_(2)
    mica.cat([x, x]).sort(0)
    mica.add(x, 1, out=x)
