"""Do the tests see it? Small changes of the code, one at a time, and which of them no test notices.

    python tests/mutate.py judge/reduction.py estimate/gls.py --mutants 20 --seed 0

Modules or rooms below ``src/steelyard``. Of each module some places are drawn: a comparison turned round, a sign or an
operator changed, a number moved, a condition negated, a value not returned. Everything runs on a copy of the
repository. First the tests of each room run unchanged: they have to pass, and which files of tests reach which
functions is noted. For each mutant the files that reach its function run, those that name the module first, then the
quick ones. Survivors are printed; the exit code is 1 if fewer than 90 % are killed. ``--reached FILE`` keeps what the
first step noted for the next call; files of tests that it does not know run for every mutant of their room.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "steelyard"
WANTED = 0.9
SLOWER, LONGER = 3.0, 60.0
"""A mutant counts as killed, because it does not end, after so many times the seconds of its tests and so many more."""
NOTED = "STEELYARD_REACHED"
"""Environment variable: file to which a run of the tests writes what they reach."""

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
    function: str
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
    functions = {id(inner): name for name, body in _functions(tree) for line in body for inner in ast.walk(line)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        for start, end, text in _changes(node, source, place):
            yield Mutant(path, functions.get(id(node), ""), node.lineno, start, end, text)  # type: ignore[attr-defined]


def _functions(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the qualified names of functions and methods, and their statements; those inside others are parts."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node.body


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


class Reached:
    """What files of tests reach: a plugin of pytest, as a tracer of calls that ignores all lines."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._functions: dict[str, set[tuple[str, str]]] = {}
        self._own: set[tuple[str, str]] = set()
        self._source = str(SOURCE)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self._source):
            self._own.add((code.co_filename, code.co_qualname))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None]:
        path = str(item.path.relative_to(ROOT))
        self._own = self._functions.setdefault(path, set())
        start = time.perf_counter()
        threading.settrace(self._called)
        sys.settrace(self._called)
        yield
        sys.settrace(None)
        self._seconds[path] = self._seconds.get(path, 0.0) + time.perf_counter() - start

    def pytest_sessionfinish(self) -> None:
        found = {
            path: {
                "seconds": round(self._seconds[path], 2),
                "functions": sorted(f"{Path(file).relative_to(SOURCE)}:{name}" for file, name in functions),
            }
            for path, functions in self._functions.items()
        }
        Path(os.environ[NOTED]).write_text(json.dumps(found), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Note what tests reach, if this module is given to pytest as a plugin."""
    import steelyard

    if not Path(steelyard.__file__).is_relative_to(ROOT):
        pytest.exit(f"tests import {steelyard.__file__}, which is not of the copy {ROOT}", returncode=4)
    if NOTED in os.environ:
        config.pluginmanager.register(Reached())


def run_of(copy: Path, tests: list[str], longest: float | None = None, noted: Path | None = None) -> int:
    """Return the exit code of tests on a copy of the repository, 1 if they do not end; note what they reach."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "mutate", "-p", "no:cacheprovider", "-m", "not large"]
    path = os.pathsep.join([str(copy / "src"), str(copy / "tests")])
    # Bytecode is kept: without it every run compiles all modules again.
    common = {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    whole = {**os.environ, **common, **({NOTED: str(noted)} if noted else {})}
    try:
        done = subprocess.run(
            [*command, *tests], cwd=copy, env=whole, capture_output=True, timeout=longest, check=False
        )
    except subprocess.TimeoutExpired:
        return 1
    if done.returncode not in (0, 1, 2):
        sys.exit(f"pytest ended with {done.returncode}:\n{(done.stdout + done.stderr).decode()[-3000:]}")
    if done.returncode and noted:
        sys.exit(f"tests fail on the code as it is:\n{done.stdout.decode()[-3000:]}")
    return done.returncode


def tests_of_room(copy: Path, module: Path) -> list[str]:
    """Return the files of tests of a module's room."""
    folder = copy / "tests" / module.parts[0].removesuffix(".py")
    files = sorted(folder.rglob("test_*.py")) if folder.is_dir() else sorted((copy / "tests").glob("test_*.py"))
    return [str(path.relative_to(copy)) for path in files]


def tests_of(copy: Path, mutant: Mutant, reached: dict[str, Any]) -> tuple[list[str], float]:
    """Return the files of tests that reach a mutant, and their seconds; those that are not noted yet come first."""
    functions = f"{mutant.path}:{mutant.function}"
    dotted = "steelyard." + ".".join(mutant.path.with_suffix("").parts)

    def reaches(path: str) -> bool:
        names = reached[path]["functions"] if path in reached else [functions]
        return any(name.startswith(functions) for name in names)

    def order(path: str) -> tuple[bool, bool, float]:
        named = dotted in (copy / path).read_text(encoding="utf-8") or mutant.path.stem in Path(path).stem
        return path in reached, not named, reached.get(path, {"seconds": 0.0})["seconds"]

    found = sorted(filter(reaches, tests_of_room(copy, mutant.path)), key=order)
    return found, sum(order(path)[-1] for path in found)


def is_killed(copy: Path, mutant: Mutant, source: str, reached: dict[str, Any]) -> bool:
    """Return whether a test fails on a copy of the repository with a mutant, or does not end."""
    tests, seconds = tests_of(copy, mutant, reached)
    place = copy / "src" / "steelyard" / mutant.path
    try:
        _write(place, mutant.applied(source))
        return bool(tests) and run_of(copy, tests, SLOWER * seconds + LONGER) != 0
    finally:
        _write(place, source)


def _write(place: Path, source: str) -> None:
    """Write a module and remove its bytecode: two versions within a second look alike to Python."""
    place.write_text(source, encoding="utf-8")
    for compiled in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
        compiled.unlink()


def modules_of(names: list[str]) -> list[Path]:
    """Return the modules of rooms or files, below ``src/steelyard``."""
    found: list[Path] = []
    for name in names:
        place = SOURCE / name
        if not place.exists():
            sys.exit(f"{name}: no such room or module below src/steelyard")
        found += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return [path.relative_to(SOURCE) for path in found if path.name != "__init__.py"]


def main() -> int:
    """Try mutants of the modules that are asked for."""
    parser = argparse.ArgumentParser(description="changes of the code that no test notices")
    parser.add_argument("modules", nargs="+", help="rooms or modules, such as judge or estimate/gls.py")
    parser.add_argument("--mutants", type=int, default=10, help="of each module; default: 10")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reached", type=Path, help="file that keeps which tests reach what; read if it exists")
    chosen = parser.parse_args()
    rng, tried, survivors = random.Random(chosen.seed), 0, []
    modules = modules_of(chosen.modules)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        for name in ("src", "tests", "benchmarks", "docs", "examples"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
            shutil.copy(ROOT / name, copy)
        noted = chosen.reached or copy / "reached.json"
        reached = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
        for tests in sorted({tuple(tests_of_room(copy, module)) for module in modules}):
            if reached.keys().isdisjoint(tests):
                run_of(copy, list(tests), noted=copy / "room.json")
                reached |= json.loads((copy / "room.json").read_text(encoding="utf-8"))
                noted.write_text(json.dumps(reached), encoding="utf-8")
        for module in modules:
            source = (copy / "src" / "steelyard" / module).read_text(encoding="utf-8")
            known = list(mutants_of(module, source))
            for mutant in rng.sample(known, min(chosen.mutants, len(known))):
                start = time.perf_counter()
                killed = is_killed(copy, mutant, source, reached)
                tried += 1
                survivors += [] if killed else [mutant]
                seconds = time.perf_counter() - start
                word = "killed  " if killed else "SURVIVED"
                sys.stdout.write(f"{word} {seconds:4.0f} s  {mutant.described(source)}\n")
                sys.stdout.flush()
    killed_part = 1 - len(survivors) / max(tried, 1)
    sys.stdout.write(f"{tried} mutants, {killed_part:.0%} killed (wanted: {WANTED:.0%})\n")
    return 0 if killed_part >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
