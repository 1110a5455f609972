"""Ctrl-C and SIGTERM in a process of their own: the first waits, the second does not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# An iteration that never ends; Python looks at signals only between its own steps.
ENDLESS = """
import threading, time
from physs_runner.interruption import Interruption
interruption = Interruption()
with interruption.watched(), interruption.deferred():
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_at_once(number: signal.Signals) -> None:
    """The first is noted while an iteration lasts; the second ends the process there and then."""
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(number)
        asked = time.monotonic()
        assert process.wait(timeout=10) == 128 + number
        assert time.monotonic() - asked < 2
    finally:
        process.kill()
        process.communicate()
