"""Compile kernels, and the arithmetic they share: SIMD lanes, exp, log, sorting."""
