"""torch.Size: a tuple of sizes that stays one when it is joined to another."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

SIZE: Any = pullback.Size([2, 3])


def test_sizes_are_joined_with_tuples() -> None:
    for joined in ((1, *SIZE), (1,) + SIZE, SIZE + (1,), SIZE + SIZE, sum([SIZE, SIZE], ())):  # noqa: RUF005
        assert tuple(joined)[-1] in (1, 3)
    assert type((1,) + SIZE) is pullback.Size  # noqa: RUF005
    assert type(SIZE + (1,)) is pullback.Size  # noqa: RUF005


def test_a_list_takes_sizes_in_place() -> None:
    sizes: list[int] = [1]
    sizes += SIZE
    assert sizes == [1, 2, 3]


def test_sizes_are_not_joined_with_other_things() -> None:
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        SIZE + [1]  # noqa: RUF005
    with pytest.raises(TypeError, match="can only concatenate list"):
        [1] + SIZE  # noqa: RUF005
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + SIZE
