"""Benchmarks that detect regressions between commits (asv.conf.json)."""
