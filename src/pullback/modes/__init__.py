"""The thread-local switches that change how an operation is recorded."""
