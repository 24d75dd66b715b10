"""The explorer: one stream, looked at with one setting or with two side by side."""
