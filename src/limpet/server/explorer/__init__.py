"""Explorer: run different settings on one stream and compare the results."""
