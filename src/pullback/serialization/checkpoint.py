"""`save` and `load`: PyTorch's checkpoint files, written and read without PyTorch."""

from __future__ import annotations

import io
import mmap as memory_map
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from pullback.backend.naming import display_namespace
from pullback.backend.storage import memory_of, native_byte_order
from pullback.serialization.full_unpickler import make_unpickler
from pullback.serialization.legacy import LegacyReader, save_legacy
from pullback.serialization.options import assumed_byte_order, get_crc32_options
from pullback.serialization.pickler import StorageTable, dump
from pullback.serialization.pullback_tensors import PullbackTensors
from pullback.serialization.replacement import replaced_when_written
from pullback.serialization.restricted_unpickler import RestrictedUnpickler
from pullback.serialization.storage import MapLocation
from pullback.serialization.storage_loader import ZipStorageLoader
from pullback.serialization.tar_reader import TarReader
from pullback.serialization.tensor_access import TensorAccess
from pullback.serialization.vocabulary import Vocabulary
from pullback.serialization.zip_reader import ZipReader
from pullback.serialization.zip_writer import ALIGNMENT, ZipWriter

DEFAULT_PROTOCOL = 2
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_NEWEST_VERSION = 10
_OLDEST_VERSION = 1


def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that both `pullback.load` and PyTorch read.

    Tensors that share memory share it again after loading. Gradients and recorded history are not saved: a tensor
    that requires grad comes back as a leaf.

    >>> import io, pullback
    >>> file = io.BytesIO()
    >>> pullback.save({"weight": pullback.tensor([1.0, 2.0])}, file)
    >>> _ = file.seek(0)
    >>> pullback.load(file)["weight"].tolist()
    [1.0, 2.0]
    """
    save_with(PullbackTensors(), obj, f, pickle_module, pickle_protocol,
              _use_new_zipfile_serialization, not _disable_byteorder_record)  # fmt: skip


def save_with(
    access: TensorAccess,
    obj: object,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    as_zip: bool = True,
    with_byte_order: bool = True,
) -> None:
    """`save` for any kind of tensors."""
    pickle_protocol = int(pickle_protocol)
    if isinstance(f, (str, os.PathLike)):
        path = Path(f)
        if not path.parent.is_dir():
            raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    elif not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if as_zip:
        # Pickled first: a failure then leaves no damaged file behind.
        pickled = io.BytesIO()
        storages = StorageTable()
        dump(obj, pickled, access, storages, pickle_module, pickle_protocol)
        with _opened(f, "wb") as output:
            _write_archive(output, _archive_name(f), pickled.getvalue(), storages, with_byte_order)
    else:
        with _opened(f, "wb") as output:
            save_legacy(obj, output, access, pickle_module, pickle_protocol)


def _write_archive(
    output: IO[bytes], archive_name: str, pickled: bytes, storages: StorageTable, with_byte_order: bool
) -> None:
    writer = ZipWriter(output, archive_name, with_checksums=get_crc32_options())
    writer.write_record("data.pkl", pickled)
    writer.write_record(".format_version", b"1")
    writer.write_record(".storage_alignment", str(ALIGNMENT).encode())
    if with_byte_order:
        writer.write_record("byteorder", native_byte_order().encode())
    for key, view in storages.views.items():
        writer.write_record(f"data/{key}", memory_of(view.data))
    writer.write_record("version", b"3\n")
    writer.write_record(".data/serialization_id", writer.serialization_id().encode())
    writer.finish()


def _archive_name(f: FileLike) -> str:
    """PyTorch names the folder inside the archive after the file."""
    if not isinstance(f, (str, os.PathLike)):
        return "archive"
    stem = Path(f).stem
    return stem if stem and stem.isascii() and "/" not in stem else "archive"


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object that `save` or PyTorch has written.

    By default only tensors, plain containers and what `serialization.add_safe_globals` allows can be read, and no code
    from the file is run. `weights_only=False` reads any pickled object by running what the file says: only for files
    you trust. `mmap=True` maps the storages of a file into memory instead of reading them; changes to them are not
    written back.
    """
    return load_with(PullbackTensors(), f, map_location, pickle_module,
                     weights_only=weights_only, mmap=mmap, **pickle_load_args)  # fmt: skip


def load_with(
    access: TensorAccess,
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """`load` for any kind of tensors."""
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    unpickling = None if weights_only else pickle_module or pickle
    if unpickling is not None:
        pickle_load_args.setdefault("encoding", "utf-8")
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f, "rb") as source:
        kind = _kind_of(source)
        vocabulary = Vocabulary(access, _size_of(source))
        if kind == "zip":
            return _load_zip(source, vocabulary, map_location, unpickling, bool(mmap), pickle_load_args)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with "
                f"`{display_namespace()}.save(..., _use_new_zipfile_serialization=True)`: save this one again"
            )
        if kind == "tar":
            return TarReader(source, vocabulary, map_location).load(unpickling, pickle_load_args)
        start = source.tell()
        reader = LegacyReader(_rest_of(source), vocabulary, map_location)
        result = reader.load(unpickling, pickle_load_args)
        source.seek(start + reader.position)
        return result


@contextmanager
def _opened(f: FileLike, mode: str) -> Iterator[IO[bytes]]:
    if isinstance(f, (str, os.PathLike)):
        with replaced_when_written(f) if mode == "wb" else open(f, mode) as opened:
            yield cast(IO[bytes], opened)
    else:
        yield f
        if mode == "wb" and hasattr(f, "flush"):
            f.flush()


def _kind_of(source: IO[bytes]) -> str:
    for method in ("seek", "tell", "read"):
        if not hasattr(source, method):
            raise AttributeError(
                f"'{type(source).__name__}' object has no attribute '{method}'. You can only load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and load from it instead."
            )
    start = source.tell()
    head = source.read(512)
    source.seek(start)
    if head[:4] == b"PK\x03\x04":
        return "zip"
    if head[257:262] == b"ustar" or head[:8].rstrip(b"\0") in (b"storages", b"sys_info"):
        return "tar"
    if head[8:10] == b'{"' or (head[8:9] == b"{" and head[4:8] == b"\0\0\0\0"):
        raise RuntimeError(
            f"Invalid magic number; corrupt file? It looks like safetensors: use "
            f"{display_namespace()}.serialization.safetensors.load_file"
        )
    return "legacy"


def _size_of(source: IO[bytes]) -> int:
    start = source.tell()
    size = source.seek(0, os.SEEK_END)
    source.seek(start)
    return size or 0


def _rest_of(source: IO[bytes]) -> bytes | memory_map.mmap:
    """The file as a buffer; a real one is mapped, so that only what is used is read."""
    if isinstance(source, io.BufferedReader) and source.tell() == 0:
        try:
            return memory_map.mmap(source.fileno(), 0, access=memory_map.ACCESS_READ)
        except (OSError, ValueError):
            pass
    return source.read()


def _load_zip(
    source: IO[bytes],
    vocabulary: Vocabulary,
    map_location: MapLocation,
    pickle_module: Any,
    mapped: bool,
    options: dict[str, Any],
) -> Any:
    mapping = memory_map.mmap(source.fileno(), 0, access=memory_map.ACCESS_COPY) if mapped else None
    reader = ZipReader(source, mapping)
    if reader.has_record("constants.pkl"):
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: the file holds a "
            "compiled program, which pullback does not run. Save the model's state_dict() instead."
        )
    pickled = reader.read_record("data.pkl")
    _check_version(reader)
    loader = ZipStorageLoader(reader, map_location, _byte_order(reader))
    if pickle_module is None:
        return RestrictedUnpickler(pickled, vocabulary, loader.persistent_load).load()
    stream = io.BytesIO(pickled)
    return make_unpickler(pickle_module, stream, vocabulary, loader.persistent_load, **options).load()


def _check_version(reader: ZipReader) -> None:
    name = next((name for name in ("version", ".data/version") if reader.has_record(name)), None)
    if name is None:
        raise RuntimeError('Expected hasRecord("version") to be true, but got false: the archive is not a checkpoint')
    text = reader.read_record(name)[:20].strip()
    if not text.isdigit():
        raise RuntimeError(f"Couldn't parse the version {text!r} as Long Long.")
    if not _OLDEST_VERSION <= int(text) <= _NEWEST_VERSION:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {int(text)}, but the maximum supported version for reading "
            f"is {_NEWEST_VERSION}."
        )


def _byte_order(reader: ZipReader) -> str:
    if not reader.has_record("byteorder"):
        return assumed_byte_order()
    text = reader.read_record("byteorder")[:20]
    if text not in (b"little", b"big"):
        raise ValueError(f"Unknown endianness type: {text.decode('ascii', 'replace')}")
    return text.decode()


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """List the names a checkpoint uses that `load` would refuse with `weights_only=True`, without running any of it."""
    unsafe: dict[str, None] = {}
    vocabulary = Vocabulary(PullbackTensors())
    with _opened(f, "rb") as source:
        if _kind_of(source) != "zip":
            raise ValueError("Expected input to be a checkpoint returned by save(), in the zip format")
        pickled = ZipReader(source).read_record("data.pkl")
    for module, name in _globals_of(pickled):
        if vocabulary.find(module, name) is None and vocabulary.find_user_object(module, name) is None:
            unsafe[f"{module}.{name}"] = None
    return list(unsafe)


def _globals_of(pickled: bytes) -> Iterator[tuple[str, str]]:
    import pickletools

    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            yield module, name
        elif opcode.name == "STACK_GLOBAL" and len(strings) > 1:
            yield strings[-2], strings[-1]
        elif "UNICODE" in opcode.name:
            strings.append(str(argument))
