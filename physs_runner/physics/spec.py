"""Problems: the physics section of a config as typed, checked records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from physs_runner.errors import ConfigError
from physs_runner.physics import boundary, fields
from physs_runner.physics.calculus import degree
from physs_runner.physics.design import Design
from physs_runner.physics.equation import Equation
from physs_runner.physics.expression import Expression, Scope, parse
from physs_runner.physics.names import near
from physs_runner.physics.parameters import Parameter, read_parameters
from physs_runner.physics.priors import Prior
from physs_runner.physics.render import symbol
from physs_runner.physics.terms import read_collocation, read_constraints, read_residuals

__all__ = ["Design", "Equation", "Parameter", "Physics", "Prior", "read_physics"]

_KEYS = (
    "name",
    "coordinates",
    "latents",
    "parameters",
    "outputs",
    "residuals",
    "boundary",
    "constraints",
    "collocation",
    "domain",
    "units",
)
_KEYWORDS = frozenset({*boundary.SETTINGS, "order", "latents"})
_DEFAULT_TIME = "t"


@dataclass(frozen=True)
class Physics:
    """A problem: its names, equations and what is observed.

    A section without ``coordinates`` or ``latents`` fits any dataset: until ``bind``
    is called its coordinates are one time axis and its latents are empty.

    Attributes:
        name: of the problem.
        time: name of the time coordinate.
        space: names of the space coordinates.
        latents: names of the unknown functions.
        parameters: the constants of the equations.
        outputs: what can be observed, affine in the latents' jets.
        equations: everything that informs the latents besides data.
        domain: extents that replace those of the data, by coordinate.
        units: by coordinate, latent, output or parameter.
        source: the section it was read from.
    """

    name: str
    time: str
    space: tuple[str, ...]
    latents: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    outputs: Mapping[str, Expression]
    equations: tuple[Equation, ...]
    domain: Mapping[str, tuple[float, float]]
    units: Mapping[str, str]
    source: Mapping[str, Any]

    @property
    def scope(self) -> Scope:
        """The names that further expressions, such as predictions, may use."""
        names = tuple(parameter.name for parameter in self.parameters)
        return Scope(self.time, self.space, self.latents, names, self.outputs)

    @property
    def random(self) -> tuple[str, ...]:
        """Names of the parameters that have a prior."""
        return tuple(item.name for item in self.parameters if item.prior is not None)

    def is_linear(self, expressions: Iterable[Expression]) -> bool:
        """Tell whether expressions are affine in the latents and free of uncertain parameters."""
        random = set(self.random)
        return all(e.linear and random.isdisjoint(e.parameters) for e in expressions)

    @property
    def linear_gaussian(self) -> bool:
        """Whether every equation and output is Gaussian and jointly linear."""
        parts = [*self.outputs.values(), *(p for e in self.equations for p in e.parts)]
        gaussian = all(equation.likelihood == "gaussian" for equation in self.equations)
        return gaussian and all(part.linear_with(self.random) for part in parts)

    def bind(self, outputs: Sequence[str], time: str, space: Sequence[str]) -> Physics:
        """Fit the problem to a dataset's names: fill what was left open, check the rest."""
        section = dict(self.source)
        if section.get("coordinates") is None:
            section["coordinates"] = {"time": time, "space": list(space)}
        elif (time, *space) != (self.time, *self.space):
            raise ConfigError(
                "physics.coordinates",
                f"are {_listing((self.time, *self.space))} but the dataset has "
                f"{_listing((time, *space))}; rename one of them",
            )
        if section.get("latents") is None:
            section["latents"] = list(outputs)
        bound = read_physics(section)
        for name in outputs:
            if name not in bound.outputs:
                raise ConfigError(
                    "physics.outputs",
                    f"the dataset observes {name}, which is not among the outputs "
                    f"{_listing(tuple(bound.outputs))}{near(name, bound.outputs)}",
                )
        return bound

    def describe(self) -> list[str]:
        """Write every output and equation on a line, as on paper.

        Outputs that are just a latent of the same name go without saying.
        """
        lines = [
            f"{symbol(name)} = {part.render()}"
            for name, part in self.outputs.items()
            if part.render() != symbol(name)
        ]
        return lines + [
            line
            for equation in self.equations
            for line in equation.describe(linear=self.is_linear(equation.parts))
        ]


def _listing(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def read_physics(section: Mapping[str, Any]) -> Physics:
    """Read and check the plain mapping of a physics config.

    Raises:
        ConfigError: names the dotted key, what is wrong and what would be right.
    """
    section = fields.mapping(section, "physics")
    fields.known_keys(section, _KEYS, "physics")
    time, space = _read_coordinates(section.get("coordinates"))
    given = section.get("latents")
    latents = () if given is None else fields.names(given, "physics.latents")
    parameters = read_parameters(section.get("parameters"))
    _check_distinct(time, space, latents, parameters)
    bare = Scope(time, space, latents, tuple(item.name for item in parameters))
    outputs = _read_outputs(section.get("outputs"), bare)
    scope = Scope(time, space, latents, bare.parameters, outputs)
    collocation = read_collocation(
        section.get("collocation"), scope.coordinates, "physics.collocation"
    )
    equations = [
        *read_residuals(section.get("residuals"), scope, collocation),
        *boundary.read_boundary(section.get("boundary"), scope, collocation.design),
        *read_constraints(section.get("constraints"), scope, collocation),
    ]
    if section.get("boundary"):
        _check_keywords((*scope.coordinates, *latents, *outputs))
    _check_unique([equation.name for equation in equations])
    known = (*scope.coordinates, *latents, *outputs, *bare.parameters)
    units = {item.name: item.unit for item in parameters if item.unit is not None}
    units |= _read_units(section.get("units"), known)
    return Physics(
        name=_read_name(section.get("name")),
        time=time,
        space=space,
        latents=latents,
        parameters=tuple(replace(item, unit=units.get(item.name)) for item in parameters),
        outputs=outputs,
        equations=tuple(equations),
        domain=_read_domain(section.get("domain"), scope.coordinates),
        units=units,
        source=section,
    )


def _read_name(value: Any) -> str:
    if value is None:
        return "custom"
    if not isinstance(value, str) or not value:
        raise ConfigError("physics.name", f"expected text, found {value!r}")
    return value


def _read_coordinates(value: Any) -> tuple[str, tuple[str, ...]]:
    key = "physics.coordinates"
    section = fields.mapping(value, key)
    fields.known_keys(section, ("time", "space"), key)
    given_time, given_space = section.get("time"), section.get("space")
    time = _DEFAULT_TIME if given_time is None else fields.name(given_time, f"{key}.time")
    space = () if given_space is None else fields.names(given_space, f"{key}.space")
    if len(space) > 3:
        raise ConfigError(f"{key}.space", f"at most 3 space coordinates, found {len(space)}")
    return time, space


def _check_distinct(
    time: str, space: tuple[str, ...], latents: tuple[str, ...], parameters: tuple[Parameter, ...]
) -> None:
    groups = {
        "coordinates": (time, *space),
        "latents": latents,
        "parameters": tuple(item.name for item in parameters),
    }
    seen: dict[str, str] = {}
    for group, members in groups.items():
        for name in members:
            key = f"physics.{group}"
            if name in seen:
                raise ConfigError(key, f"{name} is already one of the {seen[name]}")
            seen[name] = group
    _check_no_derivatives(groups["latents"] + groups["parameters"], time, space, latents)


def _check_no_derivatives(
    names: tuple[str, ...], time: str, space: tuple[str, ...], latents: tuple[str, ...]
) -> None:
    """Refuse names that look like the derivative of another latent."""
    for name in names:
        others = tuple(latent for latent in latents if latent != name)
        if _reads(name, Scope(time, space, others)):
            raise ConfigError("physics", f"the name {name} reads as a derivative; choose another")


def _reads(text: str, scope: Scope) -> bool:
    try:
        parse(text, scope, "physics")
    except ConfigError:
        return False
    return True


def _read_outputs(value: Any, scope: Scope) -> dict[str, Expression]:
    """Read what is observed; every latent as itself unless stated."""
    section = fields.mapping(value, "physics.outputs")
    if not section:
        return {name: parse(name, scope, "physics.latents") for name in scope.latents}
    found: dict[str, Expression] = {}
    for name, text in section.items():
        key = f"physics.outputs.{name}"
        fields.name(name, key)
        if name in (*scope.coordinates, *scope.parameters):
            raise ConfigError(key, f"the name {name} is taken; choose another")
        expression = parse(fields.text(text, key), scope, key)
        if degree(expression.node) != 1:
            raise ConfigError(
                key, f"must be linear in the latents and their derivatives: {expression.text:.80}"
            )
        if _reads(name, scope) and parse(name, scope, key).node != expression.node:
            raise ConfigError(key, f"the name {name} already means something else; choose another")
        found[name] = expression
    return found


def _check_keywords(names: tuple[str, ...]) -> None:
    for name in names:
        if name in _KEYWORDS:
            raise ConfigError("physics", f"{name} is a key of boundary conditions; rename it")


def _check_unique(names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError("physics", f"two equations are called {name}; rename one")


def _read_domain(value: Any, coordinates: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    section = fields.mapping(value, "physics.domain")
    fields.known_keys(section, coordinates, "physics.domain")
    found: dict[str, tuple[float, float]] = {}
    for name, ends in section.items():
        key = f"physics.domain.{name}"
        if ends is None:
            continue
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise ConfigError(key, f"expected [low, high], found {ends!r}")
        low, high = (fields.number(end, key) for end in ends)
        if low >= high:
            raise ConfigError(key, f"low must be below high, found [{low:g}, {high:g}]")
        found[name] = (low, high)
    return found


def _read_units(value: Any, known: tuple[str, ...]) -> dict[str, str]:
    section = fields.mapping(value, "physics.units")
    fields.known_keys(section, known, "physics.units")
    for name, unit in section.items():
        if not isinstance(unit, str):
            raise ConfigError(f"physics.units.{name}", f"expected text, found {unit!r}")
    return dict(section)
