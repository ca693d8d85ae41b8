"""A model as text for a person: the tree, the base parameters, and what cannot be seen."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.console import Console

from ..robot import Robot
from .output import Column, Screen


def print_model(robot: Robot, summary: dict[str, Any], console: Console | None = None) -> None:
    """Print a model: what was asked, the tree, base parameters, and what has no effect."""
    screen = Screen(console)
    _print_heading(screen, summary)
    _print_joints(screen, robot)
    screen.line()
    _print_base(screen, summary)
    _print_alone(screen, summary)
    _print_unseen(screen, summary)
    for note in summary["notes"]:
        screen.line(f"note: {note}", style="yellow")


def _print_heading(screen: Screen, summary: dict[str, Any]) -> None:
    counts = summary["counts"]
    gravity = ", ".join(f"{value:g}" for value in summary["gravity"])
    screen.line((summary["robot"], "bold"), f"  measured torque: {summary['torque']}, payload: {summary['payload']}")
    screen.line(f"effects: {' '.join(summary['effects'])}; gravity ({gravity}) m/s^2")
    screen.line(
        f"{counts['standard']} standard parameters = {counts['base']} base + {counts['regrouped']} regrouped "
        f"+ {counts['without_effect']} without effect",
        style="bold", always=True,
    )  # fmt: skip
    screen.line()


def _print_joints(screen: Screen, robot: Robot) -> None:
    """Print the kinematic tree, a joint a line; numbers are those in parameter names."""
    rows = [["", "0", "", "", "", "", "", robot.root]]
    for body in robot.bodies:
        joint, limits = body.joint, body.joint.limits
        kind = f"{joint.kind}, follows {joint.mimic.leader}" if joint.mimic else joint.kind
        unit = "m" if joint.kind == "prismatic" else "rad"
        span = [f"{limits.lower:.4g}", f"{limits.upper:.4g}", unit]
        rows.append([joint.name, str(body.number), str(body.parent), *span, kind, body.link])
    columns = [Column("joint", "key"), *map(Column, ("no", "on", "from", "to"))]
    columns += [Column("", "word"), Column("kind", "text"), Column("moves", "text")]
    screen.table(columns, rows)


def _print_base(screen: Screen, summary: dict[str, Any]) -> None:
    rows = [[base["text"], base["unit"]] for base in summary["base"] if len(base["regrouping"]) > 1]
    screen.table([Column("base parameters that regroup others", "text"), Column("unit", "word")], rows)


def _print_alone(screen: Screen, summary: dict[str, Any]) -> None:
    alone = [base["name"] for base in summary["base"] if len(base["regrouping"]) == 1]
    if alone:
        screen.line()
        screen.line(("identifiable alone", "bold"), f" ({len(alone)}): {' '.join(alone)}")


def _print_unseen(screen: Screen, summary: dict[str, Any]) -> None:
    unseen = [parameter for parameter in summary["parameters"] if parameter["status"] == "without effect"]
    if not unseen:
        return
    by_reason = groupby(sorted(unseen, key=lambda p: p["reason"]), key=lambda p: p["reason"])
    rows = [[" ".join(p["name"] for p in group), reason] for reason, group in by_reason]
    screen.line()
    screen.table([Column(f"without effect ({len(unseen)})", "text"), Column("why", "text")], rows)
