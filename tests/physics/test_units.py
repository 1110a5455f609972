"""Units follow the algebra of expressions, and are left out where they cannot be told."""

from __future__ import annotations

import pytest

from physs_runner.physics.expression import parse
from physs_runner.physics.spec import read_physics
from physs_runner.physics.units import raised, read_unit, unit_of, with_data_units, write_unit

FLOW = {
    "coordinates": {"time": "t", "space": ["x", "y"]},
    "latents": ["phi", "psi"],
    "outputs": {"vx": "phi_x + psi_y", "vy": "phi_y - psi_x"},
    "parameters": {"nu": {"value": 1.0, "unit": "km2 h-1"}},
}
MEASURED = {"t": "h", "x": "km", "y": "km", "vx": "m s-1", "vy": "m s-1"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("m/s", "m s-1"),
        ("kg m^2 s^-2", "kg m2 s-2"),
        ("W/m2/K", "W m-2 K-1"),
        ("1/s", "s-1"),
        ("m s-1 s", "m"),
        ("m/m", "1"),
        ("degrees_east", "degree"),
        ("", "1"),
    ],
)
def test_units_are_read_as_people_write_them(text: str, written: str) -> None:
    """Slashes, carets and exponents mean the same product of powers."""
    powers = read_unit(text)
    assert powers is not None
    assert write_unit(powers) == written


def test_what_is_not_a_product_of_powers_is_no_unit() -> None:
    """A reference date is not multiplied, and nothing follows from it."""
    assert read_unit("hours since 2016-02-25") is None
    assert raised("hours since 2016-02-25", 2) is None
    assert raised(None, 2) is None
    assert raised("m s-1", 2) == "m2 s-2"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("phi", "m km s-1"),
        ("vx", "m s-1"),
        ("d(vx, x) + d(vy, y)", "m s-1 km-1"),
        ("vx_t - nu*laplacian(vx)", "m s-1 h-1"),
        ("(vx**2 + vy**2)/2 + 1", "m2 s-2"),
        ("phi + vx", None),
        ("sin(phi/phi)", "1"),
        ("vx**0.5", None),
        ("x*vx", "km m s-1"),
    ],
)
def test_expressions_have_the_unit_of_their_parts(text: str, unit: str | None) -> None:
    """Derivatives divide, products multiply, unlike sums have no unit; potentials follow."""
    physics = with_data_units(read_physics(FLOW), MEASURED)
    found = unit_of(parse(text, physics.scope, "test"), physics.units)
    assert (found and read_unit(found)) == (unit and read_unit(unit))


def test_contradictory_outputs_leave_a_latent_without_unit() -> None:
    """A potential that would need two units has none."""
    physics = with_data_units(read_physics(FLOW), {**MEASURED, "vy": "m"})
    assert "phi" not in physics.units
    assert physics.units["vy"] == "m"
