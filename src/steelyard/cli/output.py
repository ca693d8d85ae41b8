"""What every command prints alike: errors and progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from ..run.folder import json_text


def fail(arguments: Sequence[str], kind: str, message: str) -> int:
    """Tell an error in one line on stderr, as JSON on stdout too if JSON was asked for; return exit code 1."""
    line = " ".join(message.split())
    command = next((word for word in arguments if not word.startswith("-")), "steelyard")
    if "--json" in arguments:
        print(json_text(command, {"error": {"kind": kind, "message": line}}))
    print(f"steelyard: {line}", file=sys.stderr)
    return 1


class ProgressBar:
    """A bar on stderr that appears when the work takes more than a second; use it as a context."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, done: float, total: float) -> None:
        """Show how much is done of how much in all."""
        if self._bar is None and time.monotonic() - self._start > 1.0:
            from rich.console import Console
            from rich.progress import Progress

            console = Console(stderr=True)
            self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
            self._bar.start()
            self._bar.add_task(self._label, total=total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def relabel(self, label: str) -> None:
        """Say something else beside the bar."""
        self._label = label
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=label)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
