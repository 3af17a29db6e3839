"""Freed memory is used again without asking the system for pages."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pullback.backend.allocator import empty_cache, keep_freed_memory

resource = pytest.importorskip("resource")
glibc = pytest.mark.skipif(not keep_freed_memory(), reason="the C library has no such setting")


def page_faults_of_filling() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(2**21, np.uint8).fill(1)
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


@glibc
def test_second_array_of_a_size_takes_no_fresh_pages() -> None:
    page_faults_of_filling()
    assert page_faults_of_filling() < 50


@glibc
def test_empty_cache_gives_the_pages_back() -> None:
    page_faults_of_filling()
    empty_cache()
    assert page_faults_of_filling() > 100


def test_empty_cache_is_harmless_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "other")
    empty_cache()
    assert not keep_freed_memory()
