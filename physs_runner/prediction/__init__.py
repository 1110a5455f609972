"""Fields, metrics and figures from a posterior."""
