"""Tables of observations: readers, generators, splits, and where equations are enforced."""
