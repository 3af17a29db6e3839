"""What a DataLoader tells the links of a chain: whether to shuffle, with which seeds, and which share to take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.backend.random import Generator
from pullback.modes.user_warnings import warn_user
from pullback.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from pullback.utils.data.sampler import draw_seed


def links_of(pipe: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """The links of a chain, from its end on."""
    seen = set() if seen is None else seen
    if id(pipe) in seen:
        return
    seen.add(id(pipe))
    yield pipe
    for value in vars(pipe).values():
        for inner in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(inner, (IterDataPipe, MapDataPipe)):
                yield from links_of(inner, seen)


def apply_shuffle(pipe: Any, shuffle: bool) -> None:
    """Turn every link that shuffles on or off."""
    found = [link for link in links_of(pipe) if hasattr(link, "set_shuffle")]
    for link in found:
        link.set_shuffle(shuffle)
    if shuffle and not found:
        warn_user(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Put one where the order is to "
            "change, with .shuffle()."
        )


def apply_seeds(pipe: Any, shared_seed: int) -> None:
    """Give every link that draws a seed, all of them drawn from one."""
    generator = Generator().manual_seed(shared_seed)
    for link in links_of(pipe):
        if hasattr(link, "set_seed"):
            link.set_seed(draw_seed(generator))


def apply_sharding(pipe: Any, num_workers: int, worker_id: int) -> None:
    """Let every link that divides labour take the share of one worker."""
    for link in links_of(pipe):
        if hasattr(link, "apply_sharding"):
            link.apply_sharding(num_workers, worker_id)
