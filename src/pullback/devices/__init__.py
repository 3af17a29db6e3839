"""Devices other than the CPU: their arrays, and which kernel serves an operation on them. See Note [Kernels by device]."""
