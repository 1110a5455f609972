"""Covariance functions: Markov kernels over time, derivative kernels over space."""
