"""The house: imports run one way, public names exist, modules stay small."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import steelyard

SOURCE = Path(steelyard.__file__).parent
# In the order data flows: a room knows the rooms before it, never those after.
ROOMS = (
    "errors", "text", "plain_data", "verdict", "effects", "estimators", "progress", "files", "configuration", "archive",
    "tables", "lazy", "distributions", "workers", "plots", "robot", "physics", "kernel", "model", "motion", "signals",
    "recording", "simulation", "observe", "estimate", "judge", "consistency", "run", "report", "identification",
    "excitation", "calibration", "study", "fleet", "export", "papers", "cli",
)  # fmt: skip
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all statements in it, but not their expressions, which are most of a tree."""
    yield node
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield from statements(child)


def imported_rooms(path: Path) -> set[str]:
    package = ["steelyard", *path.relative_to(SOURCE).parent.parts]
    rooms = set()
    for node in statements(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            full = [*base, *(node.module or "").split(".")] if node.module else base
            targets = [[*full, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        else:
            continue
        rooms |= {target[1] for target in targets if target[0] == "steelyard" and len(target) > 1}
    return rooms & set(ROOMS)


def test_every_room_is_in_the_order():
    found = {room_of(path) for path in MODULES} - {"__init__", "__main__"}
    assert found == set(ROOMS)


def test_imports_run_one_way():
    backwards = {
        str(path.relative_to(SOURCE)): sorted(imported_rooms(path) - set(ROOMS[: ROOMS.index(room_of(path)) + 1]))
        for path in MODULES
        if room_of(path) not in ("__init__", "__main__")
    }
    assert {path: rooms for path, rooms in backwards.items() if rooms} == {}


def test_modules_are_read_in_one_sitting():
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}
    assert len(MODULES) <= 446


def test_a_class_name_means_one_thing():
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_nine_functions_in_ten_fit_on_half_a_screen():
    lengths = sorted(
        (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
    )
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_the_check_itself_sees_imports():
    assert imported_rooms(SOURCE / "model" / "terms" / "payload.py") == {"errors", "robot", "model", "physics"}
    assert "physics" in imported_rooms(SOURCE / "model" / "identifiability.py")


def test_every_public_name_can_be_imported():
    names = [name for room in steelyard._ROOMS.values() for name in room]
    for name in names:
        assert getattr(steelyard, name).__name__ == name
    assert set(names) <= set(dir(steelyard))
    with pytest.raises(AttributeError, match="has no attribute 'weigh'"):
        _ = steelyard.weigh


CLI = sorted((SOURCE / "cli").glob("*.py"))


def imports_of(*paths: Path) -> str:
    """Return the imports of modules of ``cli``, those inside functions too, but not those for types only."""
    lines = ["__package__ = 'steelyard.cli'"]
    for tree in (parsed(path) for path in paths):
        types = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        skipped = {id(node) for block in types for node in ast.walk(block)}
        found = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) and id(n) not in skipped]
        lines += [ast.unparse(node) for node in found if getattr(node, "module", "") != "__future__"]
    return "\n".join(lines)


# Modules whose import takes longer than all of a command's own: scipy.signal parses its docstrings and loads
# scipy.stats, which loads most of scipy.
HEAVY = ("scipy.signal", "scipy.stats")
# What an identification from arrays by least squares does not need either.
NOT_FOR_IDENTIFY = (
    "polars", "scipy.fft", "scipy.interpolate", "scipy.optimize", "scipy.sparse", "scipy.spatial", "steelyard.motion",
    "steelyard.estimate.kalman.filter", "steelyard.estimate.likelihood.fit",
    "steelyard.estimate.instruments.estimators",
)  # fmt: skip


def loaded_after(statements: str, names: tuple[str, ...]) -> list[str]:
    """Return which of these modules are loaded after some statements, in a Python of their own."""
    program = f"import sys\n{statements}\nprint(*(name for name in {names!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()


def test_help_loads_no_package_that_does_the_work():
    light = {"errors", "lazy", "files", "text", "plain_data", "progress", "verdict", "estimators", "cli"}
    rooms = tuple(f"steelyard.{room}" for room in ROOMS if room not in light)
    resolved = "from steelyard.cli.app import app; app.resolved_commands()"
    assert loaded_after(resolved, ("numpy", "scipy", "casadi", *rooms)) == []


def test_a_command_loads_its_own_options_only():
    others = tuple(f"steelyard.cli.{name}" for name in ("apply", "calibrate", "design", "montecarlo", "papers"))
    assert loaded_after("from steelyard.cli.app import app; app['identify']", others) == []


def test_no_command_waits_for_scipy_signal_or_stats():
    assert loaded_after(imports_of(*CLI), HEAVY) == []
    assert loaded_after("import scipy.signal", HEAVY) == list(HEAVY)  # it is they that are looked for


def test_identify_starts_without_what_it_does_not_need():
    imports = imports_of(*(SOURCE / "cli" / f"{name}.py" for name in ("identify", "logs")))
    assert "from ..identification import SCHEMA, with_options" in imports
    assert loaded_after(imports, NOT_FOR_IDENTIFY) == []


@pytest.mark.parametrize(
    "package",
    [
        "identification",
        "judge",
        "signals",
        "simulation",
        "estimate.instruments",
        "estimate.kalman",
        "estimate.likelihood",
    ],
)
def test_names_that_load_when_used_are_those_declared(package):
    module = importlib.import_module(f"steelyard.{package}")
    declared = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    names = [
        alias.name for node in ast.walk(declared) if isinstance(node, ast.ImportFrom) and node.module != "lazy"
        for alias in node.names if node.level == 1
    ]  # fmt: skip
    for path in Path(str(module.__file__)).parent.glob("*.py"):
        if path.stem != "__init__":
            importlib.import_module(f"steelyard.{package}.{path.stem}")  # a module must not take a name's place
    for name in names:
        assert getattr(module, name).__class__.__name__ != "module"
        assert name in dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'weigh'; public names: "):
        _ = module.weigh
