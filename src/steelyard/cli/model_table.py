"""A model as text for a person: the tree, the base parameters, and what cannot be seen."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from ..robot import Robot


def print_model(robot: Robot, summary: dict[str, Any], console: Console | None = None) -> None:
    """Print a model: what was asked, the tree, base parameters, and what has no effect."""
    console = console or Console(highlight=False)
    _print_heading(console, summary)
    console.print(_tree(robot))
    console.print()
    console.print(_base_table(summary))
    _print_alone(console, summary)
    _print_unseen(console, summary)
    for note in summary["notes"]:
        console.print(f"note: {note}", style="yellow")


def _print_heading(console: Console, summary: dict[str, Any]) -> None:
    counts = summary["counts"]
    gravity = ", ".join(f"{value:g}" for value in summary["gravity"])
    console.print(
        f"[bold]{summary['robot']}[/bold]  measured torque: {summary['torque']}, payload: {summary['payload']}"
    )
    console.print(f"effects: {' '.join(summary['effects'])}; gravity ({gravity}) m/s^2")
    console.print(
        f"[bold]{counts['standard']} standard parameters = {counts['base']} base + {counts['regrouped']} regrouped "
        f"+ {counts['without_effect']} without effect[/bold]\n"
    )


def _tree(robot: Robot) -> Tree:
    """Return the kinematic tree; numbers are those in parameter names."""
    branches = {0: Tree(robot.root)}
    for body in robot.bodies:
        limits = body.joint.limits
        unit = "m" if body.joint.kind == "prismatic" else "rad"
        span = f"[{limits.lower:.4g}, {limits.upper:.4g}] {unit}".replace("[", "\\[")
        follows = f", follows {body.joint.mimic.leader}" if body.joint.mimic else ""
        label = f"{body.number}  {body.joint.name} ({body.joint.kind}{follows}) {span} -> {body.link}"
        branches[body.number] = branches[body.parent].add(label)
    return branches[0]


def _base_table(summary: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    table.add_column("base parameters that regroup others", overflow="fold")
    table.add_column("unit", no_wrap=True)
    for base in summary["base"]:
        if len(base["regrouping"]) > 1:
            table.add_row(base["text"], base["unit"])
    return table


def _print_alone(console: Console, summary: dict[str, Any]) -> None:
    alone = [base["name"] for base in summary["base"] if len(base["regrouping"]) == 1]
    if alone:
        console.print(f"\n[bold]identifiable alone[/bold] ({len(alone)}): {' '.join(alone)}")


def _print_unseen(console: Console, summary: dict[str, Any]) -> None:
    unseen = [parameter for parameter in summary["parameters"] if parameter["status"] == "without effect"]
    if not unseen:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"without effect ({len(unseen)})", overflow="fold", max_width=26)
    table.add_column("why", overflow="fold")
    for reason, group in groupby(sorted(unseen, key=lambda p: p["reason"]), key=lambda p: p["reason"]):
        table.add_row(" ".join(p["name"] for p in group), reason)
    console.print()
    console.print(table)
