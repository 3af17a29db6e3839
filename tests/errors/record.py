"""Record what PyTorch raises: `python -m tests.errors.record`. Needs torch 2.13.

Writes expected.txt: per call the type of PyTorch's exception and the words that its message and ours share. Prints the
calls after which the two differ: another type, or fewer than three words in common (of a message that has three).
"""

from __future__ import annotations

import sys

import torch

import pullback

from .outcomes import EXPECTED, common_words, is_of_type, outcome, read_calls, type_name, words_of


def main(files: list[str]) -> int:
    """Compare the calls of the files named; record those of all."""
    rows, differ, worded, made = [], 0, 0, 0
    for file, before, call in read_calls():
        if files and file not in files:
            continue
        theirs, ours = outcome(torch, before, call), outcome(pullback, before, call)
        made += 1
        shared = common_words(words_of(theirs), words_of(ours))[:8] if theirs is not None else []
        if not is_of_type(ours, type_name(theirs)):
            differ += 1
            print(f"TYPE {file}: {call}\n    {theirs!r:.300}\n    {ours!r:.300}", flush=True)
            continue
        if theirs is not None and len(shared) < min(3, len(words_of(theirs))):
            worded += 1
            print(f"WORDS {file}: {call}\n    {theirs!r:.300}\n    {ours!r:.300}", flush=True)
        rows.append("\t".join((file, call, type_name(theirs), " ".join(shared))) + "\n")
    print(f"calls {made}, other types {differ}, other words {worded}")
    if not files:
        EXPECTED.write_text("".join(rows), encoding="utf-8")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
