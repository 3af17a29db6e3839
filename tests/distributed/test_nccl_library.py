"""libnccl by ctypes, against a library of one rank that is compiled here: order and sizes of arguments, errors."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.distributed import nccl_library

SOURCE = """
#include <string.h>
#include <stddef.h>
typedef struct { char internal[128]; } id;
typedef void *comm;
static const int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
const char *ncclGetErrorString(int status) { return status == 5 ? "invalid usage" : "other"; }
int ncclGetUniqueId(id *made) { memset(made, 7, sizeof *made); return 0; }
int ncclCommInitRank(comm *made, int ranks, id number, int rank)
{ *made = (void *)0x1234567890; return number.internal[127] == 7 && ranks == 1 && rank == 0 ? 0 : 5; }
int ncclCommDestroy(comm of) { return of == (void *)0x1234567890 ? 0 : 5; }
int ncclGroupStart(void) { return 0; }
int ncclGroupEnd(void) { return 0; }
static int copied(const void *from, void *to, size_t count, int dtype, comm of, void *stream)
{
    if (of != (void *)0x1234567890 || stream != (void *)0x1122334455)
        return 5;
    memmove(to, from, count * sizes[dtype]);
    return 0;
}
int ncclAllReduce(const void *f, void *t, size_t n, int d, int op, comm c, void *s)
{ return op == 2 ? copied(f, t, n, d, c, s) : 5; }
int ncclReduce(const void *f, void *t, size_t n, int d, int op, int root, comm c, void *s)
{ return op == 2 && root == 0 ? copied(f, t, n, d, c, s) : 5; }
int ncclBroadcast(const void *f, void *t, size_t n, int d, int root, comm c, void *s)
{ return root == 0 ? copied(f, t, n, d, c, s) : 5; }
int ncclAllGather(const void *f, void *t, size_t n, int d, comm c, void *s) { return copied(f, t, n, d, c, s); }
int ncclReduceScatter(const void *f, void *t, size_t n, int d, int op, comm c, void *s)
{ return op == 2 ? copied(f, t, n, d, c, s) : 5; }
static const void *sent;
int ncclSend(const void *f, size_t n, int d, int peer, comm c, void *s) { sent = f; return peer; }
int ncclRecv(void *t, size_t n, int d, int peer, comm c, void *s) { return peer ? 5 : copied(sent, t, n, d, c, s); }
"""
STREAM = 0x1122334455
FLOAT64, MAX = 8, 2


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder: Path = tmp_path_factory.mktemp("nccl")
    (folder / "nccl.c").write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "nccl.c", "-o", "nccl.so"], cwd=folder, check=True)
    made = ctypes.CDLL(str(folder / "nccl.so"))
    made.ncclGetErrorString.restype = ctypes.c_char_p
    return made


@pytest.fixture
def library(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(nccl_library, "find", lambda: compiled)
    return compiled


def test_every_collective_of_one_rank_copies(library: Any) -> None:
    comm = nccl_library.NcclCommunicator(1, nccl_library.get_unique_id(), 0)
    source = np.arange(3.0)
    place = source.ctypes.data
    calls = {
        "allReduce": (3, FLOAT64, MAX), "reduce": (3, FLOAT64, MAX, 0), "broadcast": (3, FLOAT64, 0),
        "allGather": (3, FLOAT64), "reduceScatter": (3, FLOAT64, MAX),
    }  # fmt: skip
    for name, facts in calls.items():
        target = np.zeros(3)
        getattr(comm, name)(place, target.ctypes.data, *facts, STREAM)
        assert target.tolist() == [0, 1, 2], name
    target = np.zeros(3)
    nccl_library.groupStart()
    comm.send(place, 3, FLOAT64, 0, STREAM)
    comm.recv(target.ctypes.data, 3, FLOAT64, 0, STREAM)
    nccl_library.groupEnd()
    assert target.tolist() == [0, 1, 2]
    comm.destroy()
    comm.destroy()


def test_what_nccl_refuses_is_raised_in_its_words(library: Any) -> None:
    with pytest.raises(nccl_library.NcclError, match="ncclCommInitRank failed: invalid usage"):
        nccl_library.NcclCommunicator(2, nccl_library.get_unique_id(), 1)


def test_a_library_that_is_not_there_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_library, "_candidates", lambda: ["libnccl-of-nobody.so.2"])
    nccl_library.find.cache_clear()
    assert nccl_library.find() is None
    nccl_library.find.cache_clear()
