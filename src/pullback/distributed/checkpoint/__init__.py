"""States of models and optimizers that several ranks hold, saved into one folder: `torch.distributed.checkpoint`.

A folder can be loaded with any number of ranks, by pullback and by PyTorch. Programs may bring storages and planners of
their own (storage.py, planner.py).
"""

from pullback.distributed.checkpoint.api import CheckpointException
from pullback.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from pullback.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from pullback.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from pullback.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from pullback.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from pullback.distributed.checkpoint.state_dict_loader import load, load_state_dict
from pullback.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from pullback.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan",
    "LoadPlanner", "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "WriteItem", "async_save", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip
