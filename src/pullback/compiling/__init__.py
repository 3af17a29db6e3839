"""compile: what a function does is recorded as a program of kernels, made faster, and run instead of its Python."""
