"""Devices from outside: names, streams, the CPU fallback, mixed devices, memory, autograd.
The device is examples/null_device, whose memory the host cannot read: a missing copy crashes."""

import numpy as np
import pytest
from process import printed, ran

import mica
from mica import nn, optim

pytestmark = pytest.mark.usefixtures("null_device")


@pytest.fixture(autouse=True)
def counts():
    mica.fallback_counts(reset=True)
    before = mica.set_fallback("allow")
    yield
    mica.set_fallback(before)


def fallen():
    return mica.fallback_counts().get("null", {})


# ---- names


def test_a_device_by_name():
    assert mica.device_count("null") == 2
    assert mica.device_count("no.such") == 0
    d = mica.device("null:1")
    assert (d.type, d.index) == ("null", 1)
    assert mica.device("null", 1) == d
    assert mica.empty(2, device="null").device == mica.device("null:0")
    assert mica.device_properties("null")["name"] == "the null device"


def test_an_unknown_device_lists_the_known_ones():
    with pytest.raises(RuntimeError, match=r"unknown backend \(no.such\).*cpu, meta.*null"):
        mica.device("no.such:0")


@pytest.mark.parametrize("make", [lambda: mica.device("null:2"), lambda: mica.device("null", 2)])
def test_an_index_out_of_range_says_the_count(make):
    with pytest.raises(RuntimeError, match=r"\(null:2\) does not exist.*\(2\) devices"):
        make()


def test_the_default_device():
    mica.set_default_device("null:1")
    try:
        assert mica.zeros(2).device == mica.device("null:1")
        assert mica.arange(4).device == mica.device("null:1")
        assert mica.arange(4).tolist() == [0, 1, 2, 3]
    finally:
        mica.set_default_device(None)
    assert mica.zeros(2).device.type == "cpu"


# ---- the CPU fallback


def test_the_kernels_of_the_device_run_there():
    x = mica.randn(4, 4).to("null")
    y = (x + x) * 2 - x.relu()
    z = y @ x
    s = z.sum(dim=1)
    h = x.cpu()
    want = (((h + h) * 2 - h.relu()) @ h).sum(dim=1)
    assert np.allclose(s.cpu().numpy(), want.numpy(), atol=1e-5)
    assert fallen() == {}


def test_a_number_beside_a_device_tensor():
    x = mica.tensor([1.0, 2.0]).to("null")
    assert (x + 1).tolist() == [2, 3]
    assert (3 - x).tolist() == [2, 1]
    assert (x * mica.tensor(2.0)).tolist() == [2, 4]
    assert (mica.tensor(2.0) * x).device.type == "null"
    assert mica.where(x > 1, x, mica.tensor(0.0)).tolist() == [0, 2]


def test_what_lacks_a_kernel_runs_on_the_cpu():
    x = mica.tensor([[3.0, 1.0], [2.0, 4.0]]).to("null")
    values, places = x.sort(dim=1)
    assert values.device.type == places.device.type == "null"
    assert values.tolist() == [[1, 3], [2, 4]] and places.tolist() == [[1, 0], [0, 1]]
    assert "sort" in " ".join(fallen())


def test_results_whose_size_depends_on_data():
    x = mica.tensor([0.0, 2.0, 0.0, 3.0]).to("null")
    assert x.nonzero().tolist() == [[1], [3]]
    assert x[x > 0].tolist() == [2, 3]
    assert x.nonzero().device.type == "null"


def test_lists_and_optional_tensors():
    x, y = mica.tensor([1.0, 2.0]).to("null"), mica.tensor([3.0]).to("null")
    assert mica.cat([x, y]).tolist() == [1, 2, 3]
    picked = mica.arange(6.0).reshape(2, 3).to("null")
    index = mica.tensor([2, 0]).to("null")
    assert picked[:, index].tolist() == [[2, 0], [5, 3]]


def test_writes_reach_the_base_of_a_view():
    base = mica.zeros(3, 4).to("null")
    base[:, 1].erfinv_()
    base[1].add_(2)
    base[:, 2:].exponential_() if hasattr(base, "exponential_") else None
    base.t()[0].sinh_()
    base[0, 0] = 7.0
    assert base[1].tolist()[1] == 2 and base[0, 0].item() == 7
    y = mica.zeros(2, 2).to("null")
    y.t()[0].copy_(mica.tensor([1.0, 2.0]))
    assert y.tolist() == [[1, 0], [2, 0]]
    z = mica.tensor([3.0, 1.0, 2.0]).to("null")
    version = z._version
    z[1:].sigmoid_()
    z[:2].lgamma_()
    assert z._version > version


def test_out_arguments_on_the_device():
    x = mica.tensor([3.0, 1.0, 2.0]).to("null")
    out = mica.empty(0, device="null")
    mica.cumsum(x, 0, out=out)
    assert out.tolist() == [3, 4, 6]
    with pytest.raises(RuntimeError, match="null:0"):
        mica.add(x, x, out=mica.empty(3))
    for grow in (mica.cumsum, mica.sum):  # on the CPU and on the device
        small = mica.ones(1, 1, device="null")
        with pytest.warns(UserWarning, match="was resized"):
            grow(mica.ones(5, 700, device="null"), 1, out=small)
        assert small.cpu().reshape(-1)[-1].item() == 700


def test_random_operators_draw_from_the_devices_generator():
    mica.manual_seed(7)
    first = mica.rand(5, device="null").tolist()
    mica.manual_seed(7)
    assert mica.rand(5, device="null").tolist() == first
    mica.manual_seed(8)
    assert mica.rand(5, device="null").tolist() != first
    x = mica.zeros(5, device="null").uniform_()
    assert min(x.tolist()) >= 0 and max(x.tolist()) < 1
    generator = mica.Generator("null").manual_seed(3)
    a = mica.zeros(4, device="null").normal_(generator=generator).tolist()
    generator.manual_seed(3)
    assert mica.zeros(4, device="null").normal_(generator=generator).tolist() == a


def test_fallback_can_be_refused_or_said():
    x = mica.tensor([0.5]).to("null")
    assert mica.set_fallback("error") == "allow"
    with pytest.raises(NotImplementedError, match=r"mica::digamma.*\(null\).*set_fallback"):
        x.digamma()
    mica.set_fallback("warn")
    mica.fallback_counts(reset=True)
    with pytest.warns(UserWarning, match="digamma.*runs on the CPU"):
        x.digamma()
    with pytest.raises(ValueError, match="expected once, allow, warn or error"):
        mica.set_fallback("perhaps")


def errors(program, **environment):
    done = ran(program, **environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


FALLS_BACK = """
import mica
mica.load_plugin({library!r})
x = mica.tensor([0.5, 1.5]).to("null")
for _ in range(3):
    x.digamma()
    x.cumsum(0)
"""


@pytest.mark.parametrize("policy", ["", "once", "warn", "allow"])
def test_a_process_is_told_once_that_the_cpu_computes_and_what_at_its_end(null_device, policy):
    said = errors(FALLS_BACK.format(library=str(null_device)), MICA_FALLBACK=policy)
    assert said.count("Operator mica::digamma has no kernel") == (policy != "allow")
    assert said.count("Operator mica::cumsum has no kernel") == (policy == "warn")
    summary = "device (null): 6 calls of 2 operators: mica::cumsum 3, mica::digamma 3."
    assert said.count(summary) == (policy != "allow")


def test_who_silences_warnings_is_told_nothing_and_who_needs_no_fallback_neither(null_device):
    program = FALLS_BACK.format(library=str(null_device))
    assert errors("import warnings; warnings.simplefilter('ignore')" + program) == ""
    on_the_device = program.split("for _")[0] + "assert (x + x).tolist() == [1.0, 3.0]"
    assert errors(on_the_device) == ""


def test_each_backend_counts_its_fallbacks():
    mica.tensor([0.5]).to("null").digamma()
    assert mica.null.fallback_counts() == {"mica::digamma": 1}
    assert mica.fallback_counts()["null"] == {"mica::digamma": 1}


# ---- what an operator is made of


def test_a_linear_layer_stays_on_a_device_with_products_and_sums():
    layer, x = nn.Linear(4, 3), mica.randn(2, 4)
    expected = layer(x)
    expected.sum().backward()
    there = nn.Linear(4, 3).to("null")
    there.load_state_dict(layer.state_dict())
    y = there(x.to("null"))
    y.sum().backward()
    assert fallen() == {}
    mica.testing.assert_close(y.cpu(), expected)
    for p, q in zip(there.parameters(), layer.parameters()):
        mica.testing.assert_close(p.grad.cpu(), q.grad)


def test_every_form_of_addmm_runs_as_its_parts():
    c, a, b = mica.randn(2, 3), mica.randn(2, 4), mica.randn(4, 3)
    expected = mica.addmm(c, a, b, beta=0.5, alpha=2)
    x, y, z = (t.to("null") for t in (c, a, b))
    mica.testing.assert_close(mica.addmm(x, y, z, beta=0.5, alpha=2).cpu(), expected)
    out = mica.empty(0, device="null")
    mica.addmm(x, y, z, beta=0.5, alpha=2, out=out)
    mica.testing.assert_close(out.cpu(), expected)
    x.addmm_(y, z, beta=0.5, alpha=2)
    mica.testing.assert_close(x.cpu(), expected)
    assert fallen() == {}
    assert "what the operator is made of" in mica.explain("addmm", x, y, z)
    with pytest.raises(RuntimeError, match="addmm"):
        mica.addmm(x, z, y)


def test_explain_shows_the_fallback():
    x = mica.tensor([0.5]).to("null")
    assert "runs on the CPU" in mica.explain("cumsum", x)
    assert "kernel for class pointwise" in mica.explain("exp", x)


# ---- several devices


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: mica.cat([a, b]),
        lambda a, b: mica.where(a > 0, a, b),
        lambda a, b: a.dot(b),
        lambda a, b: a.add_(b),
        lambda a, b: mica.stack([b, a]),
    ],
)
@pytest.mark.parametrize("pair", [("null", "cpu"), ("null:0", "null:1"), ("null", "py.test")])
def test_mixed_devices_are_refused_with_the_fix(python_device, call, pair):
    a, b = (mica.ones(3).to(d) for d in pair)
    with pytest.raises(RuntimeError) as error:
        call(a, b)
    text = str(error.value)
    for t in (a, b):
        assert f"({t.device})" in text, text
    assert ".to('" in text, text


def test_two_devices_in_one_process(python_device):
    x = mica.tensor([1.0, 2.0])
    there = x.to("py.test:1")
    assert (there * there).to("null").add(1).cpu().tolist() == [2, 5]
    assert mica.fallback_counts().get("py.test", {}) == {}


def test_a_kernel_in_python_may_refuse(python_device):
    half = mica.tensor([1.0, 2.0]).to("py.test", mica.bfloat16)
    assert (half * half).tolist() == [1, 4]
    assert mica.fallback_counts()["py.test"]["mica::mul.Tensor"] >= 1
    with pytest.raises(RuntimeError, match="is registered already"):
        mica.library.register_device("py.test")


# ---- streams and events


def test_streams_and_events():
    first = mica.current_stream("null")
    s = mica.Stream("null")
    assert first.handle == 0 and s != first
    with mica.stream(s):
        assert mica.current_stream("null") == s
        assert mica.current_stream("null:1").handle == 0
        x = mica.ones(1000, device="null")
        event = s.record_event()
    assert mica.current_stream("null") == first
    first.wait_event(event)
    x.record_stream(first)
    event.synchronize()
    assert event.query() and s.query()
    s.synchronize()
    mica.synchronize("null")
    assert x.sum().item() == 1000
    with pytest.raises(RuntimeError, match=r"belongs to the device \(null:0\)"):
        event.record(mica.Stream("null:1"))
    with pytest.raises(NotImplementedError, match="event_elapsed"):
        a, b = s.record_event(), s.record_event()
        a.elapsed_time(b)


def test_memory_of_a_stream_goes_back_to_it():
    s, t = mica.Stream("null"), mica.Stream("null")
    mica.empty_cache("null")
    with mica.stream(s):
        x = mica.empty(100_000, device="null")
        address = x.data_ptr()
        del x
    with mica.stream(t):
        assert mica.empty(100_000, device="null").data_ptr() != address
    with mica.stream(s):
        assert mica.empty(100_000, device="null").data_ptr() == address


# ---- memory


def test_memory_is_counted_and_given_back():
    mica.empty_cache("null:1")
    before = mica.memory_allocated("null:1")
    x = mica.empty(1 << 20, dtype=mica.uint8, device="null:1")
    assert mica.memory_allocated("null:1") - before == 1 << 20
    assert mica.max_memory_allocated("null:1") >= 1 << 20
    del x
    assert mica.memory_allocated("null:1") == before
    mica.empty_cache("null:1")
    assert mica.memory_reserved("null:1") == before


def test_out_of_memory_says_what_is_in_use_after_emptying_the_cache():
    keep = mica.empty(1 << 20, dtype=mica.uint8, device="null")
    mica.empty(3 << 30, dtype=mica.uint8, device="null")  # idle afterwards
    assert mica.empty((5 << 30) // 2, dtype=mica.uint8, device="null").numel()  # after the cache was emptied
    with pytest.raises(mica.OutOfMemoryError, match=r"null:0.*request of 8589934592 bytes.*in use") as error:
        mica.empty(1 << 33, dtype=mica.uint8, device="null")
    assert isinstance(error.value, RuntimeError)
    del keep
    mica.empty_cache("null")


def test_a_forked_child_is_told(null_device):
    program = """
import os, sys, mica
mica.load_plugin(sys.argv[1])
x = mica.ones(3, device="null")
child = os.fork()
if child == 0:
    assert mica.ones(3).sum().item() == 3
    try:
        x + x
    except RuntimeError as error:
        assert "forked" in str(error) and "(null:0)" in str(error), error
        del x
        sys.exit(7)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert (x + x).tolist() == [2, 2, 2]
"""
    printed(program, str(null_device))


# ---- autograd, nn, optim


def test_gradients_cross_devices():
    x = mica.tensor([1.0, 2.0], requires_grad=True)
    y = (x.to("null") * mica.tensor([3.0, 4.0]).to("null")).sum()
    y.backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [3, 4]
    w = mica.tensor(2.0, requires_grad=True)
    (mica.ones(3).to("null") * w).sum().backward()
    assert w.grad.item() == 3 and w.grad.device.type == "cpu"


def test_a_write_that_runs_on_the_cpu_is_seen_by_autograd():
    x, w = mica.ones(3).to("null").requires_grad_(), mica.ones(3).to("null")
    y = (x * w).sum()
    w.erfinv_()
    with pytest.raises(RuntimeError, match="MulBackward0 saved.*was mica::erfinv_"):
        y.backward()


def test_a_module_trains_as_on_the_cpu():
    def losses(device):
        mica.manual_seed(0)
        x, y = mica.randn(32, 5), mica.randint(0, 3, (32,))
        model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 3)).to(device)
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        x, y = x.to(device), y.to(device)
        out = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            out.append(loss.item())
        assert all(p.device == x.device == p.grad.device for p in model.parameters())
        return out

    want = losses("cpu")
    assert want[-1] < want[0]
    assert np.allclose(losses("null:1"), want, atol=1e-4)
    assert np.allclose(losses("null"), want, atol=1e-4)


def test_batch_norm_trains_and_keeps_its_statistics():
    def run(device):
        mica.manual_seed(1)
        norm = nn.BatchNorm2d(3).to(device)
        x = mica.randn(4, 3, 5, 5).to(device).requires_grad_()
        (norm(norm(x)) ** 3).sum().backward()
        return [t.tolist() for t in (norm.running_mean, norm.running_var, norm.num_batches_tracked)], x.grad

    want, grad = run("cpu")
    have, there = run("null")
    assert want[2] == have[2] == 2
    assert np.allclose(want[0], have[0], atol=1e-6) and np.allclose(want[1], have[1], atol=1e-6)
    assert np.allclose(grad.numpy(), there.cpu().numpy(), atol=1e-3)
