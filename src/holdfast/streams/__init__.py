"""Sources, sinks, checkpoints, and what runs between them."""
