"""Benchmarks of limpet, and the experiments of the paper it implements."""
