"""Signal processing under the names of `torch.signal`."""

from __future__ import annotations

from pullback.pytorch.signal import windows as windows
