"""Keeping a run: a directory that is the truth, and a store that holds a copy."""
