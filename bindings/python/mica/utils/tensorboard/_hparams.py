"""Hyperparameters and embeddings, which TensorBoard reads from summaries and files of their own."""

from __future__ import annotations

import os
from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import api_pb2 as pb, plugin_data_pb2

from mica._C import Tensor
from mica.utils.tensorboard._summaries import array, drawn

_TYPES = {
    str: "DATA_TYPE_STRING",
    bool: "DATA_TYPE_BOOL",
    int: "DATA_TYPE_FLOAT64",
    float: "DATA_TYPE_FLOAT64",
}


def _summary(tag: str, **content: Any) -> Summary:
    data = plugin_data_pb2.HParamsPluginData(version=0, **content).SerializeToString()
    plugin = SummaryMetadata.PluginData(plugin_name="hparams", content=data)
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])


def hparams(
    hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None
) -> tuple[Summary, Summary, Summary]:
    """Makes the summaries of a run's hyperparameters and results.

    As `torch.utils.tensorboard.summary.hparams`.

    Args:
        hparam_dict (dict): Hyperparameters by name: numbers, strings or booleans.
        metric_dict (dict of str to float): Results by tag.
        hparam_domain_discrete (dict of str to list, optional): Values that a hyperparameter can have.
            Default: none.

    Returns:
        tuple of 3 Summary: Of the experiment, of the run's start and of its end.

    Raises:
        TypeError: One of the first two is no dict.
        ValueError: A hyperparameter is of another type.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> [part.value[0].tag for part in summary.hparams({"lr": 0.1}, {"loss": 0.5})]
        ['_hparams_/experiment', '_hparams_/session_start_info', '_hparams_/session_end_info']
    """
    for what, value in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(value, dict):
            raise TypeError(f"{what} should be a dictionary, not ({type(value).__name__}).")
    start = plugin_data_pb2.SessionStartInfo()
    infos = []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        plain = array(value).item() if isinstance(value, Tensor) else value
        kind = next((t for t in (bool, str, int, float) if isinstance(plain, t)), None)
        if kind is None:
            raise ValueError(
                f"Hyperparameter ({name}) is of type ({type(value).__name__}); expected int, float, str, bool or a Tensor."
            )
        field = {str: "string_value", bool: "bool_value"}.get(kind, "number_value")
        setattr(start.hparams[name], field, plain)
        info = pb.HParamInfo(name=name, type=_TYPES[kind])
        for choice in (hparam_domain_discrete or {}).get(name, ()):
            setattr(info.domain_discrete.values.add(), field, choice)
        infos.append(info)
    names = [pb.MetricInfo(name=pb.MetricName(tag=tag)) for tag in metric_dict]
    experiment = pb.Experiment(hparam_infos=infos, metric_infos=names)
    end = plugin_data_pb2.SessionEndInfo(status="STATUS_SUCCESS")
    return (
        _summary("_hparams_/experiment", experiment=experiment),
        _summary("_hparams_/session_start_info", session_start_info=start),
        _summary("_hparams_/session_end_info", session_end_info=end),
    )


def embedding(folder: str, tag: str, step: int, points: Any, labels: Any, pictures: Any, header: Any) -> None:
    """Writes the files of an embedding and names them in the folder's projector_config.pbtxt."""
    values = array(points)
    if values.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    place = f"{step:05d}/{tag}"
    os.makedirs(os.path.join(folder, place), exist_ok=True)
    rows = ["\t".join(str(v) for v in row) for row in values.tolist()]
    _write(os.path.join(folder, place, "tensors.tsv"), rows)
    entry = [f'tensor_name: "{tag}:{step:05d}"', f'tensor_path: "{place}/tensors.tsv"']
    if labels is not None:
        if len(labels) != len(values):
            raise AssertionError("#labels should equal with #data points")
        several = header is not None
        lines = ["\t".join(str(v) for v in row) if several else str(row) for row in labels]
        _write(
            os.path.join(folder, place, "metadata.tsv"), [*(["\t".join(header)] if several else []), *lines]
        )
        entry.append(f'metadata_path: "{place}/metadata.tsv"')
    if pictures is not None:
        found = array(pictures)
        if len(found) != len(values):
            raise AssertionError("#images should equal with #data points")
        with open(os.path.join(folder, place, "sprite.png"), "wb") as file:
            file.write(sprite(found))
        entry += ["sprite {", f'  image_path: "{place}/sprite.png"']
        entry += [f"  single_image_dim: {size}" for size in (found.shape[3], found.shape[2])] + ["}"]
    with open(os.path.join(folder, "projector_config.pbtxt"), "a", encoding="utf-8") as file:
        file.write("embeddings {\n" + "".join(f"  {line}\n" for line in entry) + "}\n")


def _write(path: str, lines: list[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def sprite(found: Any) -> bytes:
    """The pictures (N, C, H, W) in a square, as TensorBoard's projector takes them."""
    import math

    import numpy as np

    side = math.ceil(math.sqrt(len(found)))
    count = side * side - len(found)
    padded = np.concatenate([found, np.zeros((count, *found.shape[1:]), found.dtype)])
    columns = [np.concatenate(list(padded[k * side : (k + 1) * side]), axis=2) for k in range(side)]
    rows = np.concatenate(columns, axis=1).transpose(1, 2, 0)
    rows = np.concatenate([rows] * 3, -1) if rows.shape[-1] == 1 else rows
    return bytes(drawn("", rows).value[0].image.encoded_image_string)
