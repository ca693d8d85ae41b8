"""A Python module of an identified arm that needs NumPy alone: ``<robot>_dynamics.py``.

It is meant to be read: parameters by name with units, then a recursive Newton-Euler over the bodies in which the last
axis of every array holds the joints, so that many samples are computed at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import Template
from typing import Any

from ..effects import EFFECTS, Effect
from ..errors import ExportError
from ..robot import INERTIAL_NAMES, transform_from_placement
from ..text import for_terminal
from .dynamics import ArmDynamics, TorqueSide, arm_dynamics
from .identified import ExportedFile, IdentifiedArm, safe_stem
from .numpy_balancers import TABLE_FUNCTION, balancer_lines

# Friction by the law of an effect; {0} and {1} are the constants of its symbols, {v} is the velocity.
_FRICTION = {
    "viscous": "{0} * {v}",
    "coulomb": "{0} * _sign({v})",
    "offset": "{0}",
    "asymmetric": "{0} * _forward({v}) - {1} * _forward(-{v})",
    "quadratic": "{0} * {v} * np.abs({v})",
    "square_root": "{0} * np.sqrt(np.abs({v})) * _sign({v})",
    "third_root": "{0} * np.cbrt(np.abs({v})) * _sign({v})",
    "stribeck": "{0} * np.exp(-(({v} / {velocity!r}) ** 2)) * _sign({v})",
    "load": "{0} * np.abs({load}) * _sign({v})",
    "dahl": "{0} * _sign({v})",
}
_FRICTION_MODULES = ("friction", "gear_coupling")
_LOAD = "_newton_euler(q, qd, np.zeros(qd.shape), GRAVITY)"
_GRAVITY = {"spring.spring": "tau += {0} * np.sin(q) + {1} * np.cos(q)"}
_DRIVE_INERTIA = "inertia.drive_inertia"
_BALANCER = "spring.balancer"
_COUPLING = "gear_coupling.coupling"
_COUPLING_CONSTANTS = """for _own, _other, _ratio in GEAR_COUPLINGS:
    _inertia = _ratio * PARAMETERS[f"Iac{ACTUATED[_own]}"]
    DRIVE_INERTIA[_own, _other] += _inertia
    DRIVE_INERTIA[_other, _own] += _inertia"""
_COUPLING_FRICTION = """for own, other, ratio in GEAR_COUPLINGS:
        viscous, coulomb = (PARAMETERS[f"{symbol}{ACTUATED[own]}"] for symbol in ("Fvc", "Fcc"))
        direction = _sign(qd[..., own] + ratio * qd[..., other])
        tau[..., own] += viscous * ratio * qd[..., other] + coulomb * direction
        tau[..., other] += ratio * (viscous * qd[..., own] + coulomb * direction)"""
_MOTORS_TURN = "turning = qd @ MOTOR_COUPLING.T"

_MODULE = Template('''"""Dynamics of robot $robot$run.

Written by Steelyard; generate it again instead of editing it. Needs NumPy alone.
$cautions
tau = inertia_matrix(q) qdd + coriolis(q, qd) + gravity(q) + friction(q, qd)

$side
Units are SI: rad or m, rad/s or m/s, rad/s^2 or m/s^2, N m or N. The last axis of every array holds the joints, in the
order of JOINTS; axes before it hold samples.
$notes"""

import numpy as np

ROBOT = $robot_text
RUN = $run_text
GRAVITY = np.array($gravity)  # in the base frame [m/s^2]
SIGN_WIDTH = $sign_width  # friction changes with tanh(velocity / width) [rad/s or m/s]; 0: with the exact sign

JOINTS = (
$joints)
ACTUATED = $actuated  # number of the body that each of these joints moves

# Moving bodies, numbered from 1; what is fixed to a body is part of it.
LINKS = (
$links)
PARENTS = $parents  # number of the body that carries each body; 0 is the base
PRISMATIC = $prismatic
AXES = np.array([  # joint axis in the body's frame
$axes])

# Frame of each body in its parent's at joint position 0: rotation, and translation [m].
ROTATIONS = np.array([
$rotations])
TRANSLATIONS = np.array([
$translations])

# Positions of all moving joints are GAINS q + OFFSETS: joints that follow another have no entry of their own in q.
GAINS = np.array([
$gains])
OFFSETS = np.array($offsets)

# Inertia XX ... ZZ about the origin of the body's frame, first moments MX MY MZ and mass M in that frame; then drives,
# friction, offsets and springs. The number is that of the body.
PARAMETERS = {
$parameters}


def _by_joint(symbol):
    """Return the parameters of all actuated joints that have one symbol; 0 where there is none."""
    return np.array([PARAMETERS.get(f"{symbol}{number}", 0.0) for number in ACTUATED])


DRIVE_INERTIA = np.zeros((len(JOINTS), len(JOINTS)))
$constants

def inverse_dynamics(q, qd, qdd):
    """Return the torques of a motion (..., joints)."""
    q, qd, qdd = _same_shape(q, qd, qdd)
    tau = _newton_euler(q, qd, qdd, GRAVITY) + qdd @ DRIVE_INERTIA
    return tau + _elastic(q) + friction(q, qd)


def gravity(q):
    """Return the torques that hold the arm still (..., joints): weight and springs."""
    q, still = _same_shape(q, 0.0)
    return _newton_euler(q, still, still, GRAVITY) + _elastic(q)


def inertia_matrix(q):
    """Return the inertia matrix (..., joints, joints), drive inertias included."""
    q = np.asarray(q, dtype=float)[..., None, :]  # one row of the matrix for each unit acceleration
    q, still, unit = _same_shape(q, 0.0, np.eye(len(JOINTS)))
    matrix = _newton_euler(q, still, unit, np.zeros(3)) + DRIVE_INERTIA
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))


def coriolis(q, qd):
    """Return Coriolis and centrifugal torques (..., joints)."""
    q, qd, still = _same_shape(q, qd, 0.0)
    return _newton_euler(q, qd, still, np.zeros(3))


def friction(q, qd):
    """Return torques of friction and offsets (..., joints)."""
    q, qd = _same_shape(q, qd)
    tau = np.zeros(qd.shape)
$friction    return tau


def forward_dynamics(q, qd, tau):
    """Return the accelerations that torques give (..., joints)."""
    q, qd, tau = _same_shape(q, qd, tau)
    rest = tau - coriolis(q, qd) - gravity(q) - friction(q, qd)
    return np.linalg.solve(inertia_matrix(q), rest[..., None])[..., 0]


def _elastic(q):
    """Return the torques of springs (..., joints)."""
    tau = np.zeros(q.shape)
$elastic    return tau


def _sign(velocity):
    """Return the direction of a velocity, -1 to 1."""
    return np.sign(velocity) if SIGN_WIDTH == 0.0 else np.tanh(velocity / SIGN_WIDTH)


def _forward(velocity):
    """Return 1 for motion forward, 0 for motion backward and at rest; smooth as the sign is."""
    return 1.0 * (velocity > 0) if SIGN_WIDTH == 0.0 else 0.5 * (1 + np.tanh(velocity / SIGN_WIDTH))


def _same_shape(*arrays):
    """Return arrays of numbers with a common shape whose last axis holds the joints."""
    shapes = (np.shape(array) for array in arrays)
    shape = np.broadcast_shapes((len(JOINTS),), *shapes)
    return [np.broadcast_to(np.asarray(array, dtype=float), shape) for array in arrays]


def _newton_euler(q, qd, qdd, gravity):
    """Return the torques of the rigid bodies (..., joints), by recursive Newton-Euler in the bodies' own frames."""
    positions, rates, accelerations = q @ GAINS.T + OFFSETS, qd @ GAINS.T, qdd @ GAINS.T
    zero = np.zeros((*q.shape[:-1], 3))
    motions = [(zero, zero, zero - gravity)]  # angular velocity, angular acceleration, acceleration of the origin
    steps, forces, moments = [None], [zero], [zero]
    for k, parent in enumerate(PARENTS):
        rotation, translation = _step(k, positions[..., k])
        omega, alpha, linear = motions[parent]
        linear = linear + np.cross(alpha, translation) + np.cross(omega, np.cross(omega, translation))
        omega, alpha, linear = (_turned(rotation, vector, inverse=True) for vector in (omega, alpha, linear))
        rate, acceleration = rates[..., k, None] * AXES[k], accelerations[..., k, None] * AXES[k]
        if PRISMATIC[k]:
            linear = linear + 2 * np.cross(omega, rate) + acceleration
        else:
            alpha = alpha + np.cross(omega, rate) + acceleration
            omega = omega + rate
        xx, xy, xz, yy, yz, zz, mx, my, mz, mass = (PARAMETERS[f"{symbol}{k + 1}"] for symbol in INERTIAL)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        first = np.array([mx, my, mz])
        forces.append(mass * linear + np.cross(alpha, first) + np.cross(omega, np.cross(omega, first)))
        moments.append(alpha @ inertia + np.cross(omega, omega @ inertia) + np.cross(first, linear))
        steps.append((rotation, translation))
        motions.append((omega, alpha, linear))
    torques = np.empty(positions.shape)
    for k in reversed(range(len(PARENTS))):
        wrench = forces[k + 1] if PRISMATIC[k] else moments[k + 1]
        torques[..., k] = wrench @ AXES[k]
        rotation, translation = steps[k + 1]
        force = _turned(rotation, forces[k + 1])
        forces[PARENTS[k]] = forces[PARENTS[k]] + force
        moments[PARENTS[k]] = moments[PARENTS[k]] + _turned(rotation, moments[k + 1]) + np.cross(translation, force)
    return torques @ GAINS


def _step(k, position):
    """Return rotation (..., 3, 3) and translation (..., 3) of a body's frame in its parent's."""
    axis = AXES[k]
    if PRISMATIC[k]:
        return ROTATIONS[k], TRANSLATIONS[k] + position[..., None] * (ROTATIONS[k] @ axis)
    sine, cosine = np.sin(position)[..., None, None], np.cos(position)[..., None, None]
    x, y, z = axis
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    along = np.outer(axis, axis)
    return ROTATIONS[k] @ ((np.eye(3) - along) * cosine + skew * sine + along), TRANSLATIONS[k]


def _turned(rotation, vector, inverse=False):
    """Return vectors (..., 3) turned by rotations, or back."""
    return np.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", rotation, vector)
''')


def numpy_file(arm: IdentifiedArm, *, side: TorqueSide = "motor") -> tuple[ExportedFile]:
    """Return a Python module of an identified arm that needs NumPy alone.

    Args:
        arm: The arm.
        side: ``motor`` for the torques of the motors, ``joint`` for those of joint torque sensors.

    Raises:
        ExportError: If an inertia is unknown or an effect has no NumPy form.
    """
    dynamics = arm_dynamics(arm, side)
    text = _MODULE.substitute(_texts(dynamics), **_effects(dynamics), **_tree(dynamics))
    return (ExportedFile(f"{safe_stem(arm.robot.name)}_dynamics.py", text.encode("utf-8"), dynamics.notes),)


def _texts(dynamics: ArmDynamics) -> dict[str, str]:
    arm = dynamics.arm
    sides = {
        "motor": "tau are the torques of the motors, on the joint side of the gears.",
        "joint": "tau are the torques that joint torque sensors measure.",
    }
    values = zip(dynamics.parameters, dynamics.values.tolist(), strict=True)
    return {
        "robot": _docstring(arm.robot.name),
        "run": f", run {_docstring(arm.run)}" if arm.run else "",
        "cautions": "".join(f"{_docstring(caution)}\n" for caution in arm.heading),
        "side": sides[dynamics.side],
        "notes": "".join(f"Note: {_docstring(note)}.\n" for note in dynamics.notes),
        "robot_text": ascii(arm.robot.name),
        "run_text": ascii(arm.run),
        "sign_width": repr(arm.model.sign_width),
        "parameters": "".join(f'    "{one.name}": {value!r},  # {one.unit}\n' for one, value in values),
    }


def _tree(dynamics: ArmDynamics) -> dict[str, str]:
    robot = dynamics.arm.robot
    gains, offsets = robot.coupling()
    places = [transform_from_placement(body.placement) for body in robot.bodies]
    return {
        "gravity": repr(list(map(float, robot.gravity))),
        "joints": "".join(f"    {name!a},\n" for name in robot.joint_names),
        "actuated": _tuple(body.number for body in dynamics.joints),
        "links": "".join(f"    {body.link!a},\n" for body in robot.bodies),
        "parents": _tuple(body.parent for body in robot.bodies),
        "prismatic": _tuple(body.joint.kind == "prismatic" for body in robot.bodies),
        "axes": _rows([float(part) for part in body.joint.axis] for body in robot.bodies),
        "rotations": _rows(rotation.tolist() for rotation, _ in places),
        "translations": _rows(translation.tolist() for _, translation in places),
        "gains": _rows(gains.tolist()),
        "offsets": repr(offsets.tolist()),
    }


def _effects(dynamics: ArmDynamics) -> dict[str, str]:
    """Return the lines of the effects that the arm has."""
    present = dict.fromkeys(one.effect for one in dynamics.parameters)
    constants, friction, elastic = [], [], []
    for name in present:
        effect = EFFECTS[name]
        upper = [symbol.upper() for symbol in effect.symbols]
        if effect.builder == _COUPLING:
            constants.append(_gear_couplings(dynamics))
            friction.append(_COUPLING_FRICTION)
        elif effect.builder == _BALANCER:
            elastic += balancer_lines(dynamics.arm.robot)
            constants += [TABLE_FUNCTION] if any("_table(" in line for line in elastic) else []
        elif effect.builder == _DRIVE_INERTIA:
            constants += [f"DRIVE_INERTIA += np.diag(_by_joint({symbol!r}))" for symbol in effect.symbols]
        elif effect.builder in _GRAVITY:
            constants += _constants_of(effect)
            elastic.append(_GRAVITY[effect.builder].format(*upper))
        elif effect.builder.split(".")[0] in _FRICTION_MODULES and effect.law in _FRICTION:
            constants += _constants_of(effect)
            if effect.is_of_coupled_motors and _MOTORS_TURN not in friction:
                constants.append(_motor_coupling(dynamics))
                friction.append(_MOTORS_TURN)
            friction.append(_friction_line(effect, dynamics))
        elif name != "inertia":
            raise ExportError(f"effect '{name}' has no NumPy form; leave it out, or export C or CasADi functions")
    return {
        "constants": "\n".join([*constants, f"INERTIAL = {INERTIAL_NAMES!r}"]) + "\n",
        "friction": "".join(f"    {line}\n" for line in friction),
        "elastic": "".join(f"    {line}\n" for line in elastic),
    }


def _constants_of(effect: Effect) -> list[str]:
    return [f"{symbol.upper()} = _by_joint({symbol!r})" for symbol in effect.symbols]


def _friction_line(effect: Effect, dynamics: ArmDynamics) -> str:
    """Return the line that adds friction of joints, or of coupled motors: ``C^T f(C qd)``."""
    velocity = dynamics.arm.model.friction.stribeck[effect.element] if effect.law == "stribeck" else None
    upper = [symbol.upper() for symbol in effect.symbols]
    if not effect.is_of_coupled_motors:
        return f"tau += {_FRICTION[effect.law].format(*upper, v='qd', velocity=velocity, load=_LOAD)}"
    load = f"{_LOAD} @ np.linalg.inv(MOTOR_COUPLING)"
    return (
        f"tau += ({_FRICTION[effect.law].format(*upper, v='turning', velocity=velocity, load=load)}) @ MOTOR_COUPLING"
    )


def _motor_coupling(dynamics: ArmDynamics) -> str:
    rows = dynamics.arm.robot.motor_coupling().tolist()
    return f"MOTOR_COUPLING = np.array({rows!r})  # motors turn by MOTOR_COUPLING q"


def _gear_couplings(dynamics: ArmDynamics) -> str:
    robot = dynamics.arm.robot
    row_of = {name: row for row, name in enumerate(robot.joint_names)}
    rows = tuple((row_of[one.motor], row_of[one.also_turns_with], one.ratio) for one in robot.gear_couplings)
    comment = "  # motor of joint a turns with joints a and b: q_a + ratio q_b"
    return f"GEAR_COUPLINGS = {rows!r}{comment}\n{_COUPLING_CONSTANTS}"


def _tuple(values: Iterable[Any]) -> str:
    return repr(tuple(values))


def _rows(rows: Iterable[list[Any]]) -> str:
    return "".join(f"    {row!r},\n" for row in rows)


def _docstring(text: str) -> str:
    return for_terminal(text).replace("\\", "|").replace('"', "'")
