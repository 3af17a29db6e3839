"""From a checkpoint of several ranks to a file of `save`, and back."""

from __future__ import annotations

import os
from typing import Any

from pullback.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from pullback.distributed.checkpoint.filesystem import FileSystemReader
from pullback.distributed.checkpoint.state_dict_loader import _load_state_dict
from pullback.distributed.checkpoint.state_dict_saver import save
from pullback.serialization.checkpoint import load as load_file
from pullback.serialization.checkpoint import save as save_file

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write the whole state of a folder to a file that `load` reads, with one process.

    >>> import pullback, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"model": {"weight": pullback.ones(2)}}, checkpoint_id=folder)
    >>> dcp_to_torch_save(folder, os.path.join(folder, "model.pt"))
    >>> load_file(os.path.join(folder, "model.pt"))
    {'model': {'weight': tensor([1., 1.])}}
    """
    state: dict[str, Any] = {}
    _load_state_dict(state, FileSystemReader(dcp_checkpoint_dir), no_dist=True, planner=_EmptyStateDictLoadPlanner())
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write the state of a file to a folder, from which any number of ranks can load it."""
    save(load_file(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
