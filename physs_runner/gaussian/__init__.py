"""Gaussian algebra along a chain of times: filters, smoothers and their linear algebra."""
