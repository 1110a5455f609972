"""Tables over runs: filters, groups, means and spreads, and the commands that show them."""

from __future__ import annotations

import csv
import statistics

import pytest

from physs_runner.errors import ConfigError, DataError
from physs_runner.tracking.base import RunRow
from physs_runner.tracking.commands import main
from physs_runner.tracking.report import make_report, save_report
from physs_runner.tracking.rows import grouped, matching, varying
from physs_runner.tracking.sender import send


def make_rows() -> list[RunRow]:
    rows = []
    for count in (10, 100):
        for seed in range(3):
            rows.append(
                RunRow(
                    run_id=f"{count}-{seed}",
                    name="pendulum",
                    experiment="pendulum",
                    status="FINISHED",
                    start_ms=seed,
                    params={"count": str(count), "seed": str(seed), "kernel": "matern"},
                    metrics={"test/rmse": 1.0 / count + 0.01 * seed, "test/nlpd": -float(seed)},
                )
            )
    failed = {"params": {"count": "1000", "seed": "0"}, "metrics": {"test/rmse": 99.0}}
    rows.append(RunRow("x", "bad", "pendulum", "FAILED", 0, **failed))
    return rows


def test_groups_are_what_differs_besides_the_seed():
    """Runs are grouped by the varying parameter; seeds are averaged over; failures left out."""
    report = make_report("pendulum", make_rows())
    assert report.by == ("count",)
    assert [group.key for group in report.groups] == [("10",), ("100",)]
    assert [len(group.rows) for group in report.groups] == [3, 3]


def test_mean_and_sd_are_those_of_the_runs(tmp_path):
    """The CSV's numbers are the sample mean and standard deviation to full precision."""
    report = make_report("pendulum", make_rows())
    save_report(report, tmp_path)
    lines = list(csv.DictReader((tmp_path / "report.csv").open()))
    expected = [0.1 + 0.01 * seed for seed in range(3)]
    assert float(lines[0]["test/rmse mean"]) == pytest.approx(statistics.fmean(expected), rel=1e-12)
    assert float(lines[0]["test/rmse sd"]) == pytest.approx(statistics.stdev(expected), rel=1e-12)


def test_report_is_written_in_every_form(tmp_path):
    """Markdown and HTML hold the table, HTML its figures, and a figure exists per metric."""
    files = save_report(make_report("a <b> | c", make_rows()), tmp_path)
    assert all(path.stat().st_size > 0 for path in files)
    text = (tmp_path / "report.md").read_text()
    assert "| 10 | 3 | 0.11 ± 0.01 | -1 ± 1 |" in text
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "<b>" not in page


def test_conditions_compare_numbers_and_text():
    """Numbers compare by size, text by equality, and conditions add up."""
    rows = make_rows()
    assert len(matching(rows, ["count=100"])) == 3
    assert len(matching(rows, ["test/rmse<0.1", "status!=FAILED"])) == 3
    assert len(matching(rows, ["kernel=matern", "seed>=1"])) == 4


@pytest.mark.parametrize("condition", ["cuont=1", "count", ""])
def test_wrong_condition_is_explained(condition):
    """A wrong name gets a near match, a wrong form the right one."""
    with pytest.raises(ConfigError, match=r"did you mean 'count'|is not of the form"):
        matching(make_rows(), [condition])


def test_unknown_group_and_metric_are_explained():
    """Grouping by or showing what no run has is an error with a near match."""
    with pytest.raises(ConfigError, match="did you mean 'count'"):
        grouped(make_rows(), ["coun"])
    with pytest.raises(ConfigError, match="did you mean 'test/rmse'"):
        make_report("p", make_rows(), metrics=["test/rmsee"])


def test_table_shows_what_tells_groups_apart_and_names_the_rest():
    """Of parameters that change together one is a column; the others are named below."""
    rows = []
    for number, (method, count) in enumerate([("cvi", 10), ("cvi", 20), ("eks", 10)]):
        params = {"inference.name": method, "a.step": str(len(method + "x" * (method == "eks")))}
        params |= {"physics.collocation.count": str(count), "seed": str(number)}
        rows.append(RunRow(str(number), "", "", "FINISHED", 0, params=params, metrics={"m": 1.0}))
    report = make_report("p", rows)
    assert report.by == ("inference.name", "physics.collocation.count")
    assert report.header()[:2] == ["inference", "collocation.count"]
    assert report.also == ("a.step",)
    assert "differ in a.step" in "".join(report.notes())


def test_numbers_sort_as_numbers():
    """Groups come in the order of their numbers, not of their digits."""
    rows = [RunRow(str(n), "", "", "FINISHED", 0, params={"n": str(n)}) for n in (100, 9, 20)]
    assert [group.key[0] for group in grouped(rows, ["n"])] == ["9", "20", "100"]
    assert varying(rows) == ["n"]


def test_report_and_list_read_store_and_directories(
    store, local, outputs, make_record, tmp_path, capsys, monkeypatch
):
    """Both commands show the same runs, whether from the store or from directories."""
    monkeypatch.setenv("COLUMNS", "200")
    for seed in range(2):
        record = make_record(f"s{seed}", experiment="shown", params={"seed": str(seed)})
        record.write_metrics({"test/rmse": 1.0 + seed})
        record.end("FINISHED")
        send(record, store, local.uri)
    target = tmp_path / "report"
    arguments = ["shown", "--outputs", str(outputs), "--to", str(target)]
    assert main("report", arguments) == 0
    from_store = (target / "report.csv").read_text()
    assert "1.5,0.7071067811865476" in from_store
    arguments = ["shown", "--outputs", str(tmp_path), "--to", str(target), "--from", "directories"]
    assert main("report", arguments) == 0
    assert (target / "report.csv").read_text() == from_store
    capsys.readouterr()
    assert main("list", ["--outputs", str(tmp_path), "--experiment", "shown"]) == 0
    assert main("list", ["--outputs", str(outputs), "--from", "store"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("FINISHED") >= 4
    with pytest.raises(ConfigError, match="did you mean 'shown'"):
        main("report", ["shwon", "--outputs", str(outputs)])


def test_report_without_a_store_says_what_to_do(tmp_path):
    """Asking for a report before the first run names the missing store."""
    with pytest.raises(DataError, match="make a run first"):
        main("report", ["any", "--outputs", str(tmp_path)])
    assert not (tmp_path / "mlflow").exists()
