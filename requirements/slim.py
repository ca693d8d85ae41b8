"""Free what an environment holds twice, or only for C++ programs.

    python requirements/slim.py .venv

Wheels hold no links, so that every name of a shared library is a copy of it: copies become hard links, where the file
system has them. CasADi's headers and static libraries, with which C++ programs are built, are removed.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path

LEAST = 1 << 12
"""Smaller files [bytes] share a block of the file system at best."""

FOR_CPP = ("casadi/include", "casadi/cmake", "casadi/*.a")
"""What only C++ programs use."""


def remove_for_cpp(folder: Path) -> None:
    """Remove headers and static libraries."""
    for package in folder.rglob("site-packages"):
        for path in (found for pattern in FOR_CPP for found in package.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def link_duplicates(folder: Path) -> None:
    """Replace copies of files by hard links."""
    by_size: defaultdict[int, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size >= LEAST:
            by_size[path.stat().st_size].append(path)
    for paths in by_size.values():
        kept: list[Path] = []
        for path in paths:
            same = next((one for one in kept if filecmp.cmp(one, path, shallow=False)), None)
            if same is None:
                kept.append(path)
            elif not same.samefile(path):
                _link(same, path)


def _link(source: Path, copy: Path) -> None:
    """Put a link in the place of a copy, in one step; the copy stays where the file system has no links."""
    aside = copy.with_name(f"{copy.name}.link")
    try:
        os.link(source, aside)
        aside.replace(copy)
    except OSError:
        aside.unlink(missing_ok=True)


if __name__ == "__main__":
    remove_for_cpp(Path(sys.argv[1]))
    link_duplicates(Path(sys.argv[1]))
