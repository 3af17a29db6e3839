"""A storage read from a checkpoint, and on which device it is to live."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pullback.backend.device import device, find_library, usable_device
from pullback.backend.dtype import dtype
from pullback.backend.mirror import after_write
from pullback.backend.naming import display_namespace
from pullback.backend.storage import reverse_byte_order
from pullback.backend.widening import dtype_in_memory, is_known, widened_bytes, wider_dtype
from pullback.modes.user_warnings import warn_user
from pullback.typing import Array, DType

dtype_type: TypeAlias = dtype  # its name is taken where a storage has an attribute of that name


class Storage:
    """Bytes from a file that one or several tensors are views of."""

    __slots__ = ("_data", "_in_foreign_order", "_part_of", "_widened", "dtype", "location")

    def __init__(self, data: Array, dtype: dtype | None, location: str = "cpu", in_foreign_order: bool = False) -> None:
        self._data = data
        self._in_foreign_order = in_foreign_order
        self._part_of: tuple[Storage, int] | None = None
        self._widened: dict[dtype_type, Array] = {}
        self.dtype = dtype
        self.location = location
        if dtype is not None:
            self.bytes_as(dtype_in_memory(dtype))

    def bytes_as(self, numpy_dtype: DType) -> Array:
        """The bytes in the machine's order; the file's order can be undone only once the element type is known."""
        if self._in_foreign_order:
            reverse_byte_order(self._data, numpy_dtype)
            self._in_foreign_order = False
        return self._data

    def memory_of(self, element: dtype_type) -> tuple[Array, DType]:
        """The bytes and NumPy's dtype for tensors of an element type; a wider one where NumPy lacks that type."""
        if is_known(element):
            return self.bytes_as(element.numpy_dtype), element.numpy_dtype
        return self._wider(element), wider_dtype(element).numpy_dtype

    def _wider(self, element: dtype_type) -> Array:
        if self._part_of is not None:
            whole, start = self._part_of
            scale = wider_dtype(element).itemsize // element.itemsize
            return whole._wider(element)[start * scale : (start + self.nbytes()) * scale]
        if element not in self._widened:
            warn_user(
                f"{element.name} is read as {wider_dtype(element).name}, which holds every value of it: the package "
                "ml_dtypes, from which NumPy has that dtype, is not installed. Install pullback[bfloat16] to keep it."
            )
            self._widened[element] = widened_bytes(self.bytes_as(dtype_in_memory(element)), element)
        return self._widened[element]

    def fill(self, content: Array, in_foreign_order: bool) -> None:
        """Give a storage its bytes after tensors have been made over it."""
        if in_foreign_order and self.dtype is None:
            raise RuntimeError("an untyped storage in a file of another byte order cannot be read")
        self._data[...] = content
        if in_foreign_order and self.dtype is not None:
            reverse_byte_order(self._data, dtype_in_memory(self.dtype))
        for element, memory in self._widened.items():
            memory[...] = widened_bytes(self._data, element)
        after_write(self._data, None)  # see Note [Lazy conjugation]

    def part(self, start: int, stop: int) -> Storage:
        """The storage of some of the bytes, sharing them."""
        part = Storage(self._data[start:stop], self.dtype, self.location)
        part._part_of = (self, start)
        return part

    @property
    def device(self) -> device:
        """Where the bytes are now: always the CPU."""
        return device("cpu")

    def nbytes(self) -> int:
        """The size in bytes."""
        return int(self._data.size)

    def size(self) -> int:
        """The size in elements."""
        return self.nbytes() // (1 if self.dtype is None else self.dtype.itemsize)

    __len__ = size

    def cpu(self) -> Storage:
        """Return itself: storages are loaded to the CPU."""
        return self

    def cuda(self, device: object = None) -> Storage:
        """Refuse, as there is no such device here."""
        raise AssertionError("Torch not compiled with CUDA enabled: pullback.load() keeps storages on the CPU")

    def __repr__(self) -> str:
        element = "untyped" if self.dtype is None else self.dtype.name
        return f"<{display_namespace()} storage of {self.size()} {element} elements>"


MapLocation: TypeAlias = Callable[[Storage, str], Storage | None] | device | str | Mapping[str, str] | None
"""What `load(map_location=...)` takes."""

_Tagger: TypeAlias = Callable[[object], str | None]
_Deserializer: TypeAlias = Callable[[Storage, str], Storage | None]
_packages: list[tuple[int, _Tagger, _Deserializer]] = []


def register_package(priority: int, tagger: _Tagger, deserializer: _Deserializer) -> None:
    """Register how storages of another kind of device are named in a file and brought back from it.

    Packages are asked in order of `priority`; the first that answers with something other than None decides.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: object) -> str:
    """The name under which a file records where `storage` lives."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    return getattr(storage, "location", "cpu")


def default_restore_location(storage: Storage, location: str) -> Storage:
    """Bring a storage to the device its file names."""
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    kind = location.partition(":")[0]
    if kind == "cpu":
        storage.location = "cpu"
        return storage
    if find_library(kind) is not None:
        storage.location = str(usable_device(location))
        return storage
    if kind in ("cuda", "mps", "xpu"):
        name = display_namespace()
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but {name}.{kind}.is_available() is False. "
            f"The file says that this storage lived on '{location}': load it with map_location='cpu'."
        )
    raise RuntimeError(
        f"don't know how to restore data location of {display_namespace()}.storage.UntypedStorage "
        f"(tagged with {location}): load the file with map_location='cpu'"
    )


def restore_location(storage: Storage, location: str, map_location: MapLocation) -> Storage:
    """Bring a storage to where `map_location` sends what the file places at `location`."""
    if map_location is None:
        return default_restore_location(storage, location)
    if isinstance(map_location, Mapping):
        return default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, device)):
        return default_restore_location(storage, str(map_location))
    storage.location = "cpu"  # where its bytes are now
    chosen = map_location(storage, location)
    return default_restore_location(storage, location) if chosen is None else chosen
