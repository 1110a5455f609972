"""Sweeps: many runs of one command line, on one machine or many."""
