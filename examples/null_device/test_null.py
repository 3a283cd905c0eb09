"""The null device as its vendor tests it: MICA_PLUGINS names the plugin."""

import mica


def test_the_device_is_there():
    assert mica.device_count("null") == 2
    assert mica.device_properties("null:1")["name"] == "the null device"


def test_add_runs_on_the_device():
    x = mica.tensor([1.0, 2.0, 3.0], device="null")
    mica.fallback_counts(reset=True)
    assert (x + x).tolist() == [2, 4, 6]
    assert mica.fallback_counts() == {}
    assert "null" in mica.explain("add.Tensor", x, x)


def test_classes_carry_many_operators():
    x = mica.randn(5, 7, device="null:1")
    mica.fallback_counts(reset=True)
    y = mica.sigmoid(x.exp() / (x * x + 1)).t().clamp(0.1, 0.9)
    total = (y.contiguous() @ x).sum(0)
    assert mica.fallback_counts() == {}
    h = x.cpu()
    want = (mica.sigmoid(h.exp() / (h * h + 1)).t().clamp(0.1, 0.9) @ h).sum(0)
    assert mica.allclose(total.cpu(), want, atol=1e-5)


def test_the_rest_runs_on_the_cpu():
    x = mica.tensor([3.0, 1.0, 2.0], device="null")
    mica.fallback_counts(reset=True)
    assert x.cumsum(0).tolist() == [3, 4, 6]
    assert list(mica.fallback_counts()) == ["null"]


def test_it_trains():
    model = mica.nn.Linear(4, 1).to("null")
    optimizer = mica.optim.SGD(model.parameters(), lr=0.1)
    x = mica.randn(64, 4, device="null")
    y = x.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]
