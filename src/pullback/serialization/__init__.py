"""Checkpoints: PyTorch's files read and written without PyTorch, and safetensors.

`load` runs no code from a file unless it is asked to with `weights_only=False`; restricted_unpickler.py says how.
"""

from pullback.serialization.checkpoint import DEFAULT_PROTOCOL as DEFAULT_PROTOCOL
from pullback.serialization.checkpoint import get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint
from pullback.serialization.checkpoint import load as load
from pullback.serialization.checkpoint import save as save
from pullback.serialization.legacy import MAGIC_NUMBER as MAGIC_NUMBER
from pullback.serialization.legacy import PROTOCOL_VERSION as PROTOCOL_VERSION
from pullback.serialization.options import LoadEndianness as LoadEndianness
from pullback.serialization.options import SourceChangeWarning as SourceChangeWarning
from pullback.serialization.options import get_crc32_options as get_crc32_options
from pullback.serialization.options import get_default_load_endianness as get_default_load_endianness
from pullback.serialization.options import set_crc32_options as set_crc32_options
from pullback.serialization.options import set_default_load_endianness as set_default_load_endianness
from pullback.serialization.storage import default_restore_location as default_restore_location
from pullback.serialization.storage import location_tag as location_tag
from pullback.serialization.storage import register_package as register_package
from pullback.serialization.vocabulary import add_safe_globals as add_safe_globals
from pullback.serialization.vocabulary import clear_safe_globals as clear_safe_globals
from pullback.serialization.vocabulary import get_safe_globals as get_safe_globals
from pullback.serialization.vocabulary import safe_globals as safe_globals
