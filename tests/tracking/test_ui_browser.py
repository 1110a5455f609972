"""The MLflow UI on the embedded store, seen through a real browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.commands import SMALL

from physs_runner.errors import ConfigError
from physs_runner.tracking.commands import main
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.sender import read_sent

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_MS = 60_000


@contextmanager
def served(place: Path, experiment: str) -> Iterator[str]:
    """Serve the UI with our own command and give the address of an experiment that it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "physs_runner", "ui", "--port", str(port)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        # Other tests may have left experiments in this store, whose links come first.
        printed = (process.stdout.readline() for _ in range(20))
        found = next(filter(None, (re.search(rf"{experiment}: (\S+)", line) for line in printed)))
        await_health(port, process)
        yield found[1]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def await_health(port: int, process: subprocess.Popen[str]) -> None:
    """Wait until the UI answers."""
    deadline = time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
            return
        except OSError:
            assert process.poll() is None, "the UI ended"
            assert time.monotonic() < deadline, "the UI did not start"
            time.sleep(0.3)


@contextmanager
def opened(address: str) -> Iterator[Any]:
    """Open a page in a browser; give the page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(address)
        yield page
        browser.close()


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots stay: with pytest's files, or where the variable says."""
    return Path(os.environ.get("PHYSS_SCREENSHOTS", tmp_path))


needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium (Debian: apt install chromium)"
)


@needs_browser
def test_browser_shows_run_chart_and_image(real_run: Path, shots: Path) -> None:
    """A reader finds the run, its equations, a chart of its objective and its figures."""
    figure = real_run / "figures" / "timeseries.png"
    run_id = read_sent(real_run, embedded(real_run.parents[1]).uri).run_id
    with served(real_run.parents[2], "pendulum") as address, opened(address) as page:
        page.get_by_text("pendulum-full-cvi-0").first.wait_for()
        page.screenshot(path=shots / "runs.png")
        page.get_by_text("pendulum-full-cvi-0").first.click()
        page.get_by_text("test RMSE").first.wait_for()
        assert str(run_id) in page.url
        page.screenshot(path=shots / "run.png")
        page.get_by_text("Model metrics").first.click()
        page.get_by_placeholder("Search metric charts").fill("objective")
        page.locator(".js-plotly-plot .scatterlayer .trace path.js-line").first.wait_for()
        page.screenshot(path=shots / "chart.png")
        open_figure(page, figure)
        page.screenshot(path=shots / "image.png")


@needs_browser
@pytest.mark.slow
def test_browser_shows_sweep_with_nested_jobs_and_summary(tmp_path, shots, physs) -> None:
    """A sweep is one row with its jobs below it; its page has the table, the best, a figure."""
    swept = ("seed=0,1", "kernel.time.lengthscale=0.5,1,2", "training.iterations=20")
    done = physs("sweep", *SMALL, *swept, "tracking=local", "hydra.sweep.dir=out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    with served(tmp_path, "pendulum") as address, opened(address) as page:
        page.get_by_text("pendulum sweep", exact=True).first.wait_for()
        page.screenshot(path=shots / "sweep_closed.png")
        row = page.get_by_role("gridcell").filter(has_text="pendulum sweep")
        row.get_by_role("button").first.click()  # the box with a plus
        for value in ("0.5", "1", "2"):
            page.get_by_text(f"lengthscale={value}").first.wait_for()
        page.screenshot(path=shots / "sweep_jobs.png")
        page.get_by_text("pendulum sweep", exact=True).first.click()
        page.get_by_text("best/test/nlpd").first.wait_for()
        page.screenshot(path=shots / "sweep.png")
        open_figure(page, tmp_path / "out" / "summary" / "figures" / "parallel_coordinates.png")
        page.screenshot(path=shots / "sweep_figure.png")


def open_figure(page: Any, figure: Path) -> None:
    """Find a figure among a run's files and wait until it is drawn."""
    page.get_by_role("tab", name="Artifacts").click()
    page.get_by_text("figures", exact=True).click()
    page.get_by_text(figure.name, exact=True).click()
    page.wait_for_function(
        "size => [...document.images].some(i => i.naturalWidth == size[0] "
        "&& i.naturalHeight == size[1])",
        arg=png_size(figure),
    )


def png_size(path: Path) -> list[int]:
    """Read width and height from a PNG file's head."""
    head = path.read_bytes()[16:24]
    return [int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")]


def test_ui_listens_on_this_machine_only(local):
    """The command for the UI names the loopback address unless told otherwise."""
    from physs_runner.tracking.commands import _parser, ui_command

    options = _parser("ui").parse_args([])
    command = ui_command(local, options.host, options.port)
    assert command[0] == sys.executable
    assert command[command.index("--host") + 1] == "127.0.0.1"


def test_ui_on_a_port_in_use_says_so(outputs, store):  # noqa: ARG001 - the store must exist
    """A port that someone listens on is refused in a sentence with another to try."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=r"Address already in use.*--port"):
            main("ui", ["--outputs", str(outputs), "--port", str(port)])
