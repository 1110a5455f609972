"""Let ``python -m physs_runner`` do what ``physs`` does; without a command it runs."""

from __future__ import annotations

import sys

from physs_runner.cli import COMMANDS, main

if __name__ == "__main__":
    arguments = sys.argv[1:]
    named = bool(arguments) and (arguments[0] in COMMANDS or arguments[0] in ("-sc", "--version"))
    sys.exit(main(arguments if named else ["run", *arguments]))
