"""Physics-informed state-space Gaussian processes, stated in YAML.

Importing the package imports none of its heavy dependencies; the command line
stays responsive and each command loads only what it uses.
"""

import os

# LAPACK calls here work on many small matrices. OpenBLAS' threads then only get in each
# other's way: one thread made factorisations of size 400 ten times faster on two cores.
# It must be said before NumPy is imported; a user's own setting stands.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
