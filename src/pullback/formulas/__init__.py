"""Multi-step formulas that rules call: written once on Tensors, rendered again on arrays by the generator.

In these files `F` means operations on Tensors; in generated/array_formulas.py the same text runs with `F` meaning kernels.
A formula that also has a kernel of the same name uses the kernel on arrays. So a formula may use only `F.x(...)`,
operators, `.shape`, `.dtype`, `.ndim`, and Python on what is not a tensor.
"""
