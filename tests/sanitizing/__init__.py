"""Odd arrays and numbers handed to every compiled kernel, for builds that notice reads and writes outside of memory."""
