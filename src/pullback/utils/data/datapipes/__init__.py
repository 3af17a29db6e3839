"""Chains of datasets, each made of the one before: `IterableWrapper(data).map(f).batch(4)`."""

from pullback.utils.data.datapipes import iter, map
from pullback.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]
