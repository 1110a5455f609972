"""What a sweep varies, read from overrides and presets."""

import pytest

from physs_runner.config.compose import Request
from physs_runner.config.space import Interval, Listed, grid, read_space
from physs_runner.errors import ConfigError


def test_lists_ranges_and_choices_are_listed():
    """Hydra's ways to list values all become lists, in the order given."""
    space = read_space(
        Request(("name=x", "seed=range(0,3)", "dtype=choice(float32,float64)", "a.b=[1,2],[3]")),
        {},
    )
    assert space.fixed == ("name=x",)
    assert space.axes == (
        Listed("seed", ("0", "1", "2")),
        Listed("dtype", ("float32", "float64")),
        Listed("a.b", ("[1,2]", "[3]")),
    )
    combinations = grid(space.axes)
    assert len(combinations) == 3 * 2 * 2
    assert combinations[1] == ("seed=0", "dtype=float32", "a.b=[3]")


def test_intervals_are_searched():
    """Intervals keep their ends, whole numbers and logarithmic scale; a grid refuses them."""
    space = read_space(Request(("a=tag(log,interval(1e-3,1))", "b=int(interval(1,9))")), {})
    assert space.axes == (Interval("a", 1e-3, 1.0, False, True), Interval("b", 1, 9, True, False))
    with pytest.raises(ConfigError, match="a: an interval is searched, not listed; add sweep="):
        grid(space.axes)


def test_command_line_replaces_a_preset():
    """A preset's key that the command line gives too is the command line's."""
    space = read_space(Request(("seed=7",)), {"seed": "range(5)", "physics.count": [10, 100]})
    assert space == (("seed=7",), (Listed("physics.count", ("10", "100")),))


def test_jobs_know_nothing_of_the_sweep():
    """Keys that say how to sweep reach no job, and cannot be swept over."""
    own = ("sweep=optuna", "launcher=joblib", "launcher.workers=2", "hydra.sweep.dir=x")
    assert read_space(Request((*own, "seed=1")), {}).fixed == ("seed=1",)
    with pytest.raises(ConfigError, match="launcher: says how to sweep"):
        read_space(Request(("launcher=basic,joblib",)), {})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a=interval(1,1)", "a: the interval from 1.0 to 1.0 is empty"),
        ("a=tag(log,interval(0,1))", "a: a logarithmic interval must start above 0, not at 0.0"),
        ("a=choice(1,", "command line: cannot read"),
    ],
)
def test_wrong_space(text, sentence):
    """A space that makes no sense is refused in a sentence."""
    with pytest.raises(ConfigError) as caught:
        read_space(Request((text,)), {})
    assert str(caught.value).startswith(sentence)
