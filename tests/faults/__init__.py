"""Faults planted at every place of the public entry points: what they leave behind."""
