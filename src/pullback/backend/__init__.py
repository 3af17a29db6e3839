"""Arrays, dtypes, devices and random numbers: the border to the array library."""
