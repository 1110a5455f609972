"""Which outputs are the components of a vector, and what is derived from them."""

from __future__ import annotations

from typing import NamedTuple

from physs_runner.prediction.figures.maps import Plane, is_spatial
from physs_runner.prediction.figures.scene import Scene, by_dimension, grid_axes

DERIVED = ("divergence", "vorticity")
_PAIRS = (("u", "v"), ("U", "V"))


class Vector(NamedTuple):
    """Two quantities that are the components of a vector along a plane's axes."""

    across: str
    up: str
    plane: Plane


def find_vector(scene: Scene) -> Vector | None:
    """Find two outputs that form a vector over the plane that is shown.

    Outputs named after the axes (``vx``, ``v_y``) are components wherever the
    plane lies; ``u`` and ``v``, or the only two outputs, are taken in order,
    but only where both axes are space.
    """
    names = [q for q in scene.dataset.outputs if f"{q}_mean" in scene.predictions]
    if len(names) < 2:
        return None
    axes = grid_axes(scene.predictions, names[0])
    space = tuple(a for a in axes if a != scene.dataset.time)
    if len(space) < 2 and len(axes) != 2:
        return None
    plane = Plane(*(space[:2] if len(space) >= 2 else axes))
    named = [[n for n in names if _points_along(n, axis)] for axis in plane]
    if all(len(found) == 1 for found in named):
        return Vector(named[0][0], named[1][0], plane)
    if not is_spatial(scene, plane):
        return None
    for pair in _PAIRS:
        if all(name in names for name in pair):
            return Vector(*pair, plane)
    return Vector(names[0], names[1], plane) if len(names) == 2 else None


def _points_along(name: str, axis: str) -> bool:
    return name != axis and name.endswith(axis) and len(name) - len(axis) <= 2


def drawn_alone(scene: Scene, *sizes: int) -> tuple[str, ...]:
    """List quantities of the given dimensions that deserve a figure of their own.

    Divergence and vorticity are drawn together with the vector they belong to.
    """
    taken = () if find_vector(scene) is None else DERIVED
    return tuple(q for q in by_dimension(scene.predictions, *sizes) if q not in taken)
