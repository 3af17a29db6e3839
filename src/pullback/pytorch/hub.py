"""Files of pretrained models: where they are kept, how they are fetched, models of a local folder. PyTorch's `torch.hub`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

from pullback.serialization import load as load_file

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_chosen_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder that files are kept in."""
    return _chosen_dir if _chosen_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep files in another folder."""
    global _chosen_dir
    _chosen_dir = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file; a wrong beginning of its SHA-256 is an error, and then nothing is kept."""
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile(delete=False, dir=target.parent) as part:
        try:
            with urlopen(url) as answer:
                while chunk := answer.read(1 << 17):
                    part.write(chunk)
                    digest.update(chunk)
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            part.close()
            shutil.move(part.name, target)
        finally:
            Path(part.name).unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> Any:  # fmt: skip
    """The object in a checkpoint that is fetched once and then kept."""
    folder = Path(model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / (file_name or os.path.basename(urlparse(url).path))
    if not kept.exists():
        match = HASH_REGEX.search(kept.name) if check_hash else None
        download_url_to_file(url, str(kept), match.group(1) if match else None, progress)
    return load_file(kept, map_location=map_location, weights_only=weights_only)


def _hubconf(repo_or_dir: str, source: str) -> ModuleType:
    if source != "local":
        raise NotImplementedError(
            f"hub reads local folders only: get the repository '{repo_or_dir}', then pass its folder and source='local'."
        )
    path = Path(repo_or_dir) / "hubconf.py"
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"no hubconf.py in '{repo_or_dir}'")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def list(repo_or_dir: str, *args: Any, source: str = "local", **options: Any) -> Any:
    """The names of the models that a folder's hubconf.py offers."""
    return [n for n, value in vars(_hubconf(repo_or_dir, source)).items() if callable(value) and not n.startswith("_")]


def help(repo_or_dir: str, model: str, *args: Any, source: str = "local", **options: Any) -> Any:
    """The description of one model."""
    return getattr(_hubconf(repo_or_dir, source), model).__doc__


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """A model that a local folder's hubconf.py makes."""
    return getattr(_hubconf(repo_or_dir, source), model)(*args, **options)
