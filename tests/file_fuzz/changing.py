"""Changes files at random: single bytes, stretches of bytes, opcodes of their pickles, records of their archives."""

from __future__ import annotations

import io
import pickle
import pickletools
import random
import struct
import zipfile
from collections.abc import Sequence

NUMBERS = (
    0,
    1,
    2,
    3,
    255,
    256,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**59,
    2**60,
    2**62,
    2**63 - 1,
    -1,
    -2,
    -(2**31),
    -(2**63),
)
NAMES = (
    b"os\nsystem\n", b"builtins\neval\n", b"builtins\nexec\n", b"builtins\ngetattr\n", b"posix\nsystem\n", b"subprocess\nrun\n",
    b"torch\nload\n", b"torch.hub\nload\n", b"collections\nOrderedDict\n", b"collections\nCounter\n", b"builtins\nset\n",
    b"builtins\nfrozenset\n", b"builtins\nbytearray\n", b"builtins\ncomplex\n", b"_codecs\nencode\n", b"torch\nSize\n",
    b"torch\ndevice\n", b"torch\nTensor\n", b"torch\nUntypedStorage\n", b"torch\nFloatStorage\n", b"torch\nComplexFloatStorage\n",
    b"torch\nfloat64\n", b"torch\nBFloat16Storage\n", b"torch.nn.parameter\nParameter\n", b"torch._utils\n_rebuild_tensor\n",
    b"torch._utils\n_rebuild_tensor_v2\n", b"torch._utils\n_rebuild_tensor_v3\n", b"torch._utils\n_rebuild_parameter\n",
    b"torch._utils\n_rebuild_parameter_with_state\n", b"torch._tensor\n_rebuild_from_type_v2\n",
    b"torch._utils\n_rebuild_sparse_tensor\n", b"torch.serialization\n_get_layout\n",
)  # fmt: skip
SIMPLE = (
    b"N", b"\x88", b"\x89", b")", b"]", b"}", b"\x8f", b"(", b"t", b"l", b"d", b"R", b"b", b"Q", b"0", b".", b"2", b"1", b"a",
    b"e", b"s", b"u", b"\x90", b"\x91", b"\x85", b"\x86", b"\x87", b"\x93", b"\x81", b"\x92", b"\x94", b"i", b"o", b"h\x00",
    b"q\x00", b"r\xff\xff\xff\xff", b"j\xff\xff\xff\xff", b"B\xff\xff\xff\x7f", b"X\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 8,
    b"\x96" + b"\xff" * 7 + b"\x7f", b"\x8b\xff\xff\xff\x7f", b"\x8a\xff" + b"\xff" * 254 + b"\x7f", b"G" + b"\x7f" * 8,
)  # fmt: skip


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes of its bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        place = rng.randrange(len(data))
        length = rng.choice([1, 1, 2, 4, 8, rng.randrange(1, 65)])
        way = rng.randrange(8)
        if way < 2:
            data[place] = rng.randrange(256)
        elif way == 2:
            data[place] ^= 1 << rng.randrange(8)
        elif way == 3:
            del data[place : place + length]
        elif way == 4:
            data[place:place] = rng.randbytes(length)
        elif way == 5:
            other = rng.randrange(len(data))
            data[place : place + length] = data[other : other + length]
        elif way == 6:
            data[place : place + 8] = struct.pack("<q", rng.choice(NUMBERS))
        else:
            del data[place:]
    return bytes(data)


def changed_opcodes(pickled: bytes, rng: random.Random) -> bytes:
    """The first pickle in the data with one to four of its opcodes changed."""
    pieces, rest = _opcodes(pickled)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(pieces))
        way = rng.randrange(8)
        if way == 0:
            del pieces[place]
        elif way == 1:
            pieces.insert(place, rng.choice(pieces))
        elif way == 2:
            pieces.insert(place, rng.choice(SIMPLE))
        elif way == 3:
            pieces[place] = rng.choice(SIMPLE)
        elif way == 4:
            pieces[place : place + rng.randint(1, 6)] = [number(rng.choice(NUMBERS))]
        elif way == 5:
            named = [i for i, piece in enumerate(pieces) if piece[:1] == b"c"] or [place]
            pieces[rng.choice(named)] = b"c" + rng.choice(NAMES)
        elif way == 6:
            numbers = [i for i, piece in enumerate(pieces) if piece[:1] in b"KMJ"] or [place]
            pieces[rng.choice(numbers)] = number(rng.choice(NUMBERS))
        else:
            pieces[place : place + 2] = reversed(pieces[place : place + 2])
        if not pieces:
            break
    return b"".join(pieces) + rest


def number(value: int) -> bytes:
    """The opcode that pushes a number."""
    encoded = pickle.encode_long(value)
    return pickle.LONG1 + bytes([len(encoded)]) + encoded


def _opcodes(pickled: bytes) -> tuple[list[bytes], bytes]:
    starts = [position or 0 for _, _, position in pickletools.genops(pickled)]
    end = starts[-1] + 1
    return [pickled[a:b] for a, b in zip(starts, [*starts[1:], end], strict=True)], pickled[end:]


def changed_records(content: bytes, rng: random.Random) -> bytes:
    """An archive with its pickle, or another of its records, changed, and with the right checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in records if name.endswith("/data.pkl"))
    if rng.random() < 0.8:
        records[pickled] = (changed_opcodes if rng.random() < 0.75 else changed_bytes)(records[pickled], rng)
    else:
        name = rng.choice(sorted(records))
        if rng.random() < 0.3:
            del records[name]
        else:
            records[name] = changed_bytes(records[name], rng)
    compression = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, record in records.items():
            archive.writestr(name, record)
    return file.getvalue()


def changed_pickles_in_a_row(content: bytes, rng: random.Random) -> bytes:
    """A file of the old format with one of its pickles changed."""
    starts = [0]
    for _ in range(4):
        rest = content[starts[-1] :]
        pieces, _ = _opcodes(rest)
        starts.append(starts[-1] + sum(map(len, pieces)))
    place = rng.choice([*starts[:-1], starts[3], starts[3], starts[3]])
    return content[:place] + changed_opcodes(content[place:], rng)


def multiplying(seeds: Sequence[bytes]) -> bytes:
    """A pickle in which a few bytes copy a long list, ten thousand times."""
    made = b"".join(seeds)
    return b"\x80\x02(" + b"N" * 20_000 + b"lq\x00" + (b"h\x00" + made) * 10_000 + b"."
