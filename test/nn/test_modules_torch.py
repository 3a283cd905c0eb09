"""Every module of torch.nn beside torch's: constructor, attributes, text, first weights, results in
training and evaluation, gradients, float64, copies and pickles, and what bad constructor calls raise.

The data are modules.txt (one configuration a line) and the list BAD below.
"""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from shim import SHIM, agree, plain

CALLS = [
    line
    for line in Path(__file__).with_name("module_calls.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
# A constructor by its inputs: shapes apart by ";", "i" before integers under 3, "p" before positive numbers.
MODULES = {
    line.split(" | ")[0].strip(): line.split(" | ")[1].strip()
    for line in Path(__file__).with_name("modules.txt").read_text().splitlines()
    if line and not line.startswith("#")
}
CLASSES = sorted(
    name
    for name, value in vars(torch.nn).items()
    if isinstance(value, type) and issubclass(value, torch.nn.Module)
)
# Attributes that hold the library's own objects, or what Mica does not need.
OPAQUE = {
    "_initialize_hook",
    "cls_to_become",
    "_flat_weights",  # Mica reads the weights by name at each call
    "_flat_weight_refs",
    "use_nested_tensor",  # Mica has no nested tensors
}
RANDOM = ("Dropout(", "Dropout1d", "Dropout2d", "Dropout3d", "RReLU", "Fractional")


def parameters_of(function: Any) -> list[tuple[str, str, str]]:
    def default(value: Any) -> str:
        if callable(value):
            return str(getattr(value, "__name__", value))
        return repr(value).replace("mica", "torch")

    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind.name, default(p.default)) for p in found]


@pytest.mark.parametrize("name", CLASSES)
def test_constructor(name: str) -> None:
    ours, theirs = getattr(SHIM.nn, name), getattr(torch.nn, name)
    expected = parameters_of(theirs)
    open_ended = [kind for _, kind, _ in expected] == ["VAR_POSITIONAL", "VAR_KEYWORD"]
    if not open_ended:  # where torch's own takes anything, Mica may say more
        assert parameters_of(ours) == expected
    if theirs.forward is not torch.nn.Module.forward:
        assert parameters_of(ours.forward) == parameters_of(theirs.forward)
    lacks = [n for n in vars(theirs) if not n.startswith("_") and not hasattr(ours, n)]
    assert not lacks


def bases(library: Any, name: str) -> set[str]:
    """Those of torch.nn's classes, and of the private ones in its modules, that a class is one of."""
    kinds = getattr(library.nn, name).__mro__
    public = {n for n in CLASSES if getattr(library.nn, n) in kinds}
    hidden = {k.__name__ for k in getattr(torch.nn, name).__mro__ if k.__name__.startswith("_")}
    return public | (hidden & {k.__name__ for k in kinds})


@pytest.mark.parametrize("name", [n for n in CLASSES if not n.startswith(("LazyBatch", "LazyInstance"))])
def test_bases(name: str) -> None:
    """isinstance(m, Dropout), isinstance(m, _DropoutNd): a lazy norm alone is of its plain class here, not in torch."""
    assert bases(SHIM, name) == bases(torch, name)


def inputs(library: Any, text: str) -> list[Any]:
    made = []
    for n, part in enumerate(text.split(";")):
        mark = part.strip()[:1]
        shape = tuple(int(v) for v in part.strip().lstrip("ip").split())
        count = math.prod(shape)
        if mark == "i":
            made.append(library.arange(count).remainder(3).reshape(shape))
        elif mark == "p":
            made.append(library.arange(float(count)).reshape(shape) / count + 0.1)
        else:
            made.append(library.sin(library.arange(float(count)) * (1.3 + n)).reshape(shape))
    return made


def attributes(module: Any) -> dict[str, Any]:
    """The keys that vars() gives, and the values that are numbers, words or tuples of them."""

    def value(v: Any) -> Any:
        if isinstance(v, (int, float, str, bool, type(None))):
            return v
        if isinstance(v, (tuple, list)):
            return [type(v).__name__, *map(value, v)]
        return "function" if callable(v) and not isinstance(v, type) else type(v).__name__

    return {k: value(v) for k, v in vars(module).items() if k not in OPAQUE}


def call(library: Any, module: Any, text: str, dtype: Any = None) -> list[Any]:
    """Results, and the gradients of inputs and parameters."""
    given = [x if dtype is None or not x.is_floating_point() else x.to(dtype) for x in inputs(library, text)]
    given = [x.requires_grad_() if x.is_floating_point() else x for x in given]
    library.manual_seed(3)
    copied = [x.clone() if x.is_floating_point() else x for x in given]  # in-place modules write them
    result = None
    try:
        result = module(*copied)
        flat = [r for r in flatten(result) if r.is_floating_point()]
        sum((r * r).sum() + r.sum() for r in flat).backward()
    except RuntimeError as error:  # targets without a gradient
        return [plain(result), type(error).__name__]
    leaves = [*given, *module.parameters()]
    grads = [None if x.grad is None else plain(x.grad) for x in leaves]
    for parameter in module.parameters():
        parameter.grad = None
    return [plain(result), grads]


def text_of(module: Any) -> str:
    return repr(module).replace("mica.", "torch.")


def dtypes(library: Any, module: Any, text: str) -> Any:
    """The dtypes of the results for bfloat16."""
    given = [x.bfloat16() if x.is_floating_point() else x for x in inputs(library, text)]
    try:
        return [str(r.dtype).split(".")[-1] for r in flatten(module(*given))]
    except NotImplementedError:
        return "not there"


def flatten(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [y for part in x for y in flatten(part)]
    return [x] if hasattr(x, "dtype") else []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", MODULES)
def test_configuration(text: str) -> None:
    found = []
    for library in (SHIM, torch):
        library.manual_seed(11)
        module = eval(f"library.nn.{text}", {"library": library, "L": library})
        shapes = MODULES[text]
        random = any(name in text for name in RANDOM)
        parts: dict[str, Any] = {"attributes": attributes(module), "text": text_of(module)}
        if not random:
            parts["training"] = call(library, module, shapes)
        parts["state"] = plain(dict(module.state_dict()))
        parts["names"] = [[n for n, _ in module.named_parameters()], [n for n, _ in module.named_buffers()]]
        if "Fractional" not in text:
            parts["evaluation"] = call(library, module.eval(), shapes)
            parts["float64"] = call(
                library, copy.deepcopy(module).to(library.float64), shapes, library.float64
            )
            parts["bfloat16"] = dtypes(library, copy.deepcopy(module).to(library.bfloat16), shapes)
        again = pickle.loads(pickle.dumps(module))
        parts["pickled"] = [text_of(again), plain(dict(again.state_dict())), attributes(again)]
        found.append(parts)
    for part in found[1]:
        if found[1][part] in ("not there", [None, "RuntimeError"]):
            continue  # torch lacks some kernels for bfloat16, and some gradients of targets
        agree(found[0].get(part), found[1][part], f"{text}: {part}", 5e-5)


def kind_of(make: Any) -> str:
    try:
        make()
    except Exception as error:
        return next(b.__name__ for b in type(error).__mro__ if b.__module__ == "builtins")
    return "nothing"


# Constructor calls that torch refuses or, some of them, takes.
BAD = [
    "Linear()",
    "Linear(3)",
    "Linear(-1,2)",
    "Linear('a',2)",
    "Linear(2,3,4,5,6,7)",
    "Linear(2.5,3)",
    "Linear(3,2,dtype=L.int64)",
    "Conv1d(4,6,3,groups=0)",
    "Conv2d(3,4,3,groups=2)",
    "Conv2d(4,3,3,groups=2)",
    "Conv2d(3,4,3,padding_mode='x')",
    "Conv2d(3,4,3,padding='x')",
    "Conv2d(3,4,3,stride=2,padding='same')",
    "Conv2d(3,4,(1,2,3))",
    "Conv2d(3,4,'a')",
    "ConvTranspose2d(3,4,3,padding_mode='reflect')",
    "ConvTranspose2d(3,4,3,padding='same')",
    "Conv3d(3,4)",
    "BatchNorm1d()",
    "BatchNorm2d(-1)",
    "BatchNorm2d('a')",
    "GroupNorm(3,4)",
    "GroupNorm(0,4)",
    "GroupNorm(2,4,bogus=1)",
    "LayerNorm()",
    "LayerNorm('a')",
    "LayerNorm((-1,))",
    "RMSNorm()",
    "InstanceNorm1d()",
    "LocalResponseNorm()",
    "Dropout(1.5)",
    "Dropout(-0.1)",
    "Dropout('a')",
    "AlphaDropout(2)",
    "FeatureAlphaDropout(-1)",
    "Dropout2d(7)",
    "Embedding(3)",
    "Embedding(3,2,padding_idx=3)",
    "Embedding(3,2,padding_idx=-4)",
    "Embedding(-1,2)",
    "Embedding(3,2,_weight=L.ones(2,2))",
    "EmbeddingBag(3,2,padding_idx=5)",
    "EmbeddingBag(3,2,mode='x')",
    "EmbeddingBag(3,2,_weight=L.ones(2,2))",
    "Embedding.from_pretrained(L.ones(3))",
    "EmbeddingBag.from_pretrained(L.ones(2))",
    "RNN()",
    "RNN(3,4,nonlinearity='x')",
    "RNN(3,0)",
    "RNN(3,4,0)",
    "RNN(3,4,dropout=2)",
    "RNN(3,4,dropout='a')",
    "LSTM(3,4,proj_size=4)",
    "GRU(3,4,proj_size=2)",
    "RNN(3,4,proj_size=1)",
    "LSTM(3,-1)",
    "GRU(3,4,dropout=True)",
    "GRU(3,'a')",
    "LSTM(3,4,num_layers=1.5)",
    "RNNCell(3)",
    "RNNCell(3,4,nonlinearity='x')",
    "LSTMCell()",
    "GRUCell(3,-1)",
    "RNNBase('X',2,3)",
    "RNNBase('LSTM',2,3)",
    "MultiheadAttention(5,2)",
    "MultiheadAttention(0,2)",
    "MultiheadAttention(4,0)",
    "MultiheadAttention(4,-1)",
    "TransformerEncoderLayer(4,2,activation='x')",
    "TransformerEncoderLayer(5,2)",
    "TransformerDecoderLayer(4,3)",
    "Transformer(4,3)",
    "TransformerEncoder(None,2)",
    "TransformerDecoder()",
    "Softplus(1,2,3)",
    "PReLU('a')",
    "PReLU(0)",
    "GELU('x')",
    "Threshold()",
    "Threshold(1)",
    "Hardtanh(1,0)",
    "Hardtanh(1,1)",
    "LeakyReLU(-1)",
    "RReLU(1,2,3,4)",
    "ELU('a')",
    "Softmax('a')",
    "GLU('a')",
    "CELU()",
    "Hardtanh(min_value=-2,max_value=2)",
    "ReLU6(2,3)",
    "MaxPool2d()",
    "MaxPool2d(0)",
    "AvgPool2d(0)",
    "AdaptiveAvgPool2d()",
    "LPPool2d(2)",
    "MaxUnpool2d()",
    "FractionalMaxPool2d(2)",
    "FractionalMaxPool2d(2,output_size=2,output_ratio=0.5)",
    "FractionalMaxPool2d(2,output_ratio=2)",
    "FractionalMaxPool3d(2,output_ratio=(0.5,0.5,1.5))",
    "FractionalMaxPool3d(2)",
    "MSELoss(reduction='x')",
    "MSELoss(size_average=False)",
    "L1Loss(reduce=False)",
    "CrossEntropyLoss(weight=3)",
    "CrossEntropyLoss(label_smoothing=2)",
    "NLLLoss(ignore_index='a')",
    "SmoothL1Loss(beta=-1)",
    "HuberLoss(delta=0)",
    "HuberLoss(delta=-1)",
    "MultiMarginLoss(p=3)",
    "MultiMarginLoss(weight=L.ones(2,2))",
    "TripletMarginLoss(margin=-1)",
    "TripletMarginLoss(margin=0)",
    "TripletMarginWithDistanceLoss(margin=-1)",
    "TripletMarginWithDistanceLoss(margin=0)",
    "GaussianNLLLoss(eps=-1)",
    "KLDivLoss(1,2,3,4,5)",
    "CTCLoss(1,2,3,4)",
    "BCELoss(weight='a')",
    "PoissonNLLLoss(1,2,3,4,5,6,7)",
    "AdaptiveLogSoftmaxWithLoss(4,6,[])",
    "AdaptiveLogSoftmaxWithLoss(4,6,[7])",
    "AdaptiveLogSoftmaxWithLoss(4,6,[3,2])",
    "AdaptiveLogSoftmaxWithLoss(4,6,[2,2])",
    "AdaptiveLogSoftmaxWithLoss(4,6,[0])",
    "AdaptiveLogSoftmaxWithLoss(4,6,[1.5])",
    "Bilinear(0,2,3)",
    "Bilinear(2,3)",
    "Flatten('a')",
    "Unflatten(1,3)",
    "Unflatten('a',(2,2))",
    "Unflatten(1,(2,'a'))",
    "Unflatten(1,[2,2])",
    "Unflatten('N',(('A',2),('B',2)))",
    "Unflatten(1,(2.0,2))",
    "Unflatten('N',((1,2),))",
    "Fold(3)",
    "Unfold()",
    "PixelShuffle()",
    "PixelShuffle('a')",
    "ChannelShuffle(0)",
    "Upsample(2,2)",
    "UpsamplingNearest2d(1,2,3)",
    "Sequential(3)",
    "Sequential('a')",
    "ModuleList([3])",
    "ModuleList(3)",
    "ModuleDict([3])",
    "ModuleDict({'a':3})",
    "ModuleDict({3:L.nn.ReLU()})",
    "ParameterList(3)",
    "ParameterDict(3)",
    "ParameterList(['a'])",
    "ParameterDict({'a':3})",
    "ModuleDict(3)",
    "ConstantPad1d()",
    "ConstantPad1d(1)",
    "ZeroPad2d()",
    "ReflectionPad1d('a')",
    "ReplicationPad3d((1,2,3))",
    "CircularPad2d((1,2))",
    "Module(3)",
    "Module(a=1)",
    "Identity(1,2,a=3)",
    "LazyLinear()",
    "LazyConv2d(3)",
    "LazyBatchNorm1d(bogus=1)",
    "LazyConv2d(4,3,groups=3)",
    "CosineSimilarity(1,2,3)",
    "PairwiseDistance(1,2,3,4)",
    "SyncBatchNorm()",
    "Parameter(L.ones(2).long())",
    "Parameter(L.ones(2),3,4)",
    "Buffer(L.ones(1),persistent=False)",
    "UninitializedParameter()",
    "UninitializedBuffer()",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", BAD)
def test_bad_constructor(text: str) -> None:
    kinds = [kind_of(lambda L=L: eval(f"L.nn.{text}", {"L": L})) for L in (SHIM, torch)]
    assert kinds[0] == kinds[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", CALLS)
def test_call_that_does_not_fit(line: str) -> None:
    text, _, shapes = (part.strip() for part in line.partition("|"))
    kinds = [
        kind_of(lambda L=L: eval(f"L.nn.{text}", {"L": L})(*(inputs(L, shapes) if shapes else ())))
        for L in (SHIM, torch)
    ]
    assert kinds[0] == kinds[1]
