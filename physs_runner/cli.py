"""The ``physs`` command: a dispatch whose commands import only what they use."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from physs_runner.errors import PhyssError


class Command(NamedTuple):
    """A subcommand: its line of help and what runs it."""

    help: str
    main: Callable[[list[str]], int | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(help_text())
        return 0
    name, *rest = arguments
    if name == "--version":
        from physs_runner import __version__

        sys.stdout.write(f"physs_runner {__version__}\n")
        return 0
    if name in ("-sc", "--shell-completion"):
        return _completion(arguments)
    if name not in COMMANDS:
        from physs_runner.config.records import suggest

        complain(f"{name}: no such command; {suggest(name, COMMANDS)}")
        return 1
    logging.raiseExceptions = False  # a log on a full disk is no reason for tracebacks
    try:
        return COMMANDS[name].main(rest) or 0
    except PhyssError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:  # the reader went away, as in `physs run --help | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.strerror is None:  # not about a file: a fault of ours, shown in full
            raise
        complain(f"{error.filename or 'a file'}: {error.strerror}")
        return 1
    except KeyboardInterrupt as error:
        complain(str(error) or "interrupted")
        return getattr(error, "exit_code", 130)


def complain(sentence: str) -> None:
    """Write one sentence to the error stream."""
    sys.stderr.write(f"physs: {sentence}\n")


def help_text() -> str:
    """Return what ``physs --help`` prints."""
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: physs COMMAND ...",
            "",
            "Physics-informed state-space Gaussian processes, stated in YAML.",
            "",
            "commands:",
            *lines,
            "",
            "physs COMMAND --help says more about one command.",
            'Tab completion in bash: eval "$(physs -sc install=bash)"',
            "",
        ]
    )


def _run(arguments: list[str]) -> int:
    from physs_runner.config.application import run

    return run(arguments)


def _sweep(arguments: list[str]) -> int:
    multirun = [] if {"-m", "--multirun"} & set(arguments) else ["--multirun"]
    return _run([*arguments, *multirun])


def _check(arguments: list[str]) -> int | None:
    from physs_runner.config.application import checked_config

    config = checked_config(arguments, command="check")
    if config is None:
        return 0
    from physs_runner.check import main as check

    return check(config)


def _predict(arguments: list[str]) -> int | None:
    from physs_runner.prediction.command import main as predict

    return predict(arguments)


def _resume(arguments: list[str]) -> int:
    from physs_runner.resume import main as resume

    return resume(arguments)


def _tracking(name: str) -> Callable[[list[str]], int | None]:
    def dispatch(arguments: list[str]) -> int | None:
        from physs_runner.tracking.commands import main as command

        return command(name, arguments)

    return dispatch


def _completion(arguments: list[str]) -> int:
    """Answer the shell: names of commands first, then Hydra's groups and keys."""
    line = os.environ.get("COMP_LINE")
    if line is not None and any(text.startswith("query=") for text in arguments):
        words = line.split()
        if len(words) < 2 or (len(words) == 2 and not line.endswith(" ")):
            sys.stdout.write(" ".join(COMMANDS) + "\n")
            return 0
        if words[1] not in ("run", "check", "sweep"):
            return 0
        after = line.split(words[1], 1)[1].lstrip()
        os.environ["COMP_LINE"] = f"{words[0]} {after}"
    return _run(arguments)


COMMANDS = {
    "run": Command("fit one model, or many with -m, and log it", _run),
    "sweep": Command("run with -m: every combination of the values given", _sweep),
    "resume": Command("go on with a run or sweep that was interrupted or killed", _resume),
    "check": Command("check a config and its data without fitting", _check),
    "predict": Command("predict new points from a finished run", _predict),
    "report": Command("compare an experiment's runs in tables and figures", _tracking("report")),
    "list": Command("show recent runs", _tracking("list")),
    "ui": Command("open the MLflow page on the embedded store", _tracking("ui")),
    "sync": Command("send a run's folder to the tracking server again", _tracking("sync")),
}
