"""Streams that are watched live: points come in, are learnt, kept and told, one group after another."""
