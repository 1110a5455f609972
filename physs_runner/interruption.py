"""Ctrl-C and SIGTERM: the first asks politely, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run that a signal ended; like Ctrl-C it is no error of the program.

    Args:
        number: of the signal.
        advice: what the user can do next, in a sentence.
    """

    def __init__(self, number: int, advice: str = "") -> None:
        name = "interrupted" if number == signal.SIGINT else "terminated"
        super().__init__(f"{name}; {advice}" if advice else name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The code that shells expect of a process ended by this signal."""
        return 128 + self.number


class Interruption:
    """Watches for signals in a ``with`` block.

    While something waits for the end of an iteration (``deferred``), the first signal is
    only noted; at any other time it raises. The second one ends the process without
    another word: a thread sees to that, since a compiled program may keep the
    interpreter from looking at signals for minutes.

    Args:
        advice: what the user can do after an interruption, in a sentence.
    """

    def __init__(self, advice: str = "") -> None:
        self.advice = advice
        self.pending: int | None = None
        self._deferred = False

    @contextmanager
    def watched(self) -> Iterator[Interruption]:
        """Watch for signals; in a thread other than the main one, do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        ear, mouth = os.pipe()
        os.set_blocking(mouth, False)
        threading.Thread(target=_end_at_second, args=(ear,), daemon=True).start()
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        wakeup = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        try:
            yield self
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(mouth)  # which ends the thread

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Note a signal and raise at the end; whoever works here may look at ``pending``."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        if self.pending is not None:
            raise Interrupted(self.pending, self.advice)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.pending is not None:
            return
        self.pending = number
        if not self._deferred:
            raise Interrupted(number, self.advice)


def _end_at_second(ear: int) -> None:
    """Read the numbers of signals as they come; end the process at the second of ours."""
    seen = 0
    while number := os.read(ear, 1):
        seen += number[0] in SIGNALS
        if seen > 1:
            os._exit(128 + number[0])
    os.close(ear)
