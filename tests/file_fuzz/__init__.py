"""Damaged and malicious files: bytes and pickle opcodes of real files are changed at random, and the files are loaded."""
