"""Units' contributions: what kinds of rows there are, how they are clipped and summed."""
