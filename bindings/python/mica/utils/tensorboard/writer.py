"""SummaryWriter: writes what a training run reports into event files that TensorBoard reads."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from mica.utils.tensorboard import _hparams, _summaries


class FileWriter:
    """Writes events into a file of a folder, in the background.

    As `torch.utils.tensorboard.FileWriter`. `SummaryWriter` is what programs use.

    Args:
        log_dir (str or path): The folder; it is made.
        max_queue (int): Events that wait before they are written. Default: 10.
        flush_secs (int): Seconds after which those that wait are written anyway. Default: 120.
        filename_suffix (str): End of the file's name. Default: "".

    Example:
        >>> import tempfile
        >>> from mica.utils.tensorboard import FileWriter
        >>> folder = tempfile.mkdtemp()
        >>> writer = FileWriter(folder)
        >>> writer.get_logdir() == folder
        True
        >>> writer.close()
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Returns the folder."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Event, step: Any = None, walltime: float | None = None) -> None:
        """Writes an event.

        Args:
            event (Event): The protocol buffer.
            step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Writes a summary.

        Args:
            summary (Summary): The protocol buffer.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Writes what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begins a new file in the folder, after `close()`."""
        self.event_writer = EventFileWriter(self.get_logdir())


class SummaryWriter:
    """Writes what a training run reports into event files that TensorBoard shows.

    As `torch.utils.tensorboard.SummaryWriter`; it needs the package tensorboard. A context manager
    closes it.

    Args:
        log_dir (str or path, optional): The folder, one for each run.
            Default: `runs/<date>_<host><comment>`.
        comment (str): End of the default folder's name. Default: "".
        purge_step (int, optional): Step from which on TensorBoard hides what an interrupted run wrote.
            Default: none.
        max_queue (int): Reports that wait before they are written. Default: 10.
        flush_secs (int): Seconds after which those that wait are written anyway. Default: 120.
        filename_suffix (str): End of the files' names. Default: "".

    Raises:
        ImportError: The package tensorboard is not installed (from the import).

    Example:
        >>> import os, tempfile
        >>> from mica.utils.tensorboard import SummaryWriter
        >>> folder = tempfile.mkdtemp()
        >>> with SummaryWriter(folder) as writer:
        ...     for step in range(3):
        ...         writer.add_scalar("loss/train", 1 / (step + 1), step)
        >>> len(os.listdir(folder))
        1
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            options = (self.max_queue, self.flush_secs, self.filename_suffix)
            self.file_writer = FileWriter(self.log_dir, *options)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(file_version="brain.Event:2"), self.purge_step)
                start = Event(session_log=SessionLog(status=SessionLog.START))
                self.file_writer.add_event(start, self.purge_step)
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """Returns the folder that is written."""
        return str(self.log_dir)

    def _add(self, summary: Any, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Reports a number, a point of a curve.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            scalar_value (float or Tensor): The number, or a Tensor of one element.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
            new_style (bool): Write it as a tensor, which newer versions of TensorBoard read faster.
                Default: False.
            double_precision (bool): In the new style, keep 64 bits. Default: False.
        """
        self._add(
            _summaries.scalar(tag, scalar_value, None, new_style, double_precision), global_step, walltime
        )

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Reports several numbers for one chart, each in a run of its own below this one.

        Args:
            main_tag (str): Name of the chart.
            tag_scalar_dict (dict of str to float): The numbers by the names of their curves.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        walltime = time.time() if walltime is None else walltime
        base = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{base}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(
                    folder, self.max_queue, self.flush_secs, self.filename_suffix
                )
            summary = _summaries.scalar(main_tag, value)
            self.all_writers[folder].add_summary(summary, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Reports the values of a Tensor.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            tensor (Tensor or array): The values, of any shape; kept in float32.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        self._add(_summaries.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Reports how often values occur.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            values (Tensor or array): The values, of any shape.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            bins (str or sequence of float): "tensorflow" for edges that grow by a tenth, another way of
                `numpy.histogram`, or the edges. Default: "tensorflow".
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
            max_bins (int, optional): Most bins; neighbors are joined. Default: as many as there are.

        Raises:
            ValueError: There are no values.
        """
        self._add(_summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Reports a histogram that was counted already.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            min (float): Least value.
            max (float): Greatest value.
            num (int): How many values.
            sum (float): Sum of the values.
            sum_squares (float): Sum of their squares.
            bucket_limits (sequence of float): Upper edges of the bins.
            bucket_counts (sequence of int): Values in each bin.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.

        Raises:
            ValueError: The last two have different lengths.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        numbers = (min, max, num, sum, sum_squares)
        summary = _summaries.histogram_raw(tag, *numbers, bucket_limits, bucket_counts)
        self._add(summary, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Reports an image; needs the package PIL.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            img_tensor (Tensor or array): The image, `(C, H, W)`: floats of 0 to 1, or uint8 of 0 to 255.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
            dataformats (str): Order of the dimensions, of the letters N, C, H, W. Default: "CHW".

        Raises:
            AssertionError: The number of dimensions differs from `dataformats`.
        """
        self._add(_summaries.image(tag, img_tensor, 1, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Reports a batch of images side by side, eight in a row.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            img_tensor (Tensor or array): The images, `(N, C, H, W)`: floats of 0 to 1, or uint8 of 0 to
                255.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
            dataformats (str): Order of the dimensions. Default: "NCHW".

        Raises:
            AssertionError: The number of dimensions differs from `dataformats`.
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Reports an image with boxes drawn on it.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            img_tensor (Tensor or array): The image, as in `add_image`.
            box_tensor (Tensor or array): The boxes, `(N, 4)`: left, top, right, bottom, in pixels.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
            rescale (float): By what the picture is enlarged. Default: 1.
            dataformats (str): Order of the image's dimensions. Default: "CHW".
            labels (list of str, optional): Text at each box. Default: none.
        """
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != len(box_tensor):
            labels = None
        summary = _summaries.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(summary, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Reports a figure of matplotlib, as an image.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            figure (Figure or list of Figure): The figure, or several side by side.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            close (bool): Close the figure afterwards. Default: True.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        import numpy as np
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        pictures = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        self.add_image(tag, np.stack(pictures), global_step, walltime, "NHWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Reports a video, as a moving GIF.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            vid_tensor (Tensor or array): `(N, T, C, H, W)`, N videos side by side of T frames each: floats
                of 0 to 1, or uint8.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            fps (float): Frames a second. Default: 4.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        self._add(_summaries.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Reports a sound, of one channel.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            snd_tensor (Tensor or array): The samples, `(L,)` or `(1, L)`, from -1 to 1.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            sample_rate (int): Samples a second. Default: 44100.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.

        Raises:
            AssertionError: It has more than one channel.
        """
        self._add(_summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Reports a text.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            text_string (str): The text, in Markdown.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        self._add(_summaries.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Reports the curve of precision against recall of a binary classifier.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            labels (Tensor or array): What is right, 0 or 1, of any shape.
            predictions (Tensor or array): Probabilities of 1, of the same shape.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            num_thresholds (int): Points of the curve, 127 at most. Default: 127.
            weights (Tensor or array, optional): Weight of each label. Default: 1.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        summary = _summaries.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(summary, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Reports a curve of precision against recall that was counted already.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            true_positive_counts (Tensor or array): At each threshold, `(num_thresholds,)`, as all that
                follow.
            false_positive_counts (Tensor or array): Negatives taken for positives.
            true_negative_counts (Tensor or array): Negatives taken for negatives.
            false_negative_counts (Tensor or array): Positives taken for negatives.
            precision (Tensor or array): Share of the predicted positives that are right.
            recall (Tensor or array): Share of the positives that are found.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            num_thresholds (int): Points of the curve, 127 at most. Default: 127.
            weights (object, optional): No effect. Default: None.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        summary = _summaries.pr_curve_raw(tag, *counts, precision, recall, num_thresholds)
        self._add(summary, global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Says which scalars share a chart; once for a run.

        Args:
            layout (dict): `{category: {title: ["Multiline", tags]}}`, or
                `["Margin", [value, lower, upper]]`.

        Raises:
            AssertionError: A margin chart has another number of tags than 3.
        """
        self._add(_summaries.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Makes one chart of several scalars' curves.

        Args:
            tags (list of str): Tags of the scalars.
            category (str): Group of the chart. Default: "default".
            title (str): Title of the chart. Default: "untitled".
        """
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Makes one chart of a scalar between two bounds.

        Args:
            tags (list of 3 str): Tags of the value, of the lower and of the upper bound.
            category (str): Group of the chart. Default: "default".
            title (str): Title of the chart. Default: "untitled".

        Raises:
            AssertionError: There are not 3 tags.
        """
        if len(tags) != 3:
            raise AssertionError(f"A margin chart takes 3 tags, not ({len(tags)}).")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Reports points in space, or a surface of triangles.

        Args:
            tag (str): Name that TensorBoard shows; a slash makes groups.
            vertices (Tensor or array): The points, `(N, V, 3)`.
            colors (Tensor or array, optional): Their colors, `(N, V, 3)`, 0 to 255. Default: none.
            faces (Tensor or array, optional): The triangles, `(N, F, 3)`, as numbers of points.
                Default: none.
            config_dict (dict, optional): Camera, materials and lights, for three.js. Default: none.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            walltime (float, optional): Time of it, in seconds since 1970. Default: now.
        """
        self._add(_summaries.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Writes points for TensorBoard's projector.

        Args:
            mat (Tensor or array): The points, `(N, D)`.
            metadata (list, optional): A label for each; a list of columns where there is a header.
                Default: none.
            label_img (Tensor or array, optional): A picture for each, `(N, C, H, W)`. Default: none.
            global_step (int, optional): Step of the training it belongs to. Default: none.
            tag (str): Name of the embedding. Default: "default".
            metadata_header (list of str, optional): Names of the columns of `metadata`. Default: none.

        Raises:
            AssertionError: `mat` has not 2 dimensions, or labels or pictures are of another number.
        """
        folder, step = self._get_file_writer().get_logdir(), global_step or 0
        _hparams.embedding(folder, tag, step, mat, metadata, label_img, metadata_header)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Reports hyperparameters and what they led to, in a run of its own below this one.

        Args:
            hparam_dict (dict): Hyperparameters by name: numbers, strings or booleans.
            metric_dict (dict of str to float): Results by tag.
            hparam_domain_discrete (dict of str to list, optional): Values that a hyperparameter can have.
                Default: none.
            run_name (str, optional): Name of that run. Default: the present time.
            global_step (int, optional): Step of the training it belongs to. Default: none.

        Raises:
            TypeError: One of the first two is no dict.
            ValueError: A hyperparameter is of another type.
        """
        found = _hparams.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        name = run_name or str(time.time())
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), name)) as writer:
            for summary in found:
                writer._get_file_writer().add_summary(summary, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Reports the operators that a call of a model runs, grouped by its modules.

        Args:
            model (Module): The model whose batch norms are set anew, in place.
            input_to_model (Tensor or tuple): Its arguments.
            verbose (bool): Print the graph. Default: False.
            use_strict_trace (bool): No effect. Default: True.
        """
        from mica.utils.tensorboard import _graphs

        found = _graphs.graph(model, input_to_model, verbose)
        self._get_file_writer().add_event(Event(graph_def=found.SerializeToString()))

    def add_onnx_graph(self, prototxt: str) -> None:
        """Raises NotImplementedError: Mica reads no ONNX files.

        Args:
            prototxt (str): The file.
        """
        raise NotImplementedError("add_onnx_graph() is not there: Mica reads no ONNX files.")

    def flush(self) -> None:
        """Writes what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the files; a later report opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
