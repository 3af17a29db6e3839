"""The rules: one line per differentiable input, a file per family. Read by tools/codegen, never run."""
