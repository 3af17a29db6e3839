"""Summaries: what SummaryWriter's functions say, as fields of TensorBoard's messages."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from pullback.backend.dtype import uint8
from pullback.creation import as_tensor, tensor, zeros
from pullback.functions import cat, stack
from pullback.functions import histogram as count_in_bins
from pullback.tensor.tensor import Tensor
from pullback.utils.tensorboard.records import field, float_field, packed

_FLOAT, _DOUBLE, _STRING = 1, 2, 7


def value_of(tag: str, content: bytes, plugin: str = "", plugin_content: bytes = b"") -> bytes:
    """A summary with one value: an event's field."""
    data = field(1, plugin) + (field(2, plugin_content) if plugin_content else b"") if plugin else b""
    metadata = field(9, field(1, data)) if plugin else b""
    return field(5, field(1, field(1, tag) + metadata + content))


def _shape(sizes: Sequence[int]) -> bytes:
    return field(2, b"".join([field(2, field(1, int(size))) for size in sizes]))


def number(value: Any) -> float:
    """A number out of a number, or a tensor or array with one element."""
    return float(value.item() if hasattr(value, "item") else value)


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> bytes:
    """One number."""
    if not new_style:
        return value_of(tag, float_field(2, number(value)))
    kind = _DOUBLE if double_precision else _FLOAT
    content = packed(6, [number(value)], "d") if double_precision else packed(5, [number(value)], "f")
    return value_of(tag, field(8, field(1, kind) + content), "scalars")


def tensor_values(tag: str, values: Any) -> bytes:
    """All elements of a tensor, in single precision."""
    given = as_tensor(values)
    return value_of(
        tag, field(8, field(1, _FLOAT) + _shape(given.shape) + packed(5, given.flatten().tolist(), "f")), "tensor"
    )


def text(tag: str, content: str) -> bytes:
    """A text in Markdown."""
    return value_of(f"{tag}/text_summary", field(8, field(1, _STRING) + _shape([1]) + field(8, content)), "text")


def _standard_edges() -> list[float]:
    """Bins that grow by a tenth on both sides of zero."""
    growing, edge = [], 1e-12
    while edge < 1e20:
        growing.append(edge)
        edge *= 1.1
    return [-e for e in reversed(growing)] + [0.0] + growing


def _bin_edges(values: Tensor, bins: Any, max_bins: int | None) -> list[float]:
    if bins == "tensorflow":
        edges = _standard_edges()
    elif isinstance(bins, (str, int)):
        array = values.detach().numpy()
        edges = array.__array_namespace__().histogram_bin_edges(array, bins).tolist()
    else:
        edges = as_tensor(bins).tolist()
    if max_bins is None or len(edges) - 1 <= max_bins:
        return edges
    together = (len(edges) - 1) // max_bins
    return [*edges[:-1:together], edges[-1]]


def histogram(tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> bytes:
    """How many of the values lie in each bin, from the first bin that has one to the last."""
    given = as_tensor(values).detach().flatten().double()
    if given.numel() == 0:
        raise ValueError("The input has no element.")
    edges = _bin_edges(given, bins, max_bins)
    counts = count_in_bins(given, tensor(edges, dtype=given.dtype)).hist.tolist()
    filled = [i for i, n in enumerate(counts) if n]
    if not filled:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = filled[0], filled[-1]
    return histogram_raw(
        tag, given.min().item(), given.max().item(), given.numel(), given.sum().item(), given.square().sum().item(),
        edges[first : last + 2], [0.0, *counts[first : last + 1]],
    )  # fmt: skip


def histogram_raw(
    tag: str, least: float, greatest: float, count: int, total: float, squares: float,
    limits: Sequence[float], counts: Sequence[float],
) -> bytes:  # fmt: skip
    """A histogram that was counted elsewhere."""
    numbers = [field(i, float(v)) for i, v in enumerate((least, greatest, count, total, squares), 1)]
    content = b"".join(numbers) + packed(6, limits, "d") + packed(7, counts, "d")
    return value_of(tag, field(5, content))


def _in_rows(image: Tensor, layout: str) -> Tensor:
    """An image, or a batch of them side by side, as height, width and channels."""
    layout = layout.upper()
    if image.ndim != len(layout):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {tuple(image.shape)}, "
            f"input_format: {layout}"
        )
    if len(layout) == 4:
        pictures = image.permute([layout.index(letter) for letter in "NHWC"])
        return _grid(pictures)
    if len(layout) == 2:
        return image.permute([layout.index(letter) for letter in "HW"]).unsqueeze(-1).expand(-1, -1, 3)
    rows = image.permute([layout.index(letter) for letter in "HWC"])
    return rows.expand(-1, -1, 3) if rows.shape[-1] == 1 else rows


def _grid(pictures: Tensor, columns: int = 8) -> Tensor:
    """Pictures in rows of eight, black where the last row ends early."""
    if pictures.shape[-1] == 1:
        pictures = pictures.expand(-1, -1, -1, 3)
    amount, (height, width, channels) = pictures.shape[0], pictures.shape[1:]
    columns = min(columns, amount)
    missing = -amount % columns
    if missing:
        pictures = cat([pictures, zeros(missing, height, width, channels, dtype=pictures.dtype)])
    rows = pictures.reshape(-1, columns, height, width, channels).transpose(1, 2)
    return rows.reshape(-1, columns * width, channels)


def _as_bytes(image: Tensor) -> Tensor:
    """Pixels from 0 to 255; real ones are given from 0 to 1."""
    return image if image.dtype is uint8 else (image.detach().float() * 255).clamp(0, 255).to(uint8)


def png(pixels: Tensor) -> bytes:
    """Pixels (height, width, channels) of bytes as a PNG file."""
    height, width, channels = pixels.shape
    lines = cat([zeros(height, 1, dtype=pixels.dtype), pixels.reshape(height, width * channels)], 1).contiguous()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colours = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    body = zlib.compress(lines.numpy().tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def image(tag: str, picture: Any, layout: str) -> bytes:
    """A picture, or a batch of pictures as one."""
    pixels = _as_bytes(_in_rows(as_tensor(picture), layout))
    height, width, channels = pixels.shape
    content = field(1, int(height)) + field(2, int(width)) + field(3, int(channels)) + field(4, png(pixels))
    return value_of(tag, field(4, content))


def audio(tag: str, sound: Any, sample_rate: int) -> bytes:
    """A sound of one channel, from -1 to 1, as a WAV file of 16 bits."""
    samples = as_tensor(sound).detach().flatten().double()
    whole = [int(v) for v in (samples.clamp(-1, 1) * 32767).tolist()]
    data = struct.pack(f"<{len(whole)}h", *whole)
    form = struct.pack("<HHIIHH", 1, 1, sample_rate, sample_rate * 2, 2, 16)
    parts = b"WAVE" + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    wave = b"RIFF" + struct.pack("<I", len(parts)) + parts
    content = float_field(1, float(sample_rate)) + field(2, 1) + field(3, len(whole)) + field(4, wave)
    return value_of(tag, field(6, content + field(5, "audio/wav")))


def precision_recall(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any = None) -> bytes:
    """Precision and recall of predictions from 0 to 1, at evenly spaced thresholds."""
    truth, guess = as_tensor(labels).flatten().double(), as_tensor(predictions).detach().flatten().double()
    weight = as_tensor(1.0 if weights is None else weights).double() * truth.new_ones(truth.shape)
    levels = (guess * (thresholds - 1)).floor().clamp(0, thresholds - 1).long()

    def at_least(weighted: Tensor) -> Tensor:
        counts = truth.new_zeros(thresholds).index_add(0, levels, weighted)
        return counts.flip(0).cumsum(0).flip(0)

    true_positive, false_positive = at_least(truth * weight), at_least((1 - truth) * weight)
    true_negative, false_negative = false_positive[0] - false_positive, true_positive[0] - true_positive
    precision = true_positive / (true_positive + false_positive).clamp(min=1e-7)
    recall = true_positive / (true_positive + false_negative).clamp(min=1e-7)
    curves = [true_positive, false_positive, true_negative, false_negative, precision, recall]
    return precision_recall_raw(tag, stack(curves), thresholds)


def precision_recall_raw(tag: str, curves: Tensor, thresholds: int) -> bytes:
    """The curves of `precision_recall`, counted elsewhere."""
    content = field(1, _FLOAT) + _shape(curves.shape) + packed(5, curves.flatten().tolist(), "f")
    return value_of(tag, field(8, content), "pr_curves", field(2, thresholds))


def _parameter(value: Any) -> tuple[int, bytes]:
    """The kind of a parameter, text or number, and its value."""
    return (1, field(3, value)) if isinstance(value, str) else (3, field(2, number(value)))


def parameters(
    values: Mapping[str, Any], metrics: Mapping[str, Any], domains: Mapping[str, Sequence[Any]]
) -> list[bytes]:
    """The three summaries that tell which parameters a run has: the experiment, the start, the end."""
    infos, starts = b"", b""
    for name, value in values.items():
        kind, content = _parameter(value)
        listed = b"".join([field(1, _parameter(v)[1]) for v in domains.get(name, ())])
        infos += field(4, field(1, name) + field(4, kind) + (field(5, listed) if listed else b""))
        starts += field(1, field(1, name) + field(2, content))
    measured = b"".join([field(5, field(1, field(2, name))) for name in metrics])
    contents = {"experiment": field(2, infos + measured), "session_start_info": field(3, starts)}
    contents["session_end_info"] = field(4, field(1, 1))
    return [value_of(f"_hparams_/{name}", b"", "hparams", content) for name, content in contents.items()]


def chart_layout(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> bytes:
    """Which scalars are drawn together: categories of charts, each ["Multiline" or "Margin", tags]."""
    categories = b""
    for category, charts in layout.items():
        content = field(1, category)
        for title, (kind, tags) in charts.items():
            names = b"".join([field(1, t) for t in tags])
            margin = field(1, b"".join([field(i, t) for i, t in enumerate(tags, 1)]))
            content += field(2, field(1, title) + (field(3, margin) if kind == "Margin" else field(2, names)))
        categories += field(2, content)
    described = field(8, field(1, _STRING) + field(2, b"") + field(8, categories))
    return value_of("custom_scalars__config__", described, "custom_scalars")
