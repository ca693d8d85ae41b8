"""What the program advises exists: flags, commands and effects that its messages name."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import steelyard
from steelyard.cli.app import app
from steelyard.effects import EFFECTS
from steelyard.judge import pattern_text

SOURCE = Path(steelyard.__file__).parent
COMMANDS = [name for name in app if not name.startswith("-")]
# Rooms whose messages whoever identifies or checks a log reads.
ROOMS = ("recording", "observe", "estimate", "judge", "identification")


@cache
def texts(path: Path) -> list[str]:
    """Return the texts of a module that are no docstrings, pieces of one text joined."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found, docs_and_parts = [], bare | inside
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "0" for p in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs_and_parts:
            found.append(node.value)
    return found


def flags_of(*commands: str) -> set[str]:
    arguments = [argument for command in commands for argument in app[command].assemble_argument_collection()]
    return {name for argument in arguments for name in argument.names if name.startswith("--")} | {"--help"}


def named_flags(rooms: tuple[str, ...]) -> list[tuple[str, str]]:
    paths = [path for path in SOURCE.rglob("*.py") if not rooms or path.relative_to(SOURCE).parts[0] in rooms]
    return [
        (str(path.relative_to(SOURCE)), flag)
        for path in sorted(paths)
        for text in texts(path)
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text)
    ]


def test_flags_that_identify_and_check_advise_are_theirs():
    found = named_flags(ROOMS)
    assert {"--standstill", "--gravity", "--lock", "--effects", "--validate"} <= {flag for _, flag in found}
    known = flags_of("identify", "check", "payload", "gains")
    assert [one for one in found if one[1] not in known] == []


def test_every_flag_that_any_message_names_exists():
    of_dask = {"--host", "--nthreads"}  # the command that starts a scheduler or a worker, which a message shows
    known = flags_of(*COMMANDS) | {"--version", "--completion", "--install-completion"} | of_dask
    assert [one for one in named_flags(()) if one[1] not in known] == []


def test_every_command_that_any_message_names_exists():
    found = {
        word
        for path in SOURCE.rglob("*.py")
        for text in texts(path)
        for word in re.findall(r"(?:'|\(|^| )steelyard ([a-z]+)", text)
    }
    assert {"check", "design"} <= found
    assert found - set(COMMANDS) == set()


@pytest.mark.parametrize("kind", pattern_text.TORQUE_KINDS)
@pytest.mark.parametrize("key", pattern_text._SENTENCES, ids=str)
def test_patterns_in_residuals_advise_effects_that_exist(key, kind):
    """Torques of motors get no advice about a torque sensor, and only effects that they measure."""
    remedy = pattern_text.TestedTorque("joint 3", kind).remedy(pattern_text._SENTENCES[key][1], "slow", "0.1")
    words = re.findall(r"\b(?:F[a-z]{1,3}\d?[ml]|off[a-z]|Ia|spring)\b", remedy)
    assert set(words) <= set(EFFECTS)
    assert {EFFECTS[word].side for word in words if word != "spring"} <= {"link" if kind == "joint" else "motor"}
    assert not (kind == "motor" and "sensor" in remedy)
    if key[:2] in (("load", "odd"), ("velocity", "odd")):
        assert words
