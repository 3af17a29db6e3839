"""Passes over graphs."""

from pullback.fx.passes import shape_prop as shape_prop
