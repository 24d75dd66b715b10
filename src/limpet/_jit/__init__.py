"""Compilation of kernels, and arithmetic that they share: SIMD lanes, exp and log, sorting."""
