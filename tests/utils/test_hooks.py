"""Handles of hooks, and marks on hooks."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections import OrderedDict
from typing import Any

import pytest

import pullback
from pullback.utils.hooks import RemovableHandle, unserializable_hook, warn_if_has_hooks


def test_a_handle_removes_its_hook_once() -> None:
    hooks: Any = OrderedDict()
    first, second = RemovableHandle(hooks), RemovableHandle(hooks)
    hooks[first.id], hooks[second.id] = "first", "second"
    first.remove()
    first.remove()
    assert list(hooks.values()) == ["second"]


def test_a_with_block_removes_the_hook_at_its_end() -> None:
    hooks: Any = OrderedDict()
    handle = RemovableHandle(hooks)
    with handle as entered:
        hooks[handle.id] = "hook"
        assert entered is handle
    assert not hooks


@pytest.mark.parametrize("as_list", [False, True])
def test_a_handle_also_clears_further_dicts(as_list: bool) -> None:
    hooks: Any = OrderedDict()
    extra: Any = OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=[extra] if as_list else extra)
    hooks[handle.id] = extra[handle.id] = "hook"
    handle.remove()
    assert (len(hooks), len(extra)) == (0, 0)


def test_a_handle_does_not_keep_the_hooks_alive() -> None:
    hooks: Any = OrderedDict()
    handle = RemovableHandle(hooks)
    del hooks
    gc.collect()
    assert handle.hooks_dict_ref() is None
    handle.remove()


def test_a_handle_is_pickled_with_its_hooks() -> None:
    hooks: Any = OrderedDict()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = "hook"
    loaded_hooks, loaded = pickle.loads(pickle.dumps((hooks, handle)))
    loaded.remove()
    assert (len(loaded_hooks), len(hooks)) == (0, 1)


def test_a_handle_copied_alone_removes_nothing() -> None:
    hooks: Any = OrderedDict()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = "hook"
    copy.deepcopy(handle).remove()
    assert len(hooks) == 1


def test_ids_stay_unique_after_loading_a_handle() -> None:
    hooks: Any = OrderedDict()
    handle = RemovableHandle(hooks)
    handle.__setstate__((None, RemovableHandle.next_id + 50))
    assert RemovableHandle(hooks).id == handle.id + 1


def test_saving_a_tensor_with_hooks_is_warned_of() -> None:
    tensor = pullback.zeros(1, requires_grad=True)
    tensor.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
        warn_if_has_hooks(tensor)


def test_marked_hooks_are_not_warned_of() -> None:
    tensor = pullback.zeros(1, requires_grad=True)
    tensor.register_hook(unserializable_hook(lambda grad: grad))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_has_hooks(tensor)
        warn_if_has_hooks(pullback.zeros(1))
