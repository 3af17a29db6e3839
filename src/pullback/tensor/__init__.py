"""The value: Tensor, its version counter, its size and how it prints."""
