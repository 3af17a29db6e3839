"""The programs here are run by tests in processes of their own, on PyTorch and on pullback; they are not tests."""

collect_ignore_glob = ["*_program.py"]
