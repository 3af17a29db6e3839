"""Passes over graphs."""

from pullback.fx.passes import shape_prop as shape_prop
from pullback.fx.passes import split_module as split_module
