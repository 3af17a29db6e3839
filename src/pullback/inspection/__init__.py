"""What a program can ask about its own gradients: memory, bits, precision, coverage, time; see docs/inspection.md.

Each report has plain data (`rows`, `to_dict()`), text (`str`) and HTML for notebooks. Nothing here is loaded, and
nothing is measured, unless somebody asks.
"""
