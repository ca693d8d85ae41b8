"""Parameters of an identified arm as YAML, JSON and LaTeX: values, sigmas, sources, units and frames."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from textwrap import wrap
from typing import Any

import numpy as np

from ..effects import EFFECTS
from ..model import Parameter
from ..plain_data import json_document, plain, yaml_document
from ..robot import Body, inertia_from_parameters
from ..robot.inertia import skew
from ..text import for_latex, for_terminal, latex_number
from .identified import ExportedFile, IdentifiedArm, locked_positions, refuse_unknown_inertias, safe_stem

FORMAT = 1
ROWS_OF_LATEX = 45
"""Rows that fit on a page; more parameters stand side by side."""
GROUPS_OF_LATEX = 3
"""Groups of four columns that fit side by side; what is left goes into a further table."""

_FRAMES = (
    "parameters XX ... M of a link are those of the moving link with all that is fixed to it, in the frame of that "
    "link, which is the frame of its joint",
    "XX XY XZ YY YZ ZZ are the entries of the inertia matrix about the origin of that frame (XY is the entry itself, "
    "as ixy in a URDF), MX MY MZ are mass times centre of mass",
    "parameters of joints are on the joint side of the gears; numbers in names are those of the moving links below",
)
_SOURCES = (
    "source: where a value comes from, data, prior, both, reference, or pinned, bound, robot file if it was not "
    "estimated; sigma: one standard deviation"
)


def yaml_file(arm: IdentifiedArm) -> tuple[ExportedFile]:
    """Return the parameters as YAML, ``<robot>.yaml``: readable by YAML 1.1 and 1.2.

    Raises:
        ExportError: If an inertia is unknown.
    """
    head = "".join(f"# {line}\n" for text in arm.heading for line in wrap(for_terminal(text), 100))
    text = head + yaml_document(parameter_document(arm))
    return (ExportedFile(f"{safe_stem(arm.robot.name)}.yaml", text.encode("utf-8")),)


def json_file(arm: IdentifiedArm) -> tuple[ExportedFile]:
    """Return the parameters as JSON, ``<robot>.json``: the content of the YAML.

    Raises:
        ExportError: If an inertia is unknown.
    """
    text = json_document(parameter_document(arm)) + "\n"
    return (ExportedFile(f"{safe_stem(arm.robot.name)}.json", text.encode("utf-8")),)


def parameter_document(arm: IdentifiedArm) -> dict[str, Any]:
    """Return robot, run, joint order, links and parameters as plain data; a sigma that is unknown is None.

    Raises:
        ExportError: If an inertia is unknown.
    """
    refuse_unknown_inertias(arm.robot)
    robot, parameters, values = arm.robot, exported_parameters(arm), arm.robot.parameters
    return {
        "steelyard_parameters": FORMAT,
        "robot": robot.name,
        "run": arm.run or None,
        "cautions": [*arm.cautions],
        "conditions": [*arm.conditions],
        "gravity": plain(robot.gravity),
        "locked_joints": locked_positions(robot),
        "measured": arm.model.measured,
        "effects": plain(arm.model.chosen_effects),
        "sign_width": arm.model.sign_width,
        "joint_order": plain(robot.joint_names),
        "parameter_order": [one.name for one in parameters],
        "links": [_link(body) for body in robot.bodies],
        "parameters": {one.name: _entry(arm, one, values.get(one.name)) for one in parameters},
        **({"balancers": robot.balancers_to_json} if robot.balancers else {}),
        "frames": [*_FRAMES],
        "sources": _SOURCES,
    }


def exported_parameters(arm: IdentifiedArm) -> tuple[Parameter, ...]:
    """Return the parameters of the model in its order, the links' inertias always among them."""
    if "inertia" in arm.model.effects:
        return arm.model.parameters
    chosen = {"inertia", *arm.model.effects}
    return replace(arm.model, effects=tuple(name for name in EFFECTS if name in chosen)).parameters


def _link(body: Body) -> dict[str, Any]:
    """Return a moving link with mass, centre and inertia about the centre, as many programs want them."""
    inertia, first_moment, mass = inertia_from_parameters(np.array(body.inertia))
    centre = first_moment / mass if mass > 0 else None
    at_centre = None if centre is None else inertia + mass * skew(centre) @ skew(centre)
    return {
        "number": body.number,
        "link": body.link,
        "joint": body.joint.name,
        "kind": body.joint.kind,
        "follows": body.joint.mimic.leader if body.joint.mimic else None,
        "mass": mass,
        "centre_of_mass": plain(centre),
        "inertia_at_centre": None if at_centre is None else plain(at_centre[np.triu_indices(3)]),
    }


def _entry(arm: IdentifiedArm, one: Parameter, value: float | None) -> dict[str, Any]:
    return {
        "value": _known(value),
        "sigma": _known(arm.sigmas.get(one.name)),
        "unit": one.unit,
        "source": arm.sources.get(one.name),
        "joint": one.joint or None,
        "link": one.link,
        "effect": one.effect,
        "side": one.side,
    }


def _known(value: float | None) -> float | None:
    return float(value) if value is not None and isfinite(value) else None


def latex_file(arm: IdentifiedArm) -> tuple[ExportedFile]:
    r"""Return the parameters as a LaTeX table, ``<robot>.tex``: name, unit, value and relative sigma, as P5's.

    The table is a ``tabular`` for ``\input``; its only package is ``booktabs``. More parameters than fit on a page
    stand side by side, then in a further table.

    Raises:
        ExportError: If an inertia is unknown.
    """
    refuse_unknown_inertias(arm.robot)
    known = arm.robot.parameters
    cells = [_latex_cells(arm, one, known.get(one.name)) for one in exported_parameters(arm)]
    about = f"robot {arm.robot.name}" + (f", run {arm.run}" if arm.run else "")
    most = ROWS_OF_LATEX * GROUPS_OF_LATEX
    tables = [_tabular(cells[first : first + most]) for first in range(0, len(cells), most)]
    cautions = "".join(f"% {for_terminal(caution)}\n" for caution in arm.heading)
    text = f"% {for_terminal(about)}; needs \\usepackage{{booktabs}}\n{cautions}" + "\n".join(tables)
    return (ExportedFile(f"{safe_stem(arm.robot.name)}.tex", text.encode("utf-8")),)


def _tabular(cells: list[list[str]]) -> str:
    groups = -(-len(cells) // ROWS_OF_LATEX)
    height = -(-len(cells) // groups)
    head = ["parameter", "unit", "value", r"$\sigma$ [\%]"] * groups
    rows = [[cell for one in cells[row::height] for cell in one] for row in range(height)]
    lines = [
        rf"\begin{{tabular}}{{{'llrr' * groups}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row + [""] * (len(head) - len(row))) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cells(arm: IdentifiedArm, one: Parameter, value: float | None) -> list[str]:
    sigma = _known(arm.sigmas.get(one.name))
    relative = None if sigma is None or not value else 100 * sigma / abs(value)
    unit = for_latex(one.unit).replace(r"\textasciicircum{}2", r"\textsuperscript{2}")
    return [for_latex(one.name), unit, latex_number(_known(value), ".4g"), latex_number(relative, ".2g")]
