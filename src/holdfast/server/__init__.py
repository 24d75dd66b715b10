"""A page to look at, and the API behind it: the explorer of one stream, the live monitor of many."""
