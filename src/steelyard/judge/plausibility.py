"""Plausibility: negative values that no arm has, torques that no drive gives, sizes far from the robot file's.

A sign, a unit, a gain or two columns taken wrongly leave the residuals as small as before: the parameters absorb them.
What they cannot absorb is physics. Friction dissipates, ``sum qd (Fv qd + Fc sign qd) > 0``; drive inertia and mass are
positive; the inertia matrix ``M(q)`` is positive definite at every posture. Each of these is linear in the base
parameters, so that its standard deviation follows from their covariance, and a value counts as impossible only where
its interval excludes all possible ones. Whether it matters is judged by the share of the joint's torque behind it: a
model that lacks an effect of a few per cent of the torque bends small parameters by as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..effects import EFFECTS
from ..estimate import Estimate
from ..model import BaseParameter, Model
from ..observe import Equations, Observations, merged_triangle
from ..robot import transform_from_placement
from .evaluation import Evaluation, JointError, MotionExtent

SIGNIFICANT = 4.0
"""A negative value of fewer sigmas may be chance; there are some fifty values."""

POSTURES = 1000
"""Postures within the recorded range at which the inertia matrix is looked at."""

ACCURACY = 0.02
"""Part of a joint's effort limit below which a torque may be bias and hysteresis of sensor and drive."""

ABOVE_NOISE = 5.0
"""A torque stands out if it varies by so many times its noise."""

UNEXPLAINED = 90.0
"""Part of a torque [%] from which the model explains none of it, however small the torque is."""

LIKE = 0.9
"""Correlation of rigid-body torques from which their ratio is a scale."""

# A torque of which less than this part is rigid-body torque says nothing of the links' sizes.
_RIGID = 0.3

_POSITIVE = ("XX", "YY", "ZZ", "M", "Ia", "Iac")


@dataclass(frozen=True)
class Impossible:
    """A quantity that comes out negative and cannot be.

    Attributes:
        what: ``Fvm5``, ``friction of wrist_2_joint``, ``inertia matrix``.
        joint: Joint it concerns most.
        value: The value.
        sigma: Its standard deviation.
        share: Torque it stands for over the joint's torque, root mean squares over the recordings.
    """

    what: str
    joint: str
    value: float
    sigma: float
    share: float


@dataclass(frozen=True)
class Scale:
    """Rigid-body torque of an equation's estimate over that of the robot file's inertias, along the recorded motion.

    Attributes:
        kind: Torque kind.
        joint: Joint.
        ratio: Slope of the one on the other; negative if they oppose each other.
        likeness: Their correlation, -1 to 1.
    """

    kind: str
    joint: str
    ratio: float
    likeness: float


@dataclass(frozen=True)
class Plausibility:
    """What speaks for or against an arm that can exist and a log that is what it is declared to be.

    Attributes:
        impossible: Quantities that come out negative and cannot be, the largest share of torque first.
        hidden: Joints whose torque does not stand above what sensors and drives are accurate to: nothing is judged by
            them alone.
        effort: Joint with the largest torque over its effort limit, and that ratio; None if no limit is known.
        scales: Rigid-body torques of the estimate over those of the robot file.
        heaviness: Largest inertia about a joint over the fifth power of the reach [kg/m^3]; None if not known.
        worst_joint: Joint that is predicted worst, on unseen motion or on the fit, its torque standing out, and that
            error [%], the mean of each recording apart; None if no torque stands out.
        unexplained: Joint whose torque does not stand out, but stands above its noise, and of which the model explains
            nothing, with that error [%]; None if there is none.
    """

    impossible: tuple[Impossible, ...] = ()
    hidden: tuple[str, ...] = ()
    effort: tuple[str, float] | None = None
    scales: tuple[Scale, ...] = ()
    heaviness: float | None = None
    worst_joint: tuple[str, float] | None = None
    unexplained: tuple[str, float] | None = None

    @property
    def scale(self) -> float | None:
        """Median size of the scales that say something; None if there are none."""
        sizes = [abs(one.ratio) for one in self.scales if abs(one.likeness) >= LIKE]
        return float(np.median(sizes)) if sizes else None

    @property
    def material(self) -> tuple[Impossible, ...]:
        """Impossible values of joints whose torque stands out."""
        return tuple(one for one in self.impossible if one.joint not in self.hidden)


def plausibility(
    equations: Equations, estimate: Estimate, observations: Observations, fitted: Evaluation, unseen: Evaluation
) -> Plausibility:
    """Judge an estimate and its log by what an arm can be.

    Args:
        equations: Model, base parameters and rows.
        estimate: The data's own estimate of all base parameters, without a prior.
        observations: Factors of the rows as they are, not whitened.
        fitted: Errors on the recordings of the fit.
        unseen: Errors on unseen motion.
    """
    robot = equations.model.robot
    limits = {joint.joint: robot.joint(joint.joint).limits.effort for joint in fitted.joints}
    largest = {unit: max(j.torque_max for j in fitted.joints if j.unit == unit) for unit in fitted.relative_by_unit}

    def stands_out(joint: JointError) -> bool:
        """Return whether a torque varies by more than its noise and than what sensors and drives are accurate to."""
        limit = limits[joint.joint]
        floor = ACCURACY * (limit if 0 < limit < np.inf else largest[joint.unit])
        return bool(joint.torque_deviation > max(floor, ABOVE_NOISE * joint.noise_rms))

    shown = {joint.joint for joint in fitted.joints if stands_out(joint)}
    limited = [joint for joint in (*fitted.joints, *unseen.joints) if 0 < limits[joint.joint] < np.inf]
    efforts = [(joint.torque_max / limits[joint.joint], joint.joint) for joint in limited]
    errors = [
        (joint.varying_percent, f"{joint.joint} ({joint.kind}){where}")
        for where, joints in (("", unseen.joints), (" on the fit", fitted.joints))
        for joint in joints
        if stands_out(joint)
    ]
    small = [joint for joint in unseen.joints if joint.torque_deviation > ABOVE_NOISE * joint.noise_rms]
    unexplained = [
        (joint.varying_percent, f"{joint.joint} ({joint.kind})")
        for joint in small
        if not stands_out(joint) and joint.varying_percent > UNEXPLAINED
    ]
    impossible = impossible_values(equations, estimate, observations, fitted.extent)
    hidden = tuple(joint for joint in equations.joints if joint not in shown)
    scales, heaviness = (
        scales_against_file(equations, estimate, observations),
        _heaviness(equations, estimate, fitted.extent),
    )
    return Plausibility(impossible, hidden, _worst(efforts), scales, heaviness, _worst(errors), _worst(unexplained))


def _worst(found: Sequence[tuple[float, str]]) -> tuple[str, float] | None:
    value, name = max(found, default=(0.0, ""))
    return (name, value) if name else None


def impossible_values(
    equations: Equations,
    estimate: Estimate,
    observations: Observations,
    extent: MotionExtent,
    inertia: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[Impossible, ...]:
    """Return what is significantly negative and cannot be, the largest share of torque first.

    Args:
        equations: Model, base parameters and rows.
        estimate: The data's own estimate, without a prior.
        observations: Factors of the rows as they are, not whitened.
        extent: How far and how hard the joints moved.
        inertia: Result of ``inertia_at_postures``, for who judges many estimates of one motion; None: computed.
    """
    squares = squares_by_equation(equations, observations)
    found = [
        *_negative_parameters(equations, estimate, squares),
        *_negative_friction(equations, estimate, squares),
        *_indefinite_inertia(equations, estimate, squares, extent, inertia),
    ]
    return tuple(sorted(found, key=lambda one: -one.share))


def squares_by_equation(equations: Equations, observations: Observations) -> list[np.ndarray | None]:
    """Return the mean of ``[W y]^T [W y]`` over the rows of every equation (c_e + 1, c_e + 1); None without rows."""
    found: list[np.ndarray | None] = []
    for (kind, joint), columns in zip(equations.kinds_joints, equations.columns, strict=True):
        factors = [f for f in observations.factors if (f.kind, f.joint) == (kind, joint)]
        triangle, rows = merged_triangle(factors, columns)
        found.append(triangle.T @ triangle / rows if rows else None)
    return found


def _negative_parameters(
    equations: Equations, estimate: Estimate, squares: Sequence[np.ndarray | None]
) -> Iterable[Impossible]:
    values = dict(zip(estimate.columns, zip(estimate.values, estimate.sigma, strict=True), strict=True))
    for base in equations.base.base:
        if base.column not in values or not _must_be_positive(equations, base):
            continue
        value, sigma = (float(number) for number in values[base.column])
        if value < -SIGNIFICANT * sigma:
            share, joint = _largest_share(equations, squares, base.column, value)
            yield Impossible(base.name, joint, value, sigma, share)


def _must_be_positive(equations: Equations, base: BaseParameter) -> bool:
    """Return whether all that is regrouped into a base parameter is positive, and so is its sum."""
    of_name = {parameter.name: parameter for parameter in equations.model.parameters}
    return all(
        coefficient > 0 and (name in equations.model.nonnegative_friction or of_name[name].symbol in _POSITIVE)
        for name, coefficient in base.regrouping.items()
    )


def _largest_share(
    equations: Equations, squares: Sequence[np.ndarray | None], column: str, value: float
) -> tuple[float, str]:
    """Return the part of an equation's torque that a parameter stands for, where it is largest, and that joint."""
    shares = [(0.0, "")]
    for _, joint, columns, square in _with_squares(equations, squares):
        if column in columns and square[-1, -1] > 0:
            place = columns.index(column)
            shares.append((abs(value) * float(np.sqrt(square[place, place] / square[-1, -1])), joint))
    return max(shares)


def _with_squares(
    equations: Equations, squares: Sequence[np.ndarray | None]
) -> Iterable[tuple[str, str, tuple[str, ...], np.ndarray]]:
    """Yield torque kind, joint, columns and mean squares of every equation that has rows."""
    for (kind, joint), columns, square in zip(equations.kinds_joints, equations.columns, squares, strict=True):
        if square is not None:
            yield kind, joint, columns, square


def _negative_friction(
    equations: Equations, estimate: Estimate, squares: Sequence[np.ndarray | None]
) -> Iterable[Impossible]:
    """Yield joints whose friction drives instead of brakes: ``mean(qd tau_f) < 0``, over the recorded motion."""
    of_name = {parameter.name: parameter for parameter in equations.model.parameters}
    place = {name: k for k, name in enumerate(estimate.columns)}
    power, torque = dict[tuple[str, str], np.ndarray](), dict[tuple[str, str], list[float]]()
    # Friction of a coupled motor brakes two joints together: its power on one of them may have either sign.
    motor_of = _braking_together(equations.model)
    for kind, joint, columns, square in _with_squares(equations, squares):
        friction = [k for k, name in enumerate(columns) if name in place and of_name[name].friction]
        alone = [k for k in friction if (one := of_name[columns[k]]).joint == joint and one.effect != "coupling"]
        own, whose = friction if joint in motor_of else alone, (kind, motor_of.get(joint, joint))
        if not alone:
            continue
        # The velocity is the column of viscous friction; without one its sign will do.
        speed = next((k for k in alone if of_name[columns[k]].friction == "viscous"), alone[0])
        at = [place[columns[k]] for k in own]
        values = estimate.values[at]
        power.setdefault(whose, np.zeros(len(place)))[at] += square[speed, own]
        torque.setdefault(whose, []).append(values @ square[np.ix_(own, own)] @ values / max(square[-1, -1], 1e-300))
    for (kind, joint), slope in power.items():
        value, sigma = float(slope @ estimate.values), float(np.sqrt(slope @ estimate.covariance @ slope))
        if value < -SIGNIFICANT * sigma:
            share = float(np.sqrt(max(torque[kind, joint])))
            yield Impossible(f"friction of {joint} ({kind})", joint, value, sigma, share)


def _braking_together(model: Model) -> dict[str, str]:
    """Return by joint the motor, named by its own joint, whose curved or load-dependent friction brakes it too."""
    parts = (one for one in model.parameters if one.friction == "part")
    motors = {one.joint for one in parts if EFFECTS[one.effect].is_of_coupled_motors}
    pairs = [one for one in model.robot.gear_couplings if one.motor in motors]
    return {joint: one.motor for one in pairs for joint in (one.also_turns_with, one.motor)}


def inertia_columns(equations: Equations, postures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how the inertia matrix depends on the base parameters.

    Args:
        equations: Model, base parameters and rows.
        postures: Joint positions (n, P).

    Returns:
        Columns (P, k, k, c) with ``M[p, i, j] = columns[p, i, j] @ values``, values in the order of
        ``equations.names``, and the numbers of the k equations used, one for each joint whose torque is measured.
    """
    count = postures.shape[1]
    kind = equations.kinds_joints[0][0]
    used = np.array([e for e, (k, _) in enumerate(equations.kinds_joints) if k == kind])
    joints = len(used)
    one_by_one = np.eye(len(equations.joints))[:, equations.joint_index[used]]
    q = np.repeat(postures, joints + 1, axis=1)
    qdd = np.tile(np.hstack([np.zeros((len(equations.joints), 1)), one_by_one]), (1, count))
    compiled = equations.compiled(loaded=False)
    states = [np.zeros((one.shape[0], q.shape[1])) for one in equations.model.inputs[3:]]
    outputs = compiled.function(*(np.ascontiguousarray(signal) for signal in (q, np.zeros_like(q), qdd)), *states)
    place = {name: k for k, name in enumerate(equations.names)}
    found = np.zeros((count, joints, joints, len(equations.names)))
    for row, e in enumerate(used):
        torque = outputs[e].reshape(-1, count, joints + 1)
        change = torque[:, :, 1:] - torque[:, :, :1]
        found[:, row, :, [place[name] for name in compiled.columns[e]]] = change
    return found, used


def inertia_at_postures(equations: Equations, extent: MotionExtent) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ``inertia_columns`` at random postures within the motion; None if the model has no inertia matrix."""
    if equations.model.measured == "difference" or "inertia" not in equations.model.effects:
        return None
    size = (len(extent.lower), POSTURES)
    postures = np.random.default_rng(0).uniform(extent.lower[:, None], extent.upper[:, None], size)
    return inertia_columns(equations, postures)


def _indefinite_inertia(
    equations: Equations,
    estimate: Estimate,
    squares: Sequence[np.ndarray | None],
    extent: MotionExtent,
    inertia: tuple[np.ndarray, np.ndarray] | None,
) -> Iterable[Impossible]:
    """Yield the direction in which the inertia matrix is most negative, if it is so at a tenth of the postures.

    Rows and columns are scaled so that a diagonal element is the share of its joint's torque; whether the matrix is
    positive definite does not depend on it.
    """
    inertia = inertia or inertia_at_postures(equations, extent)
    if inertia is None:
        return
    columns, used = inertia
    own = equations.joint_index[used]
    torque = np.sqrt([0.0 if square is None else square[-1, -1] for square in (squares[e] for e in used)])
    scale = np.sqrt(np.divide(extent.acceleration_rms[own], torque, out=np.zeros_like(torque), where=torque > 0))
    place = [equations.names.index(name) for name in estimate.columns]
    matrices = columns @ estimate.full_values(equations.names) * np.outer(scale, scale)
    sizes, vectors = np.linalg.eigh((matrices + matrices.transpose(0, 2, 1)) / 2)
    worst = vectors[:, :, 0]
    # Of the products of two directions with the columns, matrix products are the quick ones.
    pairs = (worst * scale)[:, :, None] * (worst * scale)[:, None, :]
    slopes = (pairs.reshape(len(pairs), 1, -1) @ columns.reshape(len(pairs), -1, columns.shape[-1]))[:, 0, place]
    sigmas = np.sqrt(np.maximum(np.sum(slopes @ estimate.covariance * slopes, axis=1), 0.0))
    negative = sizes[:, 0] < -SIGNIFICANT * sigmas
    if negative.mean() < 0.1:
        return
    typical = np.flatnonzero(negative)[np.argsort(sizes[negative, 0])[negative.sum() // 2]]
    joint = equations.joints[own[int(np.argmax(np.abs(worst[typical])))]]
    text = f"inertia matrix at {negative.sum():,} of {POSTURES:,} postures"
    yield Impossible(text, joint, float(sizes[typical, 0]), float(sigmas[typical]), float(-sizes[typical, 0]))


def _heaviness(equations: Equations, estimate: Estimate, extent: MotionExtent) -> float | None:
    """Return the largest inertia about a revolute joint, in the middle of the motion, over the reach to the fifth."""
    robot = equations.model.robot
    reach = sum(float(np.linalg.norm(transform_from_placement(body.placement)[1])) for body in robot.bodies)
    if reach <= 0 or equations.model.measured == "difference":
        return None
    columns, used = inertia_columns(equations, ((extent.lower + extent.upper) / 2)[:, None])
    sizes = np.abs(np.diag(columns[0] @ estimate.full_values(equations.names)))
    turns = [robot.joint(equations.kinds_joints[e][1]).kind == "revolute" for e in used]
    return float(sizes[turns].max() / reach**5) if any(turns) else None


def scales_against_file(equations: Equations, estimate: Estimate, observations: Observations) -> tuple[Scale, ...]:
    """Return how the rigid-body torques of the estimate compare with those of the robot file's inertias.

    Args:
        equations: Model, base parameters and rows.
        estimate: The estimate.
        observations: Factors of the rows as they are.

    Returns:
        One for every equation whose torque is rigid-body torque by a tenth and more; empty if the file has no inertias.
    """
    robot = equations.model.robot
    if "inertias" not in robot.carries or "inertia" not in equations.model.effects:
        return ()
    own = dict(zip(estimate.columns, estimate.values, strict=True))
    inertial = {p.name for p in equations.model.parameters if p.effect == "inertia"}
    file = equations.base_values({name: value for name, value in robot.parameters.items() if name in inertial})
    found = []
    for kind, joint, columns, square in _with_squares(equations, squares_by_equation(equations, observations)):
        rigid = [k for k, name in enumerate(columns) if name in inertial]
        x = np.array([own.get(columns[k], 0.0) for k in rigid])
        y = np.array([file[columns[k]] for k in rigid])
        block = square[np.ix_(rigid, rigid)]
        both, mine, theirs = float(x @ block @ y), float(x @ block @ x), float(y @ block @ y)
        if theirs > 0 and mine >= _RIGID**2 * square[-1, -1]:
            found.append(Scale(kind, joint, both / theirs, both / float(np.sqrt(mine * theirs))))
    return tuple(found)
