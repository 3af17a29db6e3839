"""Tests of torch.export."""
