"""Writes src/pullback-stubs: what editors and type checkers read of `pullback`, made from schemas and from the modules.

Public names are found at run time, where no checker can follow. A stub says each of them: a function that has schemas
gets one signature per schema, with exact types; everything else is imported from the module that defines it, so that an
editor shows its docstring and goes to its text. Run as `python -m tools.stubs [--check]`.
"""
