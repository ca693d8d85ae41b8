"""What exports take and return: an identified arm and the files made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..errors import ExportError
from ..files import opened_aside
from ..model import Model
from ..robot import Robot
from ..robot.tree import STANDARD_GRAVITY
from ..text import short_repr

HEADLINE = "Written by Steelyard from an identified arm."
FORCED = "forced although"
"""How notes on a file begin that is written although something speaks against it."""
LONGEST_STEM = 60
"""Letters of a robot's name that file names and identifiers keep."""
_TAKEN = {
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math", "setjmp",
    "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time", "wchar", "wctype",
    "con", "prn", "aux", "nul",
}  # fmt: skip
"""Stems that would hide a header of C or that Windows reserves."""


@dataclass(frozen=True, eq=False)
class IdentifiedArm:
    """A physically consistent arm that an identification found.

    Attributes:
        robot: The arm with the identified values (``Robot.with_parameters``).
        model: The model it was identified with; ``model.robot`` is the arm as its file describes it.
        sigmas: One standard deviation of every standard parameter; nan if unknown.
        sources: ``data``, ``prior``, ``both`` or ``reference`` for every standard parameter.
        run: Identifier of the run; empty if there is none.
        cautions: What speaks against the arm as a whole, a sentence each; they stand at the top of every file.
    """

    __repr__ = short_repr

    robot: Robot
    model: Model
    sigmas: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    cautions: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """Where the model is valid: locked joints, and gravity other than the usual; a sentence each."""
        gravity = []
        if self.robot.gravity != STANDARD_GRAVITY:
            shown = " ".join(map(repr, self.robot.gravity))
            gravity = [f"identified with gravity {shown} m/s^2 in the base frame"]
        return (*locked_notes(self.robot), *gravity)

    @property
    def heading(self) -> tuple[str, ...]:
        """What stands at the top of every file that can hold text: cautions, then conditions."""
        return (*self.cautions, *self.conditions)

    @property
    def comment(self) -> tuple[str, ...]:
        """Lines at the top of robot files: who wrote them, the run, cautions."""
        run = (f"run {self.run}",) if self.run else ()
        return (HEADLINE, *run, *self.cautions)


@dataclass(frozen=True)
class TorqueComparison:
    """Torques of a written file, as a program loads it, beside those of the arm.

    Attributes:
        program: Name and version of the program.
        states: Number of random states; 0 if the program could not load the file.
        largest: Largest difference, relative to the largest torque of its joint; nan if nothing was compared.
        joint: The joint with that difference; empty if nothing was compared.
        reason: Why nothing was compared; empty otherwise.
    """

    program: str
    states: int
    largest: float
    joint: str
    reason: str = ""


class FileProblem(NamedTuple):
    """What speaks against a file.

    Attributes:
        text: What is the case.
        remedy: What to do about it.
    """

    text: str
    remedy: str

    @property
    def note(self) -> str:
        """The note on a file that is written all the same."""
        return f"{FORCED} {self.text}"


@dataclass(frozen=True)
class ExportedFile:
    """A file to be written.

    Attributes:
        name: Its name; below a folder only where another file names it so.
        content: Its bytes.
        notes: What a reader of the file should know: what the format cannot hold, with numbers.
        comparisons: Which programs loaded the file, and how far their torques are from the arm's.
    """

    name: str
    content: bytes
    notes: tuple[str, ...] = ()
    comparisons: tuple[TorqueComparison, ...] = ()


def write_files(files: Iterable[ExportedFile], folder: Path) -> list[Path]:
    """Write files into a folder, each aside and renamed, and return their paths."""
    paths = []
    for one in files:
        (folder / one.name).parent.mkdir(parents=True, exist_ok=True)
        with opened_aside(folder / one.name) as file:
            file.write(one.content)
        paths.append(folder / one.name)
    return paths


def locked_positions(robot: Robot) -> dict[str, float]:
    """Return the positions of locked joints by name."""
    return {joint.name: joint.locked_at for joint in robot.joints if joint.locked_at is not None}


def locked_notes(robot: Robot) -> list[str]:
    """Return a note if joints of the arm are locked."""
    held = ", ".join(f"{name} at {position!r}" for name, position in locked_positions(robot).items())
    return [f"identified with locked joints, and valid with them there only: {held}"] if held else []


def safe_stem(name: str) -> str:
    """Return a robot's name as file names, C and Python can hold it: ASCII letters, digits and single underscores.

    Example:
        >>> from steelyard.export.identified import safe_stem
        >>> safe_stem("KUKA LBR iiwa-7"), safe_stem("7axis"), safe_stem("math")
        ('KUKA_LBR_iiwa_7', 'arm_7axis', 'math_arm')
    """
    stem = re.sub(r"[^A-Za-z0-9]+", "_", name)[:LONGEST_STEM].strip("_")
    if not stem or stem[0].isdigit():
        stem = f"arm_{stem}".rstrip("_")
    return f"{stem}_arm" if stem.lower() in _TAKEN else stem


def refuse_unknown_inertias(robot: Robot) -> None:
    """Refuse an arm of which a link's inertia is not known.

    Raises:
        ExportError: If there is such a link; the message names it.
    """
    without = [body.link for body in robot.bodies if body.inertia is None]
    if without:
        raise ExportError(
            f"robot '{robot.name}': no inertia of link '{without[0]}'; torques cannot be computed, give one in the "
            "robot's file or identify the arm with the effect 'inertia'"
        )
