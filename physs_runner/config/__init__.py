"""From YAML to a checked, frozen record of one run."""
