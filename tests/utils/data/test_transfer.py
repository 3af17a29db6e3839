"""Messages that carry arrays through a pipe."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.utils.data.transfer import pack, receive_parts, send_parts, unpack


def send_through_a_pipe(message: Any) -> Any:
    reader, writer = multiprocessing.Pipe(duplex=False)
    with reader, writer:
        thread = threading.Thread(target=send_parts, args=(writer, pack(message)))
        thread.start()
        received = unpack(receive_parts(reader))
        thread.join()
    return received


@pytest.mark.parametrize("message", [0, None, "text", {"a": [1, (2.5, b"bytes")]}, [[]]])
def test_plain_values_arrive(message: Any) -> None:
    assert send_through_a_pipe(message) == message


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (300, 1000)])
def test_arrays_arrive_and_can_be_changed(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).normal(size=shape)
    received = send_through_a_pipe([array, array.T])
    assert [part.tolist() for part in received] == [array.tolist(), array.T.tolist()]
    received[0][...] = 1


def test_tensors_arrive_and_can_be_changed() -> None:
    received = send_through_a_pipe({"x": pullback.arange(100_000)})["x"]
    received.add_(1)
    assert (received[0].item(), received[-1].item()) == (1, 100_000)


def test_a_packed_message_is_a_snapshot() -> None:
    array = np.zeros(3)
    parts = pack(array)
    array[...] = 1
    assert unpack(parts).tolist() == [0.0, 0.0, 0.0]


def test_the_end_of_the_pipe_in_the_middle_of_a_message_is_noticed() -> None:
    reader, writer = multiprocessing.Pipe(duplex=False)
    with reader:
        send_parts(writer, [b"a whole part"])
        writer.close()
        assert receive_parts(reader) == [b"a whole part"]
        with pytest.raises(EOFError):
            receive_parts(reader)


def test_a_part_that_is_cut_short_is_noticed() -> None:
    class Announced(bytes):
        """Claims to be longer than it is."""

        def __len__(self) -> int:
            return 100

    reader, writer = multiprocessing.Pipe(duplex=False)
    with reader:
        send_parts(writer, [Announced(b"short")])
        writer.close()
        with pytest.raises((EOFError, OSError)):
            receive_parts(reader)
