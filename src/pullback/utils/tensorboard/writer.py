"""SummaryWriter: numbers, texts, histograms and pictures of a run, in files that TensorBoard shows."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from pullback.backend.dtype import uint8
from pullback.creation import as_tensor, frombuffer
from pullback.functions import stack
from pullback.utils.tensorboard import summaries
from pullback.utils.tensorboard.model_graph import graph_definition
from pullback.utils.tensorboard.records import FileWriter, field


class SummaryWriter:
    """Writes what a program tells it to event files in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.all_writers: dict[str, FileWriter] | None = None
        self.file_writer = self._writer_in(self.log_dir)
        if purge_step is not None:
            self.file_writer.add_summary(field(7, field(1, 2)), purge_step)

    def _writer_in(self, folder: str) -> FileWriter:
        """The writer of a folder, made at its first use and again after `close`."""
        if self.all_writers is None:
            self.all_writers = {}
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._options)
        return self.all_writers[folder]

    def _add(self, summary: bytes, step: int | None, walltime: float | None, folder: str | None = None) -> None:
        self._writer_in(folder or self.log_dir).add_summary(summary, step, walltime)

    def get_logdir(self) -> str:
        """The folder that the files are in."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write one number."""
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write numbers that belong together, each to a folder of its own."""
        now = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            self._add(summaries.scalar(main_tag, value), global_step, now, folder)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write all elements of a tensor."""
        self._add(summaries.tensor_values(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write how values are distributed."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Sequence[float],
        bucket_counts: Sequence[float], global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write a histogram that was counted elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        content = summaries.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(content, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Write a picture: bytes, or real numbers from 0 to 1."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Write a batch of pictures as one, in rows of eight."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a figure of matplotlib, or several as one picture."""
        figures = figure if isinstance(figure, list) else [figure]
        pictures = [_pixels(one) for one in figures]
        if close:
            for one in figures:
                import_module("matplotlib.pyplot").close(one)
        if isinstance(figure, list):
            self.add_images(tag, stack(pictures), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, "HWC")

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write a sound: one channel, from -1 to 1."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text in Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Write the graph of operations that a model records for an input."""
        definition = graph_definition(model, input_to_model)
        self._add(field(4, definition), None, None)
        if verbose:
            print(definition)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write precision and recall of predictions from 0 to 1."""
        content = summaries.precision_recall(tag, labels, predictions, num_thresholds, weights)
        self._add(content, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: int | None = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write curves of precision and recall that were counted elsewhere."""
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        curves = stack([as_tensor(c).double() for c in (*counts, precision, recall)])
        self._add(summaries.precision_recall_raw(tag, curves, num_thresholds), global_step, walltime)

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Write the parameters of a run with its final figures, to a folder of its own."""
        if not isinstance(hparam_dict, Mapping) or not isinstance(metric_dict, Mapping):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        for summary in summaries.parameters(hparam_dict, metric_dict, hparam_domain_discrete or {}):
            self._add(summary, None, None, folder)
        for name, value in metric_dict.items():
            self._add(summaries.scalar(name, value), global_step, None, folder)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Write which scalars are drawn together."""
        self._add(summaries.chart_layout(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Write that scalars are drawn in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Write that three scalars are drawn as a line with its bounds."""
        if len(tags) != 3:
            raise AssertionError("a margin chart has three tags: the value, its lower and its upper bound")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def flush(self) -> None:
        """Hand everything that was written to the system."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Close the files; writing again makes new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _pixels(figure: Any) -> Any:
    """A figure of matplotlib as bytes (height, width, 3)."""
    # Who has a figure has the library.
    canvas = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    return frombuffer(bytearray(canvas.buffer_rgba()), dtype=uint8).reshape(height, width, 4)[..., :3]
