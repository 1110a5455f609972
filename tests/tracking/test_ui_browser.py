"""The MLflow UI on the embedded store, seen through a real browser."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import aiohttp
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from physs_runner.tracking.history import HistoryWriter
from physs_runner.tracking.sender import send

_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture
def ui(outputs, store, run_script):  # noqa: ARG001 - the store must exist
    """Serve the UI with our own command and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = "import sys; from physs_runner.tracking.commands import main; main('ui', sys.argv[1:])"
    process = run_script(script, "--outputs", str(outputs), "--port", str(port))
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(f"{address}/health", timeout=2).close()
            break
        except OSError:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline, "the UI did not start"
            time.sleep(0.5)
    yield address
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


async def look(pages: dict[str, tuple[str, str]], folder: Path) -> None:
    """Open pages in turn, wait until a JavaScript condition holds on each, take its picture.

    Real time and the DevTools protocol: the charts' code loads too late for virtual time.
    """
    command = [
        *(_BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1600,1000"),
        *("--disable-dev-shm-usage", "--remote-debugging-port=0"),
        f"--user-data-dir={folder / 'profile'}",
    ]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = await _port(folder / "profile" / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                target = (await answer.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(target, max_msg_size=0) as socket_:
                for name, (address, condition) in pages.items():
                    await _call(socket_, "Page.navigate", url=address)
                    met = await _until(socket_, condition)
                    shot = await _call(socket_, "Page.captureScreenshot")
                    (folder / name).write_bytes(base64.b64decode(shot["data"]))
                    assert met, f"{address}: see {folder / name}"
    finally:
        browser.terminate()
        browser.wait()


async def _port(path: Path) -> str:
    for _ in range(300):
        if path.exists() and path.read_text().strip():
            return path.read_text().split()[0]
        await asyncio.sleep(0.2)
    raise AssertionError("the browser did not start")


async def _call(socket_, method: str, **params) -> dict:
    await socket_.send_json({"id": 1, "method": method, "params": params})
    while True:
        answer = await socket_.receive_json()
        if answer.get("id") == 1:
            return answer["result"]


async def _until(socket_, condition: str) -> bool:
    for _ in range(240):
        answer = await _call(socket_, "Runtime.evaluate", expression=f"Boolean({condition})")
        if answer["result"].get("value") is True:
            await asyncio.sleep(1.0)  # let the drawing settle for the picture
            return True
        await asyncio.sleep(0.5)
    return False


@pytest.mark.slow
@pytest.mark.skipif(_BROWSER is None, reason="chromium is not installed (Debian: chromium)")
def test_browser_shows_run_chart_and_image(ui, store, local, make_record, tmp_path, client):
    """The run is listed, its metric is drawn as a chart and its figure as an image."""
    record = make_record("pendulum in the browser", experiment="browsed")
    writer = HistoryWriter(record.directory)
    for step in range(200):
        writer.append(step, {"train/elbo": -100.0 / (step + 1)})
    writer.flush()
    record.write_metrics({"test/rmse": 0.05})
    record.write_description("# A pendulum\n\n| metric | value |\n|---|---|\n| rmse | 0.05 |\n")
    figure = Figure()
    FigureCanvasAgg(figure)
    figure.add_subplot().plot([0, 1, 4, 9])
    (record.directory / "figures").mkdir()
    figure.savefig(record.directory / "figures" / "fit.png")
    record.end("FINISHED")
    run_id = send(record, store, local.uri).run_id
    experiment = client.get_run(run_id).info.experiment_id
    base = f"{ui}/#/experiments/{experiment}/runs"
    named = "document.body && document.body.innerText.includes('pendulum in the browser')"
    drawn = "document.querySelector('.js-plotly-plot .trace, .js-plotly-plot canvas')"
    shown = "[...document.images].some(i => i.naturalWidth === 640 && i.naturalHeight === 480)"
    pages = {
        "runs.png": (base, named),
        "chart.png": (f"{base}/{run_id}/model-metrics", drawn),
        "image.png": (f"{base}/{run_id}/artifacts/figures/fit.png", shown),
    }
    asyncio.run(look(pages, tmp_path))


def test_ui_listens_on_this_machine_only(local):
    """The command for the UI names the loopback address unless told otherwise."""
    from physs_runner.tracking.commands import _parser, ui_command

    options = _parser("ui").parse_args([])
    command = ui_command(local, options.host, options.port)
    assert command[0] == sys.executable
    assert command[command.index("--host") + 1] == "127.0.0.1"
