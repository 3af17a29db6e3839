"""The metadata of an installed `torch`, which libraries ask for by `importlib.metadata.version("torch")`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any


class TorchDistribution(Distribution):
    """What package metadata say while `torch` means pullback: the name, and the release that pullback follows."""

    def __init__(self, version: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\nSummary: pullback in its place\n",
            "top_level.txt": "torch\n",
            "RECORD": "",
        }

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file of metadata, None for one that is not there."""
        return self._texts.get(filename)

    def locate_file(self, path: Any) -> Path:
        """Return where a file of the package lies."""
        return Path(__file__).parents[2] / path


class TorchDistributionFinder(DistributionFinder):
    """Answers for the distribution `torch`, before one that is installed."""

    def __init__(self, version: str) -> None:
        self._distribution = TorchDistribution(version)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Find no module: this is about metadata alone."""

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        """Give the one distribution where it, or every one, is asked for."""
        asked = getattr(context, "name", None)
        return [self._distribution] if asked is None or asked.lower() == "torch" else []
