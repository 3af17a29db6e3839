"""Generates src/pullback/generated from the kernels' signatures and the rules. Run: python -m tools.codegen [--check]"""
