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


_TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}
_CAUSAL = {
    "Llama": {"num_key_value_heads": 2},
    "Mistral": {"num_key_value_heads": 2},
    "Qwen2": {"num_key_value_heads": 2},
    "Qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "Gemma": {"num_key_value_heads": 2, "head_dim": 8},
    "Gemma2": {"num_key_value_heads": 2, "head_dim": 8},
    "Phi": {},
    "Phi3": {"num_key_value_heads": 2, "pad_token_id": 0},
    "GPTNeoX": {},
    "GPT2LMHead": {"n_layer": 2, "n_embd": 32, "n_head": 4},
    "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "Bloom": {"n_head": 4, "n_layer": 2},
    "Falcon": {"num_attention_heads": 4},
    "StableLm": {"num_key_value_heads": 2},
}
_MASKED = ("Bert", "Roberta", "Electra", "DistilBert", "Albert", "DebertaV2")


def _causal(name: str) -> Any:
    def run() -> None:
        import transformers

        torch.manual_seed(0)
        config = getattr(transformers, f"{name.removesuffix('LMHead')}Config")(**{**_TINY, **_CAUSAL[name]})
        head = f"{name}Model" if name.endswith("LMHead") else f"{name}ForCausalLM"
        net = getattr(transformers, head)(config)
        tokens = torch.randint(3, 90, (2, 7))
        found = net(input_ids=tokens, labels=tokens)
        assert found.logits.shape == (2, 7, config.vocab_size)
        found.loss.backward()
        assert any(p.grad is not None for p in net.parameters())
        net.eval()
        with torch.no_grad():
            assert net.generate(tokens, max_new_tokens=4, do_sample=False, pad_token_id=0).shape == (2, 11)

    run.__name__ = f"transformers_{name.lower()}"
    return run


def _masked(name: str) -> Any:
    def run() -> None:
        import transformers

        torch.manual_seed(0)
        extra = {"dim": 32, "n_heads": 4, "n_layers": 2, "hidden_dim": 48} if name == "DistilBert" else {}
        extra.update({"embedding_size": 32} if name in ("Electra", "Albert") else {})
        config = getattr(transformers, f"{name}Config")(**{**_TINY, **extra})
        net = getattr(transformers, f"{name}ForMaskedLM")(config)
        tokens = torch.randint(3, 90, (2, 7))
        found = net(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens)
        found.loss.backward()
        assert found.logits.shape == (2, 7, 99)

    run.__name__ = f"transformers_{name.lower()}"
    return run


PROGRAMS = [
    einops_rearranges,
    safetensors_round_trip,
    torchmetrics_scores,
    torchinfo_summary,
    ignite_trains,
    torchdiffeq_integrates,
    timm_models,
    timm_training_tools,
    x_transformers_models,
    accelerate_trains,
    torchvision_models,
    *[_causal(name) for name in _CAUSAL],
    *[_masked(name) for name in _MASKED],
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
