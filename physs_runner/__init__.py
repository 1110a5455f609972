"""Physics-informed state-space Gaussian processes, stated in YAML.

Importing the package imports none of its heavy dependencies; the command line
stays responsive and each command loads only what it uses.
"""

__version__ = "0.1.0"
