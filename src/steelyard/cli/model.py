"""``steelyard model``: a model's parameters, base parameters, and what is not identifiable and why."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import require_files, robot_file
from ..plain_data import json_text
from .options import DEFAULT_MODEL, Config, Json, ModelOptions, Out, Quiet, RobotName, given, quietly
from .output import Column, Screen

if TYPE_CHECKING:
    from rich.console import Console

    from ..robot import Robot

SCHEMA = {
    "torque": str, "payload": str, "effects": list, "gravity": list, "sign_width": float, "lock": dict,
}  # fmt: skip


def model(
    robot: RobotName,
    /,
    *,
    options: ModelOptions = DEFAULT_MODEL,
    config: Config = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show a model: parameters, base parameters, and what is not identifiable and why."""
    from ..run import RunFolder, hashes_of, read_config

    require_files(robot_file(robot), config)
    settings = {**(read_config(config, "model", SCHEMA) if config else {}), **given(options)}
    arm = _robot(robot, settings)
    with quietly(quiet), RunFolder(out, "model") as run:
        summary = _summary(arm, settings)
        run.save({"robot": robot, **settings}, hashes_of(Path(robot), config), summary)
        if json:
            print(json_text("model", summary))
            return
        print_model(arm, summary)
        Screen().saved(run.place)


def _summary(robot: Robot, settings: dict[str, Any]) -> dict[str, Any]:
    from ..model import build_model, summarise_model

    effects = settings.get("effects")
    if isinstance(effects, str):
        effects = effects.replace(",", " ").split()
    payload, sign_width = settings.get("payload", "none"), settings.get("sign_width", 0.0)
    return summarise_model(build_model(robot, effects, settings.get("torque"), payload, sign_width))


def _robot(name: str, settings: dict[str, Any]) -> Robot:
    from ..robot import gravity_vector, load_robot, lock_positions

    robot = load_robot(name)
    if "gravity" in settings:
        robot = robot.mounted(gravity_vector(settings["gravity"]))
    if "lock" in settings:
        robot = robot.with_locked(lock_positions(settings["lock"]))
    return robot


def print_model(robot: Robot, summary: dict[str, Any], console: Console | None = None) -> None:
    """Print a model: its settings, the tree, base parameters, and what has no effect."""
    screen = Screen(console)
    _print_heading(screen, summary)
    _print_joints(screen, robot)
    screen.line()
    rows = [[base["text"], base["unit"]] for base in summary["base"] if len(base["regrouping"]) > 1]
    screen.table([Column("base parameters that regroup others", "text"), Column("unit", "word")], rows)
    _print_alone(screen, summary)
    _print_without_effect(screen, summary)
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


def _print_alone(screen: Screen, summary: dict[str, Any]) -> None:
    alone = [base["name"] for base in summary["base"] if len(base["regrouping"]) == 1]
    if alone:
        screen.line()
        screen.line(("identifiable alone", "bold"), f" ({len(alone)}): {' '.join(alone)}")


def _print_without_effect(screen: Screen, summary: dict[str, Any]) -> None:
    without = [parameter for parameter in summary["parameters"] if parameter["status"] == "without effect"]
    if not without:
        return
    by_reason = groupby(sorted(without, key=lambda p: p["reason"]), key=lambda p: p["reason"])
    rows = [[" ".join(p["name"] for p in group), reason] for reason, group in by_reason]
    screen.line()
    screen.table([Column(f"without effect ({len(without)})", "text"), Column("why", "text")], rows)
