"""torchvision's operators: values against loops in NumPy, gradients, shapes on meta, bad input."""

import numpy as np
import pytest

import mica

vision = mica.ops.torchvision
REGIONS = [
    (0, 1.0, 0.5, 6.2, 4.9),
    (1, -3.0, -2.0, 3.0, 9.0),
    (1, 2.0, 2.0, 2.0, 2.0),
    (0, 20.0, 20.0, 30.0, 30.0),
]
BINS = (2, 3)


def bilinear(plane, y, x):
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), height - 1), min(int(x), width - 1)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = (y - top if bottom > top else 0.0), (x - left if right > left else 0.0)
    above = plane[top, left] * (1 - dx) + plane[top, right] * dx
    below = plane[bottom, left] * (1 - dx) + plane[bottom, right] * dx
    return above * (1 - dy) + below * dy


def sampled(plane, region, ratio, aligned, bin_):
    offset = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = (v - offset for v in region)
    sizes = [y2 - y1, x2 - x1] if aligned else [max(y2 - y1, 1.0), max(x2 - x1, 1.0)]
    steps = [size / count for size, count in zip(sizes, BINS)]
    counts = [ratio if ratio > 0 else int(np.ceil(step)) for step in steps]
    values = [
        bilinear(
            plane,
            y1 + (bin_[0] + (i + 0.5) / counts[0]) * steps[0],
            x1 + (bin_[1] + (j + 0.5) / counts[1]) * steps[1],
        )
        for i in range(counts[0])
        for j in range(counts[1])
    ]
    return sum(values) / max(len(values), 1)


def largest(plane, region, bin_):
    x1, y1, x2, y2 = (int(np.floor(abs(v) + 0.5) * np.sign(v)) for v in region)
    spans = []
    for start, end, count, i, extent in (
        (y1, y2, BINS[0], bin_[0], plane.shape[0]),
        (x1, x2, BINS[1], bin_[1], plane.shape[1]),
    ):
        size = max(end - start + 1, 1) / count
        low, high = int(np.floor(i * size)) + start, int(np.ceil((i + 1) * size)) + start
        spans.append(slice(min(max(low, 0), extent), min(max(high, 0), extent)))
    part = plane[tuple(spans)]
    return part.max() if part.size else 0.0


def expected(images, value):
    return np.array(
        [[[[value(images[int(r[0]), c], r[1:], (i, j)) for j in range(BINS[1])] for i in range(BINS[0])]
          for c in range(images.shape[1])] for r in REGIONS]
    )  # fmt: skip


def images(dtype=mica.float64, channels=2):
    return mica.randn(2, channels, 8, 9, dtype=mica.float64, generator=mica.Generator().manual_seed(0)).to(
        dtype
    )


def rois(dtype=mica.float64):
    return mica.tensor(REGIONS, dtype=dtype)


@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(ratio, aligned):
    want = expected(images().numpy(), lambda p, r, b: sampled(p, r, ratio, aligned, b))
    got = vision.roi_align(images(), rois(), 1.0, *BINS, ratio, aligned)
    mica.testing.assert_close(got, mica.tensor(want))
    strided = images().transpose(2, 3).contiguous().transpose(2, 3)
    assert mica.equal(vision.roi_align(strided, rois(), 1.0, *BINS, ratio, aligned), got)
    half = vision.roi_align(images(mica.float16), rois(mica.float16), 1.0, *BINS, ratio, aligned)
    assert half.dtype == mica.float16
    mica.testing.assert_close(half.double(), got, rtol=2e-2, atol=2e-2)


def test_roi_pool():
    got, places = vision.roi_pool(images(), rois(), 1.0, *BINS)
    mica.testing.assert_close(got, mica.tensor(expected(images().numpy(), largest)))
    flat = images().flatten(2)
    for r in range(len(REGIONS)):
        for i in range(BINS[0] * BINS[1]):
            place = int(places[r, 0].flatten()[i])
            assert place < 0 or flat[int(REGIONS[r][0]), 0, place] == got[r, 0].flatten()[i]


def test_each_bin_has_channels_of_its_own():
    many = images(channels=12)
    got, channels = vision.ps_roi_align(many, rois()[:2], 1.0, *BINS, 2)
    whole = vision.roi_align(many, rois()[:2], 1.0, *BINS, 2, True)
    for c in range(2):
        for i in range(6):
            assert mica.equal(got[:, c].flatten(1)[:, i], whole[:, c * 6 + i].flatten(1)[:, i])
            assert (channels[:, c].flatten(1)[:, i] == c * 6 + i).all()
    pooled, _ = vision.ps_roi_pool(mica.ones(1, 6, 8, 8), mica.tensor([[0, 1.0, 1.0, 6.0, 6.0]]), 1.0, *BINS)
    assert mica.equal(pooled, mica.ones(1, 1, *BINS))


CALLS = {
    "roi_align": lambda x: vision.roi_align(x, rois(), 1.0, *BINS, -1, True),
    "roi_pool": lambda x: vision.roi_pool(x, rois(), 1.0, *BINS)[0],
    "ps_roi_align": lambda x: vision.ps_roi_align(x, rois()[:2], 1.0, *BINS, 2)[0],
    "ps_roi_pool": lambda x: vision.ps_roi_pool(x, rois(), 1.0, *BINS)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name):
    x = images(channels=6).requires_grad_()
    assert mica.autograd.gradcheck(CALLS[name], [x])
    if name != "roi_pool":
        assert mica.autograd.gradgradcheck(CALLS[name], [x])
    meta = vision.roi_align(x.to("meta"), rois().to("meta"), 1.0, *BINS, -1, True)
    assert meta.shape == (len(REGIONS), 6, *BINS) and meta.device.type == "meta"


def overlap(a, b):
    shared = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


@pytest.mark.parametrize("dtype", [mica.float32, mica.float64])
def test_nms(dtype):
    generator = mica.Generator().manual_seed(1)
    corners = mica.rand(60, 2, dtype=dtype, generator=generator) * 20
    boxes = mica.cat([corners, corners + 1 + mica.rand(60, 2, dtype=dtype, generator=generator) * 10], 1)
    scores = (mica.rand(60, dtype=dtype, generator=generator) * 10).round()  # with equal ones
    kept = []
    for i in scores.sort(descending=True, stable=True).indices.tolist():
        if all(overlap(boxes[k].numpy(), boxes[i].numpy()) <= 0.3 for k in kept):
            kept.append(i)
    assert 5 < len(kept) < 50
    assert vision.nms(boxes, scores, 0.3).tolist() == kept
    assert vision.nms(boxes[:0], scores[:0], 0.3).shape == (0,)


def test_deform_conv2d():
    x, bias = images(channels=4), mica.zeros(6, dtype=mica.float64)
    weight = mica.randn(6, 2, 3, 3, dtype=mica.float64)
    offset, mask = mica.zeros(2, 36, 4, 5, dtype=mica.float64), mica.ones(2, 18, 4, 5, dtype=mica.float64)
    where = (2, 2, 1, 1, 1, 1, 2, 2)
    conv2d, pad = mica.nn.functional.conv2d, mica.nn.functional.pad
    got = vision.deform_conv2d(x, weight, offset, mask, bias, *where, True)
    mica.testing.assert_close(got, conv2d(x, weight, bias, 2, 1, groups=2))
    # Moved by a row it reads the image from its first row on; a mask of halves halves.
    offset.view(2, 2, 9, 2, 4, 5)[:, :, :, 0] = 1.0
    moved = conv2d(pad(x, [1, 1, 0, 1]), weight, None, 2, groups=2) / 2 + 1
    mica.testing.assert_close(
        vision.deform_conv2d(x, weight, offset, mask / 2, bias + 1, *where, True), moved
    )
    small = [
        mica.rand(*s, dtype=mica.float64, requires_grad=True)
        for s in ((1, 2, 4, 3), (2, 2, 2, 2), (1, 8, 3, 2), (1, 4, 3, 2), (2,))
    ]
    assert mica.autograd.gradcheck(lambda *a: vision.deform_conv2d(*a, 1, 1, 0, 0, 1, 1, 1, 1, True), small)
    with pytest.raises(RuntimeError, match="of `offset` differs from"):
        vision.deform_conv2d(x, weight, offset[:1], mask, bias, *where, True)


def test_bad_input():
    x = images()
    with pytest.raises(RuntimeError, match=r"\(regions, 5\)"):
        vision.roi_align(x, rois()[:, :4], 1.0, *BINS, 2, True)
    with pytest.raises(IndexError, match=r"out of range for \(2\) images"):
        vision.roi_align(x, mica.tensor([[2.0, 0, 0, 1, 1]], dtype=mica.float64), 1.0, *BINS, 2, True)
    with pytest.raises(ValueError, match="finite"):
        vision.roi_pool(x, mica.tensor([[0, 0, float("nan"), 1, 1]], dtype=mica.float64), 1.0, *BINS)
    with pytest.raises(ValueError, match="not positive"):
        vision.roi_align(x, rois(), 1.0, 0, 3, 2, True)
    with pytest.raises(RuntimeError, match="no multiple of the bins"):
        vision.ps_roi_align(x, rois(), 1.0, *BINS, 2)
    with pytest.raises(RuntimeError, match="differs from that of `input`"):
        vision.roi_align(x, rois(mica.float32), 1.0, *BINS, 2, True)
    with pytest.raises(RuntimeError, match="number of scores"):
        vision.nms(mica.rand(3, 4), mica.rand(2), 0.5)
    with pytest.raises(NotImplementedError, match="floating"):
        vision.nms(mica.ones(3, 4, dtype=mica.int64), mica.ones(3, dtype=mica.int64), 0.5)
    with pytest.raises(NotImplementedError):
        vision.qnms(mica.rand(3, 4), mica.rand(3), 0.5)
    huge = vision.roi_align(
        x, mica.tensor([[0, -1e12, -1e12, 1e12, 1e12]], dtype=mica.float64), 1.0, *BINS, -1, True
    )
    assert huge.isfinite().all()
