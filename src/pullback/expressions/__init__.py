"""Expressions over one element, as trees: read once from Python text, joined by substitution, printed in C, NumPy, CUDA.

`reader` follows the text of kernels and rules, `tree` holds what it finds, `functions` what is known of each function,
`rows` programs along one axis; `c_printer`, `numpy_printer` and `cuda_printer` write them. Nothing here computes, and
nothing needs the rest of the package: the generator uses it before the package can be imported.
"""
