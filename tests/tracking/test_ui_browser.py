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
from pathlib import Path

import pytest

from physs_runner.errors import ConfigError
from physs_runner.tracking.commands import main
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.sender import read_sent

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_MS = 60_000


@pytest.fixture
def ui(real_run: Path) -> Iterator[str]:
    """Serve the UI with our own command and yield the address of an experiment that it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "physs_runner", "ui", "--port", str(port)],
        cwd=real_run.parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    # Other tests may have left experiments in this store, whose links come first.
    printed = (process.stdout.readline() for _ in range(20))
    found = next(filter(None, (re.search(r"pendulum: (\S+)", line) for line in printed)))
    deadline = time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
            break
        except OSError:
            assert process.poll() is None, "the UI ended"
            assert time.monotonic() < deadline, "the UI did not start"
            time.sleep(0.3)
    yield found[1]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.skipif(BROWSER is None, reason="there is no chromium (Debian: apt install chromium)")
def test_browser_shows_run_chart_and_image(ui: str, real_run: Path, tmp_path: Path) -> None:
    """A reader finds the run, its equations, a chart of its objective and its figures."""
    from playwright.sync_api import sync_playwright

    figure = real_run / "figures" / "timeseries.png"
    run_id = read_sent(real_run, embedded(real_run.parents[1]).uri).run_id
    # Screenshots stay where pytest keeps its files, or where the variable says.
    shots = Path(os.environ.get("PHYSS_SCREENSHOTS", tmp_path))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(ui)
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
        page.get_by_role("tab", name="Artifacts").click()
        page.get_by_text("figures", exact=True).click()
        page.get_by_text(figure.name, exact=True).click()
        page.wait_for_function(
            "size => [...document.images].some(i => i.naturalWidth == size[0] "
            "&& i.naturalHeight == size[1])",
            arg=png_size(figure),
        )
        page.screenshot(path=shots / "image.png")
        browser.close()


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
