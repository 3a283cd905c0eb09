"""Lists of tensors in one launch: foreach operators and optimizers' steps on the simulated GPU, beside the CPU."""

import pytest
from gpu_device import DEVICE

import mica
from mica import optim

pytestmark = pytest.mark.usefixtures("simt")

SHAPES = [(3,), (5, 7), (1,), (), (0,), (300,), (2, 3, 4), (1030,)]


def tensors(dtype=mica.float32):
    return [mica.randn(shape).to(dtype) for shape in SHAPES]


def on_device(list_of_tensors):
    return [t.to(DEVICE) for t in list_of_tensors]


def agree(ours, theirs, **tolerance):
    for a, b in zip(ours, theirs):
        assert a.device.type == mica.device(DEVICE).type
        mica.testing.assert_close(a.cpu(), b, **tolerance)


@pytest.mark.parametrize("dtype", [mica.float32, mica.float16, mica.int32, mica.complex64])
def test_foreach_gives_what_each_tensor_gives(dtype):
    a, b = [t * 10 for t in tensors()], [t * 10 + 1 for t in tensors()]
    a, b = [t.to(dtype) for t in a], [t.to(dtype) for t in b]
    x, y = on_device(a), on_device(b)
    agree(mica._foreach_add(x, y, alpha=2), mica._foreach_add(a, b, alpha=2))
    agree(mica._foreach_mul(x, 3), mica._foreach_mul(a, 3))
    mica._foreach_mul_(x, y)
    agree(x, mica._foreach_mul(a, b))


def test_lists_of_several_dtypes_and_numbers_for_each_row():
    a = tensors() + tensors(mica.float64)
    x = on_device(a)
    numbers = [float(i) for i in range(len(a))]
    agree(mica._foreach_add(x, numbers), mica._foreach_add(a, numbers))
    agree(mica._foreach_sqrt(mica._foreach_abs(x)), mica._foreach_sqrt(mica._foreach_abs(a)))


def test_more_tensors_than_one_launch_takes():
    a = [mica.randn(i % 7 + 1) for i in range(500)]
    x = on_device(a)
    agree(mica._foreach_add(x, x), mica._foreach_add(a, a))


def test_tensors_that_share_memory_are_written_in_order():
    flat = mica.arange(6, dtype=mica.float32)
    there = flat.to(DEVICE)
    for base in (flat, there):
        first, second = base[:4], base[2:]
        mica._foreach_mul_([first, second], 2)
        mica._foreach_add_([first, first[:2]], [second.clone(), first[2:]])
    mica.testing.assert_close(there.cpu(), flat)


def test_a_row_that_fails_leaves_all_as_they_were():
    x = on_device(tensors())
    before = [t.clone() for t in x]
    y = [mica.ones(9, device=DEVICE) if i == 5 else t for i, t in enumerate(x)]
    with pytest.raises(RuntimeError):
        mica._foreach_add_(x, y)
    agree(x, [t.cpu() for t in before])


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
        lambda p: optim.SGD(p, lr=0.1),
        lambda p: optim.AdamW(p, lr=0.1, amsgrad=True),
        lambda p: optim.Adam(p, lr=0.1, fused=True),
        lambda p: optim.RMSprop(p, lr=0.1),
    ],
)
def test_optimizers_step_as_on_the_cpu(make):
    starts, grads = tensors(), tensors()
    lists = []
    for move in (on_device, list):
        params = [t.clone().requires_grad_() for t in move(starts)]
        optimizer = make(params)
        for factor in (1.0, -0.5):
            for p, g in zip(params, move(grads)):
                p.grad = g * factor
            optimizer.step()
        lists.append([p.detach() for p in params])
    agree(*lists, rtol=1e-5, atol=1e-6)


def test_a_capturable_step_reads_its_numbers_on_the_device():
    params = [t.requires_grad_() for t in on_device(tensors())]
    others = [p.detach().cpu().requires_grad_() for p in params]
    ours, theirs = optim.Adam(params, capturable=True), optim.Adam(others)
    for _ in range(2):
        for p, q in zip(params, others):
            p.grad, q.grad = mica.ones_like(p), mica.ones_like(q)
        ours.step()
        theirs.step()
    agree([p.detach() for p in params], [q.detach() for q in others], rtol=1e-5, atol=1e-6)
