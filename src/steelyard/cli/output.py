"""What every command prints alike: JSON, errors, tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..run.folder import json_text


def fail(arguments: Sequence[str], kind: str, message: str) -> int:
    """Tell an error in one line on stderr, as JSON on stdout too if JSON was asked for; return exit code 1."""
    line = " ".join(message.split())
    command = next((word for word in arguments if not word.startswith("-")), "steelyard")
    if "--json" in arguments:
        print(json_text(command, {"error": {"kind": kind, "message": line}}))
    print(f"steelyard: {line}", file=sys.stderr)
    return 1
