"""Figures of a run and of a comparison of runs, in one colour-blind safe style."""
