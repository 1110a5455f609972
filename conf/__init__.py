"""The packaged config groups; a Python package so that they ship with an installation."""
