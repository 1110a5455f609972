"""Figures of small synthetic runs: what is drawn, how it is labelled, where it is saved."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest
import xarray as xr
from scipy import stats

from physs_runner.errors import ConfigError
from physs_runner.prediction.figures import labels, style
from physs_runner.prediction.figures.calibration import binomial_band, draw_calibration
from physs_runner.prediction.figures.compare import compare_fields
from physs_runner.prediction.figures.components import find_vector
from physs_runner.prediction.figures.convergence import draw_convergence
from physs_runner.prediction.figures.draw import draw_all
from physs_runner.prediction.figures.fields import draw_field
from physs_runner.prediction.figures.scene import Scene, as_grid, held_out, training_end
from physs_runner.prediction.figures.snapshots import draw_snapshots
from physs_runner.prediction.figures.timeseries import draw_timeseries
from physs_runner.prediction.figures.vectors import draw_rotation, draw_vectors

EXPECTED: dict[str, set[str]] = {
    "pendulum": {"timeseries"},
    "wave": {"field_u", "field_u_x", "slices_u"},
    "wave_gridded": {"field_u", "field_u_x", "slices_u"},
    "drifters": {"field_vx", "field_vy", "vectors", "divergence_vorticity"},
    "steady": {"field_u", "field_v", "vectors", "divergence_vorticity"},
    "heat": {"field_T"},
}


def draw(
    scene: Scene,
    directory: Path,
    formats: tuple[str, ...] = ("png",),
    history: dict[str, np.ndarray] | None = None,
    parameters: xr.Dataset | None = None,
) -> list[Path]:
    """Draw everything about a scene, with a history and parameters when given."""
    return draw_all(
        scene.predictions,
        scene.dataset,
        history or {},
        xr.Dataset() if parameters is None else parameters,
        scene.collocation,
        directory,
        list(formats),
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_every_problem_gets_its_figures_without_warnings(name, scenes, tmp_path, caplog):
    """Each kind of problem yields its own figures, of real size, and no warning of any kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files = draw(scenes[name], tmp_path / "figures")
    assert not caplog.records
    assert {f.stem for f in files} == EXPECTED[name] | {"calibration"}
    for file in files:
        pixels = matplotlib.image.imread(file)
        assert min(pixels.shape[:2]) > 300
        assert pixels[..., :3].std() > 0.02  # not an empty page


def test_timeseries_has_a_panel_per_quantity_with_units(scenes):
    """Every quantity has its panel, typeset name and unit; time is labelled once, below."""
    panels = draw_timeseries(scenes["pendulum"])["timeseries"].axes
    assert [a.get_ylabel() for a in panels] == [
        r"$\theta$ (rad)",
        r"$\theta_{t}$ (rad s$^{-1}$)",
        "force",
    ]
    assert [a.get_xlabel() for a in panels] == ["", "", "$t$ (s)"]
    legend = {t.get_text() for t in panels[0].figure.legends[0].get_texts()}
    assert legend == {
        "95 % with noise", "95 %", "mean", "training data", "held-out data", "collocation",
        "end of training data", "truth",
    }  # fmt: skip


def test_timeseries_bands_are_the_stored_interval(scenes):
    """The drawn band is mean plus and minus 1.96 deviations, wider with noise."""
    scene = scenes["pendulum"]
    axes = draw_timeseries(scene)["timeseries"].axes[0]
    noisy, sure = (c.get_paths()[0].get_extents() for c in axes.collections[:2])
    p, z = scene.predictions, stats.norm.ppf(0.975)
    top = float((p.theta_mean + z * p.theta_sd).max())
    assert sure.ymax == pytest.approx(top, rel=1e-10)
    assert noisy.ymax == pytest.approx(float((p.theta_mean + z * p.theta_predictive_sd).max()))


def test_end_of_training_is_marked_only_when_there_is_more_to_come(scenes):
    """The mark sits at the last training time and is absent when training data reach the end."""
    wave, drifters = scenes["wave"], scenes["drifters"]
    assert training_end(wave) == pytest.approx(float(wave.dataset.train.t.max()))
    assert training_end(drifters) is None


def test_field_shows_truth_mean_deviation_and_error_on_shared_scales(scenes):
    """Truth and mean share one scale; deviation and error share another."""
    scene = scenes["wave_gridded"]
    figure = draw_field(scene, "u")
    panels = [a for a in figure.axes if a.get_title()]
    assert [a.get_title() for a in panels] == [
        "$u$: truth (K)", "$u$: mean (K)", "$u$: sd (K)", "$u$: |error| (K)",
    ]  # fmt: skip
    limits = [next(c for c in a.collections if c.get_array() is not None).get_clim()
              for a in panels]  # fmt: skip
    assert limits[0] == limits[1]
    assert limits[2] == limits[3]


def test_scattered_points_become_a_grid_only_when_they_form_one(scenes):
    """A full tensor grid in any order is recognised; scattered points are not."""
    whole, part = scenes["wave_gridded"], scenes["wave"]
    dots = held_out(whole, "u")
    order = np.random.default_rng(0).permutation(dots.value.size)
    shuffled = dots._replace(at={k: v[order] for k, v in dots.at.items()}, value=dots.value[order])
    grid = as_grid(shuffled, ("t", "x"))
    assert grid is not None
    np.testing.assert_array_equal(grid.values.ravel(), dots.value)
    assert as_grid(held_out(part, "u"), ("t", "x")) is None


def test_snapshots_have_a_row_per_statistic_and_a_column_per_time(scenes):
    """Mean, deviation and error at four times: twelve maps, forecasts named."""
    figure = draw_snapshots(scenes["heat"])["field_T"]
    titles = [a.get_title() for a in figure.axes if a.get_title()]
    assert len(titles) == 4
    assert titles[0] == "$t$ = 0 s"
    assert titles[-1] == "$t$ = 1 s (forecast)"
    assert len(figure.axes) == 12 + 3  # and a colour bar per row


def test_vector_components_are_found_by_name_and_by_place(scenes, build_scene):
    """Components named after axes are found; a pair over time and space is no vector."""
    assert find_vector(scenes["drifters"])[:2] == ("vx", "vy")
    assert find_vector(scenes["steady"])[:2] == ("u", "v")
    assert find_vector(scenes["heat"]) is None
    x, t = np.linspace(0, 1, 9), np.linspace(0, 1, 8)
    points = {"t": np.array([0.1, 0.2, 0.9]), "x": np.array([0.1, 0.5, 0.9])}
    both = {n: lambda t, x: t + x for n in ("u", "v")}
    species = build_scene({"t": t, "x": x}, both, train=points, test=points, outputs=("u", "v"))
    assert find_vector(species) is None


def test_vorticity_without_predicted_derivatives_is_that_of_the_mean(scenes):
    """Divergence and vorticity fall back on differences of the mean field."""
    scene = scenes["drifters_many"]
    figure = draw_rotation(scene)["divergence_vorticity"]
    maps = [a for a in figure.axes if a.collections and a.get_xlim()[1] == 2]
    p = scene.predictions
    expected = p.vx_mean.differentiate("x") + p.vy_mean.differentiate("y")
    drawn = np.asarray(maps[0].collections[0].get_array()).reshape(31, 41)
    np.testing.assert_allclose(drawn, expected.isel(t=0).transpose("y", "x"), rtol=1e-10)


def test_vectors_have_streamlines_above_arrows_for_each_time(scenes):
    """Two rows of three panels and two colour bars with the unit of velocity."""
    figure = draw_vectors(scenes["drifters"])["vectors"]
    assert len(figure.axes) == 6 + 2
    assert [a.get_ylabel() for a in figure.axes[6:]] == ["sd\n(m s$^{-1}$)", "speed\n(m s$^{-1}$)"]


def test_convergence_has_a_panel_per_series(history):
    """The objective has its own figure; every series that moves a panel in the next."""
    figures = draw_convergence(history, {"noise/theta": "rad2"})
    assert [a.get_ylabel() for a in figures["convergence"].axes] == [
        "ELBO", "distance from the best",
    ]  # fmt: skip
    shown = [a for a in figures["hyperparameters"].axes if a.get_visible()]
    assert len(shown) == 4  # of five, one is held
    assert shown[2].get_title() == "noise/theta (rad$^{2}$)"
    assert shown[1].get_yscale() == "log"  # it spans more than a decade
    assert draw_convergence({}) == {}
    assert draw_convergence({"train/elbo": np.array([1.0])}) == {}


def test_binomial_band_holds_correct_models():
    """The share of hits of a correct model lies in the band about 95 % of the time."""
    rng = np.random.default_rng(0)
    low, high = binomial_band(np.array([0.5]), 200)
    shares = rng.binomial(200, 0.5, 20_000) / 200
    inside = np.mean((shares >= low) & (shares <= high))
    assert 0.95 <= inside <= 0.975  # the band is discrete, hence a little wide


def test_calibration_needs_enough_observations(scenes):
    """Too few held-out points give no calibration figure rather than a misleading one."""
    scene = scenes["pendulum"]
    few = scene.predictions.isel(point=slice(0, 5))
    assert draw_calibration(Scene(few, scene.dataset)) == {}
    assert len(draw_calibration(scene)["calibration"].axes) == 2


@pytest.mark.parametrize(("case", "panels"), [("wave", 3 * 2 + 2), ("pendulum", 3)])
def test_comparison_draws_every_run_on_one_scale(case, panels, tmp_path, monkeypatch, scenes):
    """Three runs give three columns of mean and interval maps, or three curves."""
    scene = scenes[case]
    runs = [(f"method {i}", scene.predictions) for i in range(3)]
    drawn = []
    save = style.save
    monkeypatch.setattr(style, "save", lambda f, *rest: drawn.append(f) or save(f, *rest))
    files = compare_fields(runs, tmp_path / "compare.png", training_end=0.28)
    assert [f.name for f in files] == ["compare.png"]
    assert files[0].stat().st_size > 10_000
    assert len(drawn[0].axes) == panels


def test_pdf_is_written_on_request_with_embedded_fonts(tmp_path, scenes):
    """A pdf beside each png, with fonts that journals accept."""
    files = draw(scenes["pendulum"], tmp_path, ("pdf",))
    assert {f.suffix for f in files} == {".png", ".pdf"}
    content = (tmp_path / "timeseries.pdf").read_bytes()
    assert b"/Type3" not in content
    assert mpl.rcParams["pdf.fonttype"] == mpl.rcParamsDefault["pdf.fonttype"]


def test_unknown_format_is_named(tmp_path, scenes):
    """A format that cannot be written is a config error listing those that can."""
    with pytest.raises(ConfigError, match=r"figures.formats: 'jpgg'.*png"):
        draw(scenes["pendulum"], tmp_path, ("jpgg",))


def test_a_failing_figure_is_reported_and_the_rest_is_drawn(tmp_path, caplog, scenes):
    """A broken input costs its own figure only, and a warning says which."""
    scene = scenes["pendulum"]
    broken = scene.predictions.drop_vars("theta_mean").assign(theta_mean=("t", ["a"] * 200))
    files = draw(Scene(broken, scene.dataset), tmp_path)
    assert "calibration.png" in {f.name for f in files}
    assert any("timeseries figure could not be drawn" in r.getMessage() for r in caplog.records)


def test_threads_draw_the_same_pixels_as_one(tmp_path, scenes):
    """Two runs drawn at once give the pictures they give alone."""
    whole = scenes["pendulum"]
    few = whole.predictions.isel(t=slice(0, 100))
    runs = {"a": whole, "b": Scene(few, whole.dataset)}
    alone = {k: draw(s, tmp_path / k) for k, s in runs.items()}
    workers = [
        threading.Thread(target=draw, args=(s, tmp_path / f"{k}_together")) for k, s in runs.items()
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for key, files in alone.items():
        for file in files:
            other = tmp_path / f"{key}_together" / file.name
            np.testing.assert_array_equal(
                matplotlib.image.imread(file), matplotlib.image.imread(other)
            )


def test_large_data_are_thinned_and_said_so(scenes):
    """A hundred thousand training points are thinned, and the legend says so once."""
    figure = draw_snapshots(scenes["drifters_many"])["field_vx"]
    texts = [t.get_text() for t in figure.legends[0].get_texts()]
    assert texts == ["training data (at most 600 shown)"]


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("u_xx", None, "$u_{xx}$"),
        ("theta", "rad", r"$\theta$ (rad)"),
        ("wind_speed", "m s-1", "wind speed (m s$^{-1}$)"),
        ("y2", "1", "$y_{2}$"),
        ("cost$", "kg m^2", r"cost\$ (kg m$^{2}$)"),
        ("t", "hours since 2016-02-25", "$t$ (hours since 2016-02-25)"),
    ],
)
def test_names_and_units_are_typeset(name, unit, expected):
    """Derivatives become subscripts, Greek names letters, powers of units raised."""
    assert labels.axis_label(name, unit) == expected
