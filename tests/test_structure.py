"""The house: imports run one way, public names exist, modules stay small."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import steelyard

SOURCE = Path(steelyard.__file__).parent
# In the order data flows: a room knows the rooms before it, never those after.
ROOMS = (
    "errors", "text", "progress", "files", "archive", "lazy", "distributions", "robot", "physics", "kernel", "model",
    "motion", "signals", "recording", "simulate", "observe", "estimate", "judge", "run", "identify", "design", "calibrate",
    "montecarlo", "papers", "cli",
)  # fmt: skip
MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    package = ["steelyard", *path.relative_to(SOURCE).parent.parts]
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(SOURCE)) for path in MODULES])
def test_imports_run_one_way(path):
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    assert imported_rooms(path) <= allowed


def test_the_check_itself_sees_imports():
    assert imported_rooms(SOURCE / "model" / "terms" / "payload.py") == {"errors", "robot", "model"}
    assert "physics" in imported_rooms(SOURCE / "model" / "identifiability.py")


def test_every_public_name_can_be_imported():
    for name in steelyard._ROOM_OF:
        assert getattr(steelyard, name).__name__ == name
    assert set(steelyard._ROOM_OF) <= set(dir(steelyard))
    with pytest.raises(AttributeError, match="has no attribute 'weigh'"):
        _ = steelyard.weigh
