from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from setuptools import Distribution, Extension  # type: ignore[import-untyped]  # it has no stubs

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_of_pullback", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("compiles", "pure"), [(True, False), (False, True)])
def test_a_wheel_in_which_nothing_was_compiled_is_for_any_machine(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, compiles: bool, pure: bool
) -> None:
    extensions = [Extension(setup.KERNELS, ["kernels.c"])]
    distribution: Any = Distribution({"name": "pullback", "ext_modules": extensions})
    wheel = distribution.get_command_obj("bdist_wheel")
    wheel.ensure_finalized()
    build = setup.OptionalBuild(distribution)
    build.extensions = extensions
    monkeypatch.setattr(build, "_succeeds", lambda what: compiles)
    build.run()
    assert (wheel.root_is_pure, wheel.get_tag() == ("py3", "none", "any")) == (pure, pure)
