"""How kernels are compiled, and the arithmetic that they share: SIMD lanes, exp and log, sorting."""
