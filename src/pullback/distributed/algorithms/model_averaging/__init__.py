"""Averaging parameters, now and then, where gradients are not averaged in every pass."""
