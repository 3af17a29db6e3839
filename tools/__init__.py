"""Programs that make and check the source; none of them is installed."""
