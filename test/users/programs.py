"""Programs over packages that were written for PyTorch, run under `python -m mica.torch`.

`python -m mica.torch test/users/programs.py [name]...` prints a line for each: "ok NAME" or
"failed NAME: why". A program asserts what it computed; scripts/torch_users.py makes the page.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import torch
import torch.nn.functional as F
from architectures import ARCHITECTURES, Architecture
from hostile_safetensors import check_hostile_files
from torch import nn


def einops_rearranges() -> None:
    from einops import einsum, rearrange, reduce, repeat
    from einops.layers.torch import Rearrange, Reduce

    x = torch.arange(48.0).reshape(2, 3, 2, 4)
    assert rearrange(x, "b c h w -> b (h w) c").shape == (2, 8, 3)
    assert torch.equal(reduce(x, "b c h w -> b c", "mean"), x.mean((2, 3)))
    assert repeat(x, "b c h w -> (b r) c h w", r=2).shape[0] == 4
    assert torch.allclose(einsum(x, x, "b c h w, b c h w -> b"), (x * x).sum((1, 2, 3)))
    net = nn.Sequential(Rearrange("b c h w -> b (c h w)"), nn.Linear(24, 2))
    net(x).sum().backward()
    assert Reduce("b c h w -> b c", "max")(x).shape == (2, 3)


def safetensors_round_trip() -> None:
    import tempfile

    from safetensors.torch import load, load_file, load_model, save, save_file, save_model

    tensors = {"a": torch.randn(2, 3), "b": torch.arange(4), "h": torch.ones(2, dtype=torch.bfloat16)}
    with tempfile.TemporaryDirectory() as folder:
        save_file(tensors, f"{folder}/x.safetensors")
        found = load_file(f"{folder}/x.safetensors")
        assert all(torch.equal(found[k], v) and found[k].dtype == v.dtype for k, v in tensors.items())
        net, other = nn.Linear(2, 3), nn.Linear(2, 3)
        save_model(net, f"{folder}/m.safetensors")
        load_model(other, f"{folder}/m.safetensors")
        assert torch.equal(net.weight, other.weight)
    assert torch.equal(load(save(tensors))["a"], tensors["a"])
    check_hostile_files()


def tensorboard_reads() -> None:
    """A run written by SummaryWriter, read back by TensorBoard's own reader."""
    import tempfile
    from pathlib import Path

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter, summary
    from torch.utils.tensorboard.summary import hparams

    picture = torch.arange(24.0).reshape(3, 2, 4) / 24
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            for step in range(3):
                writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
            writer.add_scalars("both", {"a": 1, "b": torch.tensor([2.0])}, 5)
            writer.add_histogram("weights", torch.tensor([0.5, -1.0, 2.0, 2.0]), 1)
            writer.add_image("picture", picture, 2)
            writer.add_images("pictures", picture.expand(9, 3, 2, 4), 2)
            writer.add_image_with_boxes("boxes", picture, torch.tensor([[0, 0, 1, 1]]), 2, labels=["x"])
            writer.add_video("video", picture.expand(1, 3, 3, 2, 4), 2)
            writer.add_audio("sound", torch.zeros(1, 100), 3, sample_rate=8000)
            writer.add_text("note", "**hello**", 4)
            labels, scores = torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.9, 0.4, 0.6])
            writer.add_pr_curve("curve", labels, scores, 1, num_thresholds=5)
            writer.add_mesh("mesh", torch.rand(1, 4, 3), faces=torch.tensor([[[0, 1, 2]]]))
            writer.add_custom_scalars_multilinechart(["loss", "both"])
            writer.add_embedding(torch.eye(3), ["a", "b", "c"], picture.expand(3, 3, 2, 4), 1, "points")
            writer.add_hparams({"lr": 0.1, "name": "x"}, {"hparam/loss": 0.5}, run_name="tried")
            net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Dropout())
            writer.add_graph(net, torch.ones(1, 3))
            assert net.training and not net._forward_hooks
        found = EventAccumulator(folder, size_guidance={"tensors": 0, "histograms": 0, "images": 0}).Reload()
        nodes = {node.name: node for node in found.Graph().node}
        product = nodes["Sequential/Linear[0]/addmm"]
        assert {"input/0", "Sequential/Linear[0]/bias"} <= set(product.input), product
        assert [d.size for d in product.attr["_output_shapes"].list.shape[0].dim] == [1, 2]
        assert list(nodes["output/0"].input) == ["Sequential/ReLU[1]/relu"], list(nodes)
        losses = found.Scalars("loss")
        assert [e.step for e in losses] == [0, 1, 2] and abs(losses[2].value - 1 / 3) < 1e-6
        (histogram,) = found.Histograms("weights")
        value = histogram.histogram_value
        assert (value.min, value.max, value.num, value.sum) == (-1.0, 2.0, 4.0, 3.5)
        assert sum(value.bucket) == 4 and len(value.bucket) == len(value.bucket_limit)
        (image,) = found.Images("picture")
        assert (image.step, image.height, image.width) == (2, 2, 4)
        (grid,) = found.Images("pictures")
        assert (grid.height, grid.width) == (4, 32)
        assert found.Images("video")[0].encoded_image_string.startswith(b"GIF")
        assert found.Audio("sound")[0].length_frames == 100
        (text,) = found.Tensors("note/text_summary")
        assert text.tensor_proto.string_val[0] == b"**hello**"
        curve = found.Tensors("curve")[0].tensor_proto
        rows = torch.tensor(list(curve.float_val)).reshape(6, 5)
        assert rows[0].tolist() == [2, 2, 1, 1, 0] and rows[1].tolist() == [2, 1, 1, 0, 0]
        assert {"mesh_VERTEX", "mesh_FACE", "custom_scalars__config__"} <= set(found.Tags()["tensors"])
        (one,) = EventAccumulator(f"{folder}/both_b").Reload().Scalars("both")
        assert (one.step, one.value) == (5, 2.0)
        assert EventAccumulator(f"{folder}/tried").Reload().Scalars("hparam/loss")[0].value == 0.5
        started = hparams({"lr": 0.1, "name": "x"}, {"loss": 0.5})[1].value[0]
        assert (
            started.tag == "_hparams_/session_start_info" and b"name" in started.metadata.plugin_data.content
        )
        assert summary.scalar("a", torch.tensor(2.0)).value[0].simple_value == 2.0
        assert summary.image("i", picture[None]).value[0].image.width == 4
        assert "points:00001" in Path(folder, "projector_config.pbtxt").read_text()
        assert len(Path(folder, "00001/points/tensors.tsv").read_text().splitlines()) == 3


def torchmetrics_scores() -> None:
    import torchmetrics

    target, preds = torch.tensor([0, 1, 2, 1]), torch.tensor([0, 2, 2, 1])
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3, average="micro")
    accuracy.update(preds, target)
    assert float(accuracy.compute()) == 0.75
    mse = torchmetrics.MeanSquaredError()
    assert abs(float(mse(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))) - 2.0) < 1e-6
    both = torchmetrics.MetricCollection([torchmetrics.F1Score("multiclass", num_classes=3), accuracy])
    assert set(both(preds, target)) == {"MulticlassF1Score", "MulticlassAccuracy"}
    auroc = torchmetrics.AUROC(task="binary")
    assert 0 <= float(auroc(torch.tensor([0.1, 0.8, 0.4]), torch.tensor([0, 1, 1]))) <= 1
    matrix = torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3)(preds, target)
    assert int(matrix.sum()) == 4


def torchinfo_summary() -> None:
    from torchinfo import summary

    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
    found = summary(net, input_size=(1, 1, 8, 8), verbose=0)
    assert found.total_params == 40 + 1450
    assert "Conv2d" in str(found)


def ignite_trains() -> None:
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import EarlyStopping
    from ignite.metrics import Accuracy, Loss

    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = (x.sum(1) > 0).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
    net = nn.Linear(4, 2)
    optim = torch.optim.Adam(net.parameters(), lr=0.1)
    trainer = create_supervised_trainer(net, optim, F.cross_entropy)
    evaluator = create_supervised_evaluator(net, {"accuracy": Accuracy(), "loss": Loss(F.cross_entropy)})
    stop = EarlyStopping(5, lambda e: -e.state.metrics["loss"], trainer)
    evaluator.add_event_handler(Events.COMPLETED, stop)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(loader))
    trainer.run(loader, max_epochs=8)
    assert evaluator.state.metrics["accuracy"] > 0.9


def torchdiffeq_integrates() -> None:
    from torchdiffeq import odeint, odeint_adjoint

    times = torch.linspace(0.0, 1.0, 5)
    start = torch.tensor([1.0])
    for method in ("dopri5", "rk4", "euler"):
        found = odeint(lambda t, y: -y, start, times, method=method)
        assert abs(float(found[-1]) - 0.36788) < (0.1 if method == "euler" else 1e-3)

    class Field(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rate = nn.Parameter(torch.tensor(0.5))

        def forward(self, t: Any, y: Any) -> Any:
            return -self.rate * y

    field = Field()
    odeint_adjoint(field, start, times)[-1].sum().backward()
    assert abs(float(field.rate.grad) + 0.60653) < 1e-3


def timm_models() -> None:
    import timm

    for name in (
        "resnet18",
        "mobilenetv3_small_050",
        "vit_tiny_patch16_224",
        "convnext_atto",
        "efficientnet_b0",
    ):
        torch.manual_seed(0)
        size = 224 if name.startswith("vit") else 64
        net = timm.create_model(name, num_classes=5)
        y = net(torch.randn(2, 3, size, size))
        assert y.shape == (2, 5) and bool(torch.isfinite(y).all()), name
        y.square().sum().backward()
        assert all(p.grad is not None for p in net.parameters() if p.requires_grad), name


def timm_training_tools() -> None:
    from timm.loss import LabelSmoothingCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.scheduler import CosineLRScheduler
    from timm.utils import ModelEmaV2, accuracy

    net = nn.Linear(4, 3)
    optim = create_optimizer_v2(net, opt="adamw", lr=0.1)
    schedule = CosineLRScheduler(optim, t_initial=10)
    ema = ModelEmaV2(net, decay=0.9)
    for step in range(3):
        loss = LabelSmoothingCrossEntropy()(net(torch.ones(2, 4)), torch.tensor([0, 1]))
        optim.zero_grad()
        loss.backward()
        optim.step()
        schedule.step(step)
        ema.update(net)
    assert float(accuracy(net(torch.ones(2, 4)), torch.tensor([0, 1]))[0]) in (0.0, 50.0)


def x_transformers_models() -> None:
    from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

    torch.manual_seed(0)
    layers = Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True)
    net = AutoregressiveWrapper(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers))
    tokens = torch.randint(0, 20, (2, 12))
    net(tokens).backward()
    assert net.generate(tokens[:, :4], 5).shape == (2, 5)
    encoder = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Encoder(dim=32, depth=1, heads=2))
    assert encoder(tokens).shape == (2, 12, 20)


def accelerate_trains() -> None:
    from accelerate import Accelerator, init_empty_weights

    with init_empty_weights():
        assert nn.Linear(3, 4).weight.device.type == "meta"
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8
    )
    net = nn.Linear(4, 1)
    optim = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optim, loader = accelerator.prepare(net, optim, loader)
    losses = []
    for _ in range(10):
        for a, b in loader:
            optim.zero_grad()
            loss = F.mse_loss(net(a), b)
            accelerator.backward(loss)
            optim.step()
            losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def torchvision_models() -> None:
    import torchvision
    from torchvision.transforms import v2

    torch.manual_seed(0)
    for name in ("resnet18", "mobilenet_v3_small", "vit_b_16"):
        net = torchvision.models.get_model(name, weights=None, num_classes=4).eval()
        size = 224 if name == "vit_b_16" else 64
        with torch.no_grad():
            assert net(torch.randn(1, 3, size, size)).shape == (1, 4), name
    image = torch.randint(0, 255, (3, 20, 20), dtype=torch.uint8)
    done = v2.Compose([v2.Resize((8, 8)), v2.ToDtype(torch.float32, scale=True)])(image)
    assert done.shape == (3, 8, 8) and done.dtype == torch.float32
    assert torchvision.utils.make_grid(torch.rand(4, 3, 5, 5)).shape[0] == 3


def torchvision_operators() -> None:
    from torchvision import ops

    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [4, 4, 12, 14]])
    assert ops.nms(boxes, torch.tensor([0.7, 0.9, 0.8]), 0.5).tolist() == [1, 2]
    assert ops.batched_nms(boxes, torch.ones(3), torch.tensor([0, 1, 0]), 0.5).tolist() == [0, 1, 2]
    x = torch.rand(1, 4, 16, 16, requires_grad=True)
    for pool in (
        ops.RoIAlign((2, 2), 1.0, 2),
        ops.RoIPool((2, 2), 1.0),
        ops.PSRoIAlign((2, 2), 1.0, 2),
        ops.PSRoIPool((2, 2), 1.0),
    ):
        x.grad = None
        pool(x, [boxes]).sum().backward()
        assert abs(float(x.grad.sum()) - 3 * (16 if "PS" not in type(pool).__name__ else 4)) < 1e-3, pool
    assert torch.allclose(ops.roi_align(torch.ones(1, 1, 16, 16), [boxes], 3), torch.ones(3, 1, 3, 3))
    conv = ops.DeformConv2d(4, 3, 3, padding=1)
    still = F.conv2d(x, conv.weight, conv.bias, padding=1)
    assert torch.allclose(conv(x, torch.zeros(1, 18, 16, 16)), still, atol=1e-5)


def torchvision_detects() -> None:
    from torchvision.models import detection

    torch.manual_seed(0)
    sizes = {"weights": None, "weights_backbone": None, "num_classes": 3, "min_size": 64, "max_size": 64}
    net = detection.fasterrcnn_mobilenet_v3_large_320_fpn(**sizes)
    target = {"boxes": torch.tensor([[2.0, 2, 30, 40]]), "labels": torch.tensor([1])}
    losses = net([torch.rand(3, 64, 64)], [target])
    sum(losses.values()).backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters() if p.grad is not None)
    found = net.eval()([torch.rand(3, 64, 64)])[0]
    assert found["boxes"].shape[1] == 4 and len(found["boxes"]) == len(found["scores"])


def torchvision_transforms() -> None:
    from torchvision import transforms as v1, tv_tensors
    from torchvision.transforms import v2

    image = torch.arange(3 * 24 * 20, dtype=torch.uint8).reshape(3, 24, 20)
    boxes = tv_tensors.BoundingBoxes([[1, 2, 5, 6]], format="XYXY", canvas_size=(24, 20))
    both = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.Resize((12, 10))])({"image": image, "boxes": boxes})
    assert both["boxes"].tolist() == [[7, 1, 9, 3]] and type(both["boxes"]) is tv_tensors.BoundingBoxes
    torch.manual_seed(0)
    for make in (
        v2.RandAugment,
        v2.TrivialAugmentWide,
        v2.AugMix,
        v2.RandomPhotometricDistort,
        v1.AutoAugment,
    ):
        assert make()(image).shape == image.shape
    for make in (v2.RandomPerspective, v1.RandomPerspective, v2.RandomErasing, v2.RandomEqualize):
        assert make(p=1.0)(image).shape == image.shape
    steps = [
        v1.ToPILImage(),
        v1.Resize(16),
        v1.RandomCrop(12),
        v1.ToTensor(),
        v1.Normalize((0.5,) * 3, (0.5,) * 3),
    ]
    assert v1.Compose(steps)(image).shape == (3, 12, 12)
    mixed, shares = v2.MixUp(num_classes=3)(torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 0]))
    assert mixed.shape == (4, 3, 8, 8) and torch.allclose(shares.sum(1), torch.ones(4))


def _architecture(row: Architecture) -> Any:
    def run() -> None:
        torch.manual_seed(0)
        net = row.build()
        tokens = torch.randint(3, 90, (2, 7))
        found = net(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens)
        assert found.logits.shape == (2, 7, 99)
        found.loss.backward()
        assert any(p.grad is not None for p in net.parameters())
        if row.kind != "masked":
            done = net.eval().generate(tokens, max_new_tokens=4, do_sample=False, pad_token_id=0)
            assert done.shape[0] == 2 and done.shape[1] <= 11

    run.__name__ = f"transformers_{row.name.lower()}"
    return run


PROGRAMS = [
    einops_rearranges,
    safetensors_round_trip,
    tensorboard_reads,
    torchmetrics_scores,
    torchinfo_summary,
    ignite_trains,
    torchdiffeq_integrates,
    timm_models,
    timm_training_tools,
    x_transformers_models,
    accelerate_trains,
    torchvision_models,
    torchvision_operators,
    torchvision_detects,
    torchvision_transforms,
    *[_architecture(row) for row in ARCHITECTURES],
]


def main(names: list[str]) -> int:
    """Runs the programs of these names, or all; the number that failed."""
    failed = 0
    for program in PROGRAMS:
        if names and program.__name__ not in names:
            continue
        try:
            program()
            print(f"ok {program.__name__}", flush=True)
        except Exception as error:
            failed += 1
            if names:
                traceback.print_exc()
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            print(f"failed {program.__name__}: {text}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
