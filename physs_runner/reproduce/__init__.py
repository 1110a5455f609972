"""The paper's experiments: run them, and write its tables with our figures beside them."""
