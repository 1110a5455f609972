"""Measurements of cost; ``python -m benchmarks`` prints them and writes docs/BENCHMARKS.md."""
