"""Algorithms that turn a model into a posterior."""
