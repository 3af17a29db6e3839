"""Backward: the graph's execution."""
