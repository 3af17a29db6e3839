"""The tests of the GPU, skipped without one. `make test-gpu` runs them; PULLBACK_DEVICES=1 where nothing is compiled."""

from __future__ import annotations

import pullback

collect_ignore_glob = [] if pullback.cuda.is_available() else ["test_*.py"]
