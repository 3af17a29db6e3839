"""Event files, read back by a reader of its own; PyTorch's writer gives the same fields for these calls."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.utils.tensorboard import SummaryWriter
from pullback.utils.tensorboard.records import checksum, varint

Message = dict[int, list[Any]]


def decoded(data: bytes) -> Message:
    """The fields of a message by number: integers, doubles, floats, or bytes."""
    fields: Message = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        value: Any
        if key & 7 == 0:
            value = number()
        elif key & 7 == 2:
            size = number()
            value, at = data[at : at + size], at + size
        else:
            code, size = ("d", 8) if key & 7 == 1 else ("f", 4)
            (value,), at = struct.unpack_from(f"<{code}", data, at), at + size
        fields.setdefault(key >> 3, []).append(value)
    return fields


def events(folder: Path) -> Iterator[Message]:
    """The events of a folder's only file, their checksums compared."""
    (path,) = (p for p in folder.iterdir() if p.is_file())
    data, at = path.read_bytes(), 0
    while at < len(data):
        size, check = struct.unpack_from("<QI", data, at)
        assert check == checksum(data[at : at + 8])
        content = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size) == (checksum(content),)
        yield decoded(content)
        at += size + 16


def only_value(folder: Path) -> tuple[Message, Message]:
    """The second event (the first names the format) and its summary's value."""
    first, event = events(folder)
    assert first[3] == [b"brain.Event:2"]
    (value,) = decoded(event[5][0])[1]
    return event, decoded(value)


def doubles(data: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def test_varints_of_negative_numbers_have_ten_bytes() -> None:
    assert varint(300) == b"\xac\x02"
    assert len(varint(-1)) == 10


def test_scalar(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", pullback.tensor(1.5), 3, walltime=2.0)
    event, value = only_value(tmp_path)
    assert (event[1], event[2], value[1], value[2]) == ([2.0], [3], [b"loss"], [1.5])


def test_scalars_go_to_folders_of_their_own(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/loss", {"x": 1.0, "y": 2.0}, 5)
    assert [only_value(tmp_path / f"run_loss_{t}")[1][2] for t in "xy"] == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("values", "limits", "counts"),
    [
        ([-1.0, 2.0, 3.0], [-1, 0, 1, 2, 3, 4], [0, 1, 0, 0, 1, 1]),
        ([5.0, 5.0], [4, 6], [0, 2]),
        ([0.0], [0, 1], [0, 1]),
    ],
)
def test_histogram_starts_at_its_first_full_bin(
    tmp_path: Path, values: list[float], limits: list[float], counts: list[float]
) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", pullback.tensor(values), bins=[-2.0, -1, 0, 1, 2, 3, 4, 6, 7])
    histogram = decoded(only_value(tmp_path)[1][5][0])
    assert doubles(histogram[6][0]) == limits
    assert doubles(histogram[7][0]) == counts
    assert (histogram[1], histogram[2], histogram[4]) == ([min(values)], [max(values)], [sum(values)])


def test_histograms_merge_bins(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", pullback.arange(9.0), bins="auto", max_bins=2)
    histogram = decoded(only_value(tmp_path)[1][5][0])
    assert doubles(histogram[6][0]) == pytest.approx([0, 3.2, 6.4, 8])
    assert doubles(histogram[7][0]) == [0, 4, 3, 2]


def pixels(png: bytes, width: int) -> list[list[int]]:
    """The lines of a PNG file with three channels and no filter."""
    assert png.startswith(b"\x89PNG")
    at, body = 8, b""
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        content = png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size) == (zlib.crc32(kind + content),)
        body += content if kind == b"IDAT" else b""
        at += size + 12
    raw, line = zlib.decompress(body), 1 + 3 * width
    return [list(raw[i + 1 : i + line]) for i in range(0, len(raw), line)]


def test_images(tmp_path: Path) -> None:
    picture = pullback.tensor([[[0.0, 1.0]], [[0.5, 2.0]], [[-1.0, 0.1]]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", picture)
    image = decoded(only_value(tmp_path)[1][4][0])
    assert (image[1], image[2], image[3]) == ([1], [2], [3])
    assert pixels(image[4][0], 2) == [[0, 127, 0, 255, 255, 25]]


def test_a_batch_of_images_is_one_picture(tmp_path: Path) -> None:
    batch = pullback.arange(10, dtype=pullback.uint8).reshape(10, 1, 1, 1)
    with SummaryWriter(tmp_path) as writer:
        writer.add_images("i", batch)
    image = decoded(only_value(tmp_path)[1][4][0])
    lines = pixels(image[4][0], 8)
    assert [line[::3] for line in lines] == [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 0, 0, 0, 0, 0, 0]]


def test_an_image_of_another_layout_is_refused(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer, pytest.raises(AssertionError, match="input format are different"):
        writer.add_image("i", pullback.ones(2, 2))


def test_precision_and_recall(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve(
            "pr", pullback.tensor([0, 1, 1, 0]), pullback.tensor([0.1, 0.9, 0.4, 0.6]), num_thresholds=3
        )
    content = decoded(only_value(tmp_path)[1][8][0])
    curves = struct.unpack("<18f", content[5][0])
    assert curves == pytest.approx([2, 1, 0, 2, 1, 0, 0, 1, 2, 0, 1, 2, 0.5, 0.5, 0, 1, 0.5, 0])


def test_parameters_of_a_run(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.5, "name": "x"}, {"accuracy": 0.25}, run_name="r")
    values = [decoded(decoded(e[5][0])[1][0]) for e in list(events(tmp_path / "r"))[1:]]
    assert [v[1][0] for v in values[:3]] == [
        b"_hparams_/experiment", b"_hparams_/session_start_info", b"_hparams_/session_end_info",
    ]  # fmt: skip
    assert (values[3][1], values[3][2]) == ([b"accuracy"], [0.25])
    start = decoded(decoded(decoded(values[1][9][0])[1][0])[2][0])[3][0]
    named = {decoded(f)[1][0]: decoded(decoded(f)[2][0]) for f in decoded(start)[1]}
    assert named == {b"lr": {2: [0.5]}, b"name": {3: [b"x"]}}


def test_graph_of_a_model(tmp_path: Path) -> None:
    model = pullback.nn.Sequential(pullback.nn.Linear(2, 3), pullback.nn.ReLU())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, pullback.ones(1, 2))
    *_, event = events(tmp_path)
    nodes = [decoded(n) for n in decoded(event[4][0])[1]]
    by_name = {n[1][0]: n for n in nodes}
    relu = next(n for n in nodes if n[2] == [b"Relu"])
    assert {b"0/weight", b"0/bias", b"output/0"} <= set(by_name)
    assert by_name[b"output/0"][3] == relu[1]


def test_writing_after_close_makes_a_new_file(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    writer.close()
    writer.add_text("t", "hello")
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2
