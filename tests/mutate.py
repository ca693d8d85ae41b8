"""Do the tests see it? Small changes of the code, one at a time, and which of them no test notices.

    python tests/mutate.py judge/reduction.py estimate/gls.py --mutants 20 --seed 0

Modules or rooms below ``src/steelyard``. Of each module some places are drawn: a comparison turned round, a sign or an
operator changed, a number moved, a condition negated, a value not returned. The tests of the module's room (quick ones,
those that name it first) run on a copy of the repository for each. Survivors are printed; the exit code is 1 if fewer
than 90 % are killed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WANTED = 0.9
LONGEST = 600.0
"""Seconds after which a mutant counts as killed: it does not end."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=",
    ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==", ast.And: "or", ast.Or: "and",
}  # fmt: skip
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: characters of a module replaced by others."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """Return the source with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def described(self, source: str) -> str:
        """Return where it is and what it does."""
        before = source[self.start : self.end].replace("\n", " ")
        return f"{self.path}:{self.line}: {before.strip()} -> {self.text.strip()}"


class _Places:
    """Offsets of characters in a source, from the lines and byte columns that ``ast`` gives."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def __call__(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def mutants_of(path: Path, source: str) -> Iterator[Mutant]:
    """Yield every change of a module that is known here; messages and annotations stay."""
    place, tree = _Places(source), ast.parse(source)
    skipped = {id(inner) for node in _without_effect(tree) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        for start, end, text in _changes(node, source, place):
            yield Mutant(path, node.lineno, start, end, text)  # type: ignore[attr-defined]


def _without_effect(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            yield node
        for part in ("annotation", "returns"):
            if isinstance(getattr(node, part, None), ast.AST):
                yield getattr(node, part)


def _changes(node: ast.AST, source: str, place: _Places) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.BinOp):
        yield from _operator(node.op, node.left, node.right, source, place)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _operator(node.ops[0], node.left, node.comparators[0], source, place)
    elif isinstance(node, ast.BoolOp):
        yield from _operator(node.op, node.values[0], node.values[1], source, place)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        start = place(node.lineno, node.col_offset)
        yield start, start + (1 if isinstance(node.op, ast.USub) else 3), " "
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        changed = node.value + 1 if isinstance(node.value, int) else 1.5 * node.value + 0.1
        yield place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0), repr(changed)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        start = place(node.test.lineno, node.test.col_offset)
        end = place(node.test.end_lineno or 0, node.test.end_col_offset or 0)
        yield start, end, f"(not ({source[start:end]}))"
    elif isinstance(node, ast.Return) and node.value is not None:
        start = place(node.value.lineno, node.value.col_offset)
        yield start, place(node.value.end_lineno or 0, node.value.end_col_offset or 0), "None"


def _operator(
    kind: ast.AST, left: ast.expr, right: ast.expr, source: str, place: _Places
) -> Iterator[tuple[int, int, str]]:
    if type(kind) not in OPERATORS:
        return
    start = place(left.end_lineno or 0, left.end_col_offset or 0)
    between = source[start : place(right.lineno, right.col_offset)]
    found = re.search(re.escape(SYMBOLS[type(kind)]), between)
    if found:
        yield start + found.start(), start + found.end(), OPERATORS[type(kind)]


def tests_of(module: Path) -> list[str]:
    """Return the test files of a module's room, those that name the module first."""
    room = module.parts[0].removesuffix(".py")
    folder = ROOT / "tests" / room
    files = sorted(folder.rglob("test_*.py")) if folder.is_dir() else sorted((ROOT / "tests").glob("test_*.py"))
    dotted = "steelyard." + ".".join(module.with_suffix("").parts)

    def named(path: Path) -> bool:
        return dotted in path.read_text(encoding="utf-8") or module.stem in path.stem

    return [str(path.relative_to(ROOT)) for path in sorted(files, key=lambda path: not named(path))]


def is_killed(copy: Path, tests: list[str]) -> bool:
    """Return whether a test fails on a copy of the repository, or does not end."""
    environment = {
        **os.environ, "PYTHONPATH": str(copy / "src"), "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not large", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def modules_of(names: list[str]) -> list[Path]:
    """Return the modules of rooms or files, below ``src/steelyard``."""
    source, found = ROOT / "src" / "steelyard", []
    for name in names:
        place = source / name
        if not place.exists():
            sys.exit(f"{name}: no such room or module below src/steelyard")
        found += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return [path.relative_to(source) for path in found if path.name != "__init__.py"]


def main() -> int:
    """Try mutants of the modules that are asked for."""
    parser = argparse.ArgumentParser(description="changes of the code that no test notices")
    parser.add_argument("modules", nargs="+", help="rooms or modules, such as judge or estimate/gls.py")
    parser.add_argument("--mutants", type=int, default=10, help="of each module; default: 10")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng, tried, survivors = random.Random(chosen.seed), 0, []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
            shutil.copy(ROOT / name, copy)
        for module in modules_of(chosen.modules):
            place = copy / "src" / "steelyard" / module
            source = place.read_text(encoding="utf-8")
            known = list(mutants_of(module, source))
            for mutant in rng.sample(known, min(chosen.mutants, len(known))):
                place.write_text(mutant.applied(source), encoding="utf-8")
                killed = is_killed(copy, tests_of(module))
                tried += 1
                survivors += [] if killed else [mutant]
                sys.stdout.write(f"{'killed  ' if killed else 'SURVIVED'} {mutant.described(source)}\n")
                sys.stdout.flush()
            place.write_text(source, encoding="utf-8")
    killed_part = 1 - len(survivors) / max(tried, 1)
    sys.stdout.write(f"{tried} mutants, {killed_part:.0%} killed (wanted: {WANTED:.0%})\n")
    return 0 if killed_part >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
