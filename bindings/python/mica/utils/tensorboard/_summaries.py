"""The protocol buffers that TensorBoard reads: one function for each kind of summary."""

from __future__ import annotations

import io
import json
import wave
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto


def array(value: Any) -> np.ndarray:
    """A tensor, an array, a number or a list of them as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype).endswith(("bfloat16", "float16")) else value
        return np.asarray(value.numpy())
    if isinstance(value, (list, tuple)):
        return np.array([array(v) for v in value])
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        return np.asarray(value)
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def number(value: Any) -> float:
    """A scalar; a tensor of one element counts as one."""
    found = array(value).squeeze()
    if found.ndim:
        raise AssertionError("scalar should be 0D")
    return float(found)


def _shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])


def _plugin(name: str, content: bytes = b"") -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=content))


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Summary:
    """Makes the summary of a number.

    As `torch.utils.tensorboard.summary.scalar`.

    Args:
        name (str): Tag of the summary.
        tensor (float or Tensor): The number, or a Tensor of one element.
        collections (object, optional): No effect. Default: None.
        new_style (bool): Write it as a tensor, which newer versions of TensorBoard read faster.
            Default: False.
        double_precision (bool): In the new style, keep 64 bits. Default: False.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.scalar("loss", 0.5).value[0].simple_value
        0.5
    """
    value = number(tensor)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=value)])
    kind = {"double_val": [value], "dtype": "DT_DOUBLE"}
    if not double_precision:
        kind = {"float_val": [value], "dtype": "DT_FLOAT"}
    return Summary(value=[Summary.Value(tag=name, tensor=TensorProto(**kind), metadata=_plugin("scalars"))])


def tensor_proto(tag: str, tensor: Any) -> Summary:
    """Makes the summary of a Tensor's values.

    As `torch.utils.tensorboard.summary.tensor_proto`.

    Args:
        tag (str): Tag of the summary.
        tensor (Tensor or array): The values, of any shape; kept in float32.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> list(summary.tensor_proto("x", mica.ones(2)).value[0].tensor.float_val)
        [1.0, 1.0]
    """
    values = array(tensor).astype(np.float32)
    proto = TensorProto(
        dtype="DT_FLOAT", float_val=values.reshape(-1).tolist(), tensor_shape=_shape(*values.shape)
    )
    return Summary(value=[Summary.Value(tag=tag, tensor=proto, metadata=_plugin("tensor"))])


def _exponential_bins() -> list[float]:
    """Edges that grow by a tenth from 1e-12 to 1e20, on both sides of 0."""
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0.0] + edges


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """Makes the summary of how often values occur.

    As `torch.utils.tensorboard.summary.histogram`.

    Args:
        name (str): Tag of the summary.
        values (Tensor or array): The values, of any shape.
        bins (str or sequence of float): "tensorflow", another way of `numpy.histogram`, or the edges.
        max_bins (int, optional): Most bins; neighbors are joined. Default: as many as there are.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.histogram("x", mica.ones(3), [0.0, 2.0]).value[0].histo.num
        3.0
    """
    flat = array(values).astype(float).reshape(-1)
    if flat.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    edges: Any = _exponential_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = np.histogram(flat, bins=edges)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        rest = len(counts) % step
        padded = np.pad(counts, (0, step - rest)) if rest else counts
        counts = padded.reshape(-1, step).sum(-1)
        limits = np.append(limits[:-1][::step], limits[-1])
    held = np.flatnonzero(counts)
    first, last = held[0], held[-1]
    # One empty bucket before the first that holds something, so that its lower edge is known.
    lower = [0.0] if first == 0 else []
    counts = np.concatenate([lower, counts[max(first - 1, 0) : last + 1]])
    limits = limits[first : last + 2]
    proto = HistogramProto(
        min=flat.min(),
        max=flat.max(),
        num=len(flat),
        sum=flat.sum(),
        sum_squares=float(flat.dot(flat)),
        bucket_limit=limits.tolist(),
        bucket=counts.tolist(),
    )
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Summary:
    """Makes the summary of a histogram that was counted already.

    As `torch.utils.tensorboard.summary.histogram_raw`.

    Args:
        name (str): Tag of the summary.
        min (float): Least value.
        max (float): Greatest value.
        num (float): How many values.
        sum (float): Sum of the values.
        sum_squares (float): Sum of their squares.
        bucket_limits (sequence of float): Upper edges of the bins.
        bucket_counts (sequence of int): Values in each bin.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.histogram_raw("x", 0, 1, 2, 1, 1, [1.0], [2]).value[0].histo.num
        2.0
    """
    numbers = {"min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares}
    proto = HistogramProto(bucket_limit=list(bucket_limits), bucket=list(bucket_counts), **numbers)
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def as_rows(value: Any, dataformats: str) -> np.ndarray:
    """An image, or a batch of images side by side, as (H, W, 3)."""
    found = array(value)
    letters = dataformats.upper()
    if len(set(letters)) != len(letters) or set(letters) - set("NCHW") or found.ndim != len(letters):
        raise AssertionError(
            f"size of input tensor and input format are different.         tensor shape: {found.shape}, "
            f"input_format: {dataformats}"
        )
    for letter in "NCHW":
        if letter not in letters:
            found = np.expand_dims(found, 0)
            letters = letter + letters
    found = found.transpose([letters.index(letter) for letter in "NHWC"])
    if found.shape[-1] == 1:
        found = np.concatenate([found] * 3, -1)
    count, height, width, channels = found.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = np.zeros((rows * height, columns * width, channels), found.dtype)
    for k, picture in enumerate(found):
        y, x = k // columns * height, k % columns * width
        grid[y : y + height, x : x + width] = picture
    return grid


def _bytes(values: np.ndarray) -> np.ndarray:
    """Colours as bytes: of floats, those of 0 to 1."""
    if values.dtype == np.uint8:
        return values
    return (values.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """Makes the summary of an image, as PNG; needs the package PIL.

    As `torch.utils.tensorboard.summary.image`.

    Args:
        tag (str): Tag of the summary.
        tensor (Tensor or array): The image: floats of 0 to 1, or uint8.
        rescale (float): By what it is enlarged. Default: 1.
        dataformats (str): Order of the dimensions. Default: "NCHW".

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.image("x", mica.ones(1, 3, 4, 5)).value[0].image.width
        5
    """
    return drawn(tag, as_rows(tensor, dataformats), rescale=rescale)


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Summary:
    """Makes the summary of an image with boxes drawn on it.

    As `torch.utils.tensorboard.summary.image_boxes`.

    Args:
        tag (str): Tag of the summary.
        tensor_image (Tensor or array): The image: floats of 0 to 1, or uint8.
        tensor_boxes (Tensor or array): The boxes, `(N, 4)`: left, top, right, bottom, in pixels.
        rescale (float): By what it is enlarged. Default: 1.
        dataformats (str): Order of the image's dimensions. Default: "CHW".
        labels (list of str, optional): Text at each box. Default: none.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.image_boxes("x", mica.ones(3, 4, 5), [[0, 0, 2, 2]]).value[0].image.width
        5
    """
    return drawn(tag, as_rows(tensor_image, dataformats), tensor_boxes, labels, rescale)


def drawn(tag: str, rows: np.ndarray, boxes: Any = None, labels: Any = None, rescale: float = 1) -> Summary:
    """A picture (H, W, 3) with boxes around its parts, as PNG."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(_bytes(rows))
    if boxes is not None:
        draw = ImageDraw.Draw(picture)
        for k, (left, top, right, bottom) in enumerate(array(boxes).tolist()):
            draw.rectangle([left, top, right, bottom], outline="red", width=2)
            if labels is not None:
                draw.text((left, top), str(labels[k]), fill="red")
    if rescale != 1:
        picture = picture.resize((int(picture.width * rescale), int(picture.height * rescale)))
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return _picture(tag, rows.shape[-1], picture.size, out.getvalue())


def _picture(tag: str, channels: int, size: tuple[int, int], data: bytes) -> Summary:
    proto = Summary.Image(height=size[1], width=size[0], colorspace=channels, encoded_image_string=data)
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Makes the summary of a video, as a moving GIF.

    As `torch.utils.tensorboard.summary.video`.

    Args:
        tag (str): Tag of the summary.
        tensor (Tensor or array): `(N, T, C, H, W)`, N videos side by side of T frames each.
        fps (float): Frames a second. Default: 4.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.video("x", mica.ones(1, 2, 3, 4, 5)).value[0].image.width
        5
    """
    from PIL import Image

    frames = [Image.fromarray(_bytes(as_rows(step, "NCHW"))) for step in array(tensor).swapaxes(0, 1)]
    out = io.BytesIO()
    frames[0].save(
        out, format="GIF", save_all=True, append_images=frames[1:], duration=int(1000 / fps), loop=0
    )
    return _picture(tag, 3, frames[0].size, out.getvalue())


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """Makes the summary of a sound, of one channel.

    As `torch.utils.tensorboard.summary.audio`.

    Args:
        tag (str): Tag of the summary.
        tensor (Tensor or array): The samples, `(L,)` or `(1, L)`, from -1 to 1.
        sample_rate (int): Samples a second. Default: 44100.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.audio("x", mica.zeros(8)).value[0].audio.length_frames
        8
    """
    sound = array(tensor).squeeze()
    if sound.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (np.clip(sound, -1, 1) * np.iinfo(np.int16).max).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    proto = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=samples.size,
        encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=proto)])


def text(tag: str, text: str) -> Summary:
    """Makes the summary of a text.

    As `torch.utils.tensorboard.summary.text`.

    Args:
        tag (str): Tag of the summary.
        text (str): The text, in Markdown.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.text("note", "*begun*").value[0].tag
        'note/text_summary'
    """
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    proto = TensorProto(dtype="DT_STRING", string_val=[text.encode("utf-8")], tensor_shape=_shape(1))
    content = TextPluginData(version=0).SerializeToString()
    metadata = _plugin("text", content)
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=proto)])


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Summary:
    """Makes the summary of the curve of precision against recall of a binary classifier.

    As `torch.utils.tensorboard.summary.pr_curve`.

    Args:
        tag (str): Tag of the summary.
        labels (Tensor or array): What is right, 0 or 1, of any shape.
        predictions (Tensor or array): Probabilities of 1, of the same shape.
        num_thresholds (int): Points of the curve, 127 at most. Default: 127.
        weights (Tensor or array, optional): Weight of each label. Default: 1.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.pr_curve("x", mica.tensor([0, 1]), mica.tensor([0.2, 0.9]), 3).value[0].tag
        'x'
    """
    truth, guess = array(labels).reshape(-1) > 0, array(predictions).reshape(-1)
    weight = np.broadcast_to(1.0 if weights is None else array(weights).reshape(-1), truth.shape)
    bounds = min(num_thresholds, 127)
    place = np.clip(np.floor(guess * (bounds - 1)).astype(int), 0, bounds - 1)
    positive = np.bincount(place, weight * truth, bounds)[::-1].cumsum()[::-1]
    negative = np.bincount(place, weight * ~truth, bounds)[::-1].cumsum()[::-1]
    tiny = 1e-7
    precision = positive / np.maximum(positive + negative, tiny)
    recall = positive / np.maximum(positive[0], tiny)
    negatives = (negative[0] - negative, positive[0] - positive)
    return pr_curve_raw(tag, positive, negative, *negatives, precision, recall, bounds)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Summary:
    """Makes the summary of a curve of precision against recall that was counted already.

    As `torch.utils.tensorboard.summary.pr_curve_raw`.

    Args:
        tag (str): Tag of the summary.
        tp (Tensor or array): True positives at each threshold, `(num_thresholds,)`, as all that follow.
        fp (Tensor or array): False positives.
        tn (Tensor or array): True negatives.
        fn (Tensor or array): False negatives.
        precision (Tensor or array): Share of the predicted positives that are right.
        recall (Tensor or array): Share of the positives that are found.
        num_thresholds (int): Points of the curve, 127 at most. Default: 127.
        weights (object, optional): No effect. Default: None.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.pr_curve_raw("x", *[mica.ones(3)] * 6, 3).value[0].tensor.tensor_shape.dim[0].size
        6
    """
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    bounds = min(num_thresholds, 127)
    data = np.stack([array(row) for row in (tp, fp, tn, fn, precision, recall)])
    content = PrCurvePluginData(version=0, num_thresholds=bounds).SerializeToString()
    proto = TensorProto(
        dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(*data.shape)
    )
    return Summary(value=[Summary.Value(tag=tag, metadata=_plugin("pr_curves", content), tensor=proto)])


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> Summary:
    """Makes the summary that says which scalars share a chart.

    As `torch.utils.tensorboard.summary.custom_scalars`.

    Args:
        layout (dict): `{category: {title: ["Multiline", tags]}}`, or
            `["Margin", [value, lower, upper]]`.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> summary.custom_scalars({"all": {"loss": ["Multiline", ["a", "b"]]}}).value[0].tag
        'custom_scalars__config__'
    """
    from tensorboard.plugins.custom_scalar import layout_pb2 as pb

    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"A margin chart takes 3 tags, not ({len(tags)}).")
                series = pb.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(pb.Chart(title=title, margin=pb.MarginChartContent(series=[series])))
            else:
                made.append(pb.Chart(title=title, multiline=pb.MultilineChartContent(tag=tags)))
        categories.append(pb.Category(title=category, chart=made))
    content = pb.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=_shape())
    value = Summary.Value(tag="custom_scalars__config__", tensor=proto, metadata=_plugin("custom_scalars"))
    return Summary(value=[value])


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: Any,
    display_name: str | None = None,
    description: str | None = None,
) -> Summary:
    """Makes the summary of points in space, or of a surface of triangles.

    As `torch.utils.tensorboard.summary.mesh`.

    Args:
        tag (str): Tag of the summary.
        vertices (Tensor or array): The points, `(N, V, 3)`.
        colors (Tensor or array or None): Their colors, `(N, V, 3)`, 0 to 255.
        faces (Tensor or array or None): The triangles, `(N, F, 3)`, as numbers of points.
        config_dict (dict or None): Camera, materials and lights, for three.js.
        display_name (str, optional): Name to show instead of the tag. Default: none.
        description (str, optional): Text to show with it. Default: none.

    Returns:
        Summary: The protocol buffer, for `FileWriter.add_summary`.

    Example:
        >>> from mica.utils.tensorboard import summary
        >>> len(summary.mesh("x", mica.ones(1, 3, 3), None, None, None).value)
        1
    """
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    kinds = [(MeshPluginData.VERTEX, vertices), (MeshPluginData.FACE, faces), (MeshPluginData.COLOR, colors)]
    given = [(kind, array(data)) for kind, data in kinds if data is not None]
    components = metadata.get_components_bitmask([kind for kind, _ in given])
    values = []
    for kind, data in given:
        shape = _shape(*data.shape)
        proto = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=shape)
        about = metadata.create_summary_metadata(
            tag,
            display_name or "",
            kind,
            components,
            list(data.shape),
            description,
            json_config=json.dumps(config_dict or {}, sort_keys=True),
        )
        values.append(Summary.Value(tag=metadata.get_instance_name(tag, kind), tensor=proto, metadata=about))
    return Summary(value=values)
