"""Say where the packages lie; everything else about the project is in pyproject.toml.

``conf/`` stands at the top of the project for people, and inside the package once
installed; pyproject.toml cannot both find packages and add that one.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["physs_runner", "physs_runner.*"]), "physs_runner.conf"],
    package_dir={"physs_runner.conf": "conf"},
)
