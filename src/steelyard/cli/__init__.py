"""The command line: parse, call the library, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 when done and good, 1 after an error (one line on stderr), 2 for a poor verdict."""
    try:
        from .app import main as run
    except KeyboardInterrupt:  # while the command line itself is loaded
        print("interrupted", file=sys.stderr)
        return 1
    return run(arguments)
