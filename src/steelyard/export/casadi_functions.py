"""CasADi functions of an identified arm: one file a function, for ``casadi.Function.load``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import casadi as ca

from ..text import for_terminal
from .dynamics import SIGNATURES, ArmDynamics, TorqueSide, arm_dynamics
from .identified import HEADLINE, ExportedFile, IdentifiedArm, safe_stem


def casadi_files(
    arm: IdentifiedArm, *, side: TorqueSide = "motor", parameters: bool = False
) -> tuple[ExportedFile, ...]:
    """Return the functions of an identified arm as CasADi saves them, ``<robot>_<function>.casadi``.

    These hold no text: the last file, ``<robot>_casadi.txt``, has cautions, joint order and notes.

    Inputs and outputs are columns by name: ``f(q=..., qd=..., qdd=...)["tau"]``; the inertia matrix is ``M``.

    Args:
        arm: The arm.
        side: ``motor`` for the torques of the motors, ``joint`` for those of joint torque sensors.
        parameters: Whether the functions take the parameters as a last input, in the order of the model's names,
            instead of holding the identified values.

    Raises:
        ExportError: If an inertia is unknown.
    """
    dynamics = arm_dynamics(arm, side)
    stem = safe_stem(arm.robot.name)
    notes = (*dynamics.notes, f"written by CasADi {ca.CasadiMeta.version()}: releases before it may not read the files")
    files = []
    for one in SIGNATURES:
        function = dynamics.functions[one.name]
        if not parameters:
            inputs = [ca.SX.sym(name, len(dynamics.joints)) for name in one.inputs]
            output = ca.cse(ca.densify(function(*inputs, dynamics.values)))
            function = ca.Function(one.name, inputs, [output], list(one.inputs), [one.output])
        files.append(ExportedFile(f"{stem}_{one.name}.casadi", _saved(function), () if files else notes))
    files.append(ExportedFile(f"{stem}_casadi.txt", _description(dynamics, notes, parameters).encode("utf-8")))
    return tuple(files)


def _description(dynamics: ArmDynamics, notes: tuple[str, ...], parameters: bool) -> str:
    """Return what the functions are, as text."""
    arm, joints = dynamics.arm, dynamics.joints
    kind = "motors, on the joint side of the gears" if dynamics.side == "motor" else "joint torque sensors"
    lines = [
        HEADLINE,
        f"robot {arm.robot.name}" + (f", run {arm.run}" if arm.run else ""),
        *arm.heading,
        *(f"{one.name}({', '.join(one.inputs)}) -> {one.output}: {one.summary}" for one in SIGNATURES),
        f"Torques are those of the {kind}. Units are SI.",
        f"Gravity in the base frame [m/s^2]: {' '.join(map(repr, arm.robot.gravity))}.",
        f"Entries of vectors: {', '.join(body.joint.name for body in joints)}.",
        *([f"Last input: parameters {', '.join(one.name for one in dynamics.parameters)}."] if parameters else []),
        *notes,
    ]
    return "".join(f"{for_terminal(line)}\n" for line in lines)


def _saved(function: ca.Function) -> bytes:
    """Return what CasADi writes for ``Function.load``, which does not read the text of ``serialize``."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "function.casadi"
        function.save(str(path))
        return path.read_bytes()
