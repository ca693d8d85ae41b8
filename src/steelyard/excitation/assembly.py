"""Assembly of a design problem and its certifier from a model, limits, settings and prior information."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..errors import DesignError, nearest_match
from ..model import Model
from ..robot import Robot
from ..text import short_repr
from .certify.certificate import Certifier
from .certify.space_bounds import space_graph
from .certify.torque_graph import torque_graph
from .constraints import ConstraintBlock, TorqueBlock, joint_block, space_block, torque_block
from .cramer_rao import NoisyPositions
from .criteria import CRITERIA, criterion
from .family import FourierFamily, MotionFamily
from .information import LOADS, Information, Unknowns, unknowns
from .limits.design_limits import DesignLimits
from .objective import Goal, GoalAttainment, Objective, by_criterion
from .predicted_accuracy import Forecast, PositionNoise
from .problem import Problem
from .rows import KnownTorques
from .settings import DesignSettings, family_of

SIGN_PART = 0.015
"""Width of the smooth sign of friction, as a part of the smallest velocity limit."""

NOISE_PART = 0.02
"""Noise of a torque as a part of what its drive can give, where none is given."""

INSTANTS_A_HARMONIC, FEWEST_INSTANTS = 20, 80
"""Instants of the coarse grid for each harmonic, or for each move."""

LOADED = ", with payload"
MEAN_TORQUE = "mean_torque of "


@dataclass(frozen=True, eq=False)
class Known:
    """Prior information about the arm.

    Attributes:
        torques: Its torques on the limited side; None if nothing is known of them.
        values: Sizes of standard parameters by name; empty if nothing is known.
        earlier: Information of earlier recordings (c, c) by columns, with those columns; None if there are none.
        deviations: Noise of each equation in earlier recordings, at the rate of the experiment; None if unknown.
        has_payload: Whether the payload's own parameters are known, so that its torques are.
    """

    __repr__ = short_repr

    torques: KnownTorques | None
    values: Mapping[str, float]
    earlier: tuple[np.ndarray, tuple[str, ...]] | None = None
    deviations: np.ndarray | None = None
    has_payload: bool = False


@dataclass(frozen=True, eq=False)
class Assembled:
    """A problem with its certifier.

    Attributes:
        problem: The problem.
        certifier: Proves that limits are kept.
        unknowns: The parameters to be identified.
        notes: Assumptions.
        positions: Noise of the positions, if there is any.
    """

    problem: Problem
    certifier: Certifier
    unknowns: Unknowns
    notes: tuple[str, ...]
    positions: PositionNoise | None = None

    def forecast(self) -> Forecast:
        """Return the function that predicts the figures of motions at the recording's own samples."""
        return Forecast(self.unknowns, self.positions)


def assembled(model: Model, limits: DesignLimits, settings: DesignSettings, known: Known) -> Assembled:
    """Return the problem of a design.

    Args:
        model: The unknown effects and the measured torques; its sign need not be smooth.
        limits: The limits.
        settings: The settings.
        known: Prior information.

    Raises:
        DesignError: If the settings contradict each other.
    """
    robot = model.robot
    width = SIGN_PART * float(limits.motion.velocity.min())
    smooth = replace(model, sign_width=width)
    _check_friction(limits, known)
    deviations, notes = _deviations(smooth, limits, settings, known)
    chosen = unknowns(
        smooth, deviations, settings.rate, columns=settings.parameters or None, values=known.values or None
    )
    chosen = _with_earlier(chosen, known)
    family = family_of(settings, limits.motion.joints)
    blocks, torques = _blocks(robot, limits, known, smooth, width)
    shortest, longest = settings.durations
    time_scale = (1.0, longest / shortest)
    information = Information(chosen)
    positions = None
    if settings.position_noise:
        if criterion(settings.criterion).weighting == "none" and not settings.goals:
            raise DesignError(
                f"criterion '{settings.criterion}' does not weight rows by their noise, which position noise changes; "
                "choose d, a, e or condition_weighted"
            )
        if not known.values:
            raise DesignError("position noise counts by the torques it brings about, and no parameters are known")
        spread = np.full(len(limits.motion.joints), settings.position_noise)
        positions = PositionNoise(family, known.values, spread)
        information = NoisyPositions(chosen, known.values, family, spread, time_scale)
    problem = Problem(
        family, information, _objective(settings, chosen, torques, limits), tuple(blocks), torques, limits.motion,
        _grid(family), time_scale,
    )  # fmt: skip
    certifier = _certifier(robot, limits, settings, known, smooth)
    return Assembled(problem, certifier, chosen, tuple(notes), positions)


def _check_friction(limits: DesignLimits, known: Known) -> None:
    """Refuse joints whose Coulomb friction alone reaches their torque limit: at rest it acts in both directions."""
    if known.torques is None:
        return
    names, values = known.torques.model.names, known.torques.values
    sides = ("m", "l") if limits.torque_side == "motor" else ("l",)
    for row, body in enumerate(known.torques.model.robot.actuated):
        coulomb = [f"Fc{side}{body.number}" for side in sides]
        friction = sum(abs(float(values[names.index(name)])) for name in coulomb if name in names)
        if friction >= limits.torque[row]:
            raise DesignError(
                f"torque of {body.joint.name}: its Coulomb friction {friction:.4g} alone reaches the limit "
                f"{limits.torque[row]:.4g}; correct one of the two, by --limits or in the robot's file"
            )


def _grid(family: MotionFamily) -> int:
    waves = family.harmonics if isinstance(family, FourierFamily) else family.size / 2
    return max(FEWEST_INSTANTS, int(INSTANTS_A_HARMONIC * waves))


def _deviations(
    model: Model, limits: DesignLimits, settings: DesignSettings, known: Known
) -> tuple[np.ndarray, list[str]]:
    """Return the noise of each equation, and notes on assumptions."""
    count, joints = len(model.rows), len(limits.motion.joints)
    if settings.noise is not None:
        given = np.atleast_1d(np.asarray(settings.noise, dtype=float))
        if len(given) not in (1, joints, count):
            raise DesignError(
                f"noise has {len(given)} numbers; allowed is 1, one for each of the {joints} joints, or one for each "
                f"of the {count} equations"
            )
        return np.tile(given, count // len(given)) if len(given) < count else given, []
    if known.deviations is not None:
        return known.deviations, []
    rated = limits.torque if limits.rated_torque is None else limits.rated_torque
    if np.isfinite(rated).all():
        return np.tile(NOISE_PART * rated, count // joints), [
            f"no torque noise is given: {100 * NOISE_PART:g} % of the arm's torque limits are assumed, before any "
            "scale on them; sigmas scale with it"
        ]
    return np.ones(count), [
        "neither torque noise nor torque limits are given: a noise of 1 is assumed; sigmas scale with it"
    ]


def _with_earlier(chosen: Unknowns, known: Known) -> Unknowns:
    if known.earlier is None:
        return chosen
    matrix, columns = known.earlier
    spread = np.zeros((len(chosen.columns),) * 2)
    common = [name for name in chosen.columns if name in columns]
    ours, theirs = [chosen.columns.index(name) for name in common], [columns.index(name) for name in common]
    spread[np.ix_(ours, ours)] = matrix[np.ix_(theirs, theirs)]
    return replace(chosen, earlier=spread)


def _runs(model: Model, known: Known) -> list[tuple[bool, str]]:
    """Return the runs whose torques are known: loaded or not, and the ending of their names."""
    return [(loaded, LOADED if loaded else "") for loaded in LOADS[model.payload] if known.has_payload or not loaded]


def _blocks(
    robot: Robot, limits: DesignLimits, known: Known, model: Model, width: float
) -> tuple[list[ConstraintBlock], TorqueBlock | None]:
    joints = joint_block(limits.motion)
    blocks: list[ConstraintBlock] = [joints] if joints.names else []
    last = None
    if known.torques is not None:
        for loaded, ending in _runs(model, known):
            function = known.torques.function(loaded, width)
            block = torque_block(function, limits.torque, limits.motion.joints, ending)
            if block is not None:
                blocks.append(block)
                last = block
    space = space_block(robot, limits.rules)
    return (blocks if space is None else [*blocks, space]), last


def _certifier(robot: Robot, limits: DesignLimits, settings: DesignSettings, known: Known, model: Model) -> Certifier:
    torques = []
    if known.torques is not None and np.isfinite(limits.torque).any():
        for loaded, ending in _runs(model, known):
            graph = torque_graph(
                known.torques.model, known.torques.values, limits.torque_side, loaded=loaded,
                covariance=known.torques.covariance, sigmas=settings.sigmas,
            )  # fmt: skip
            torques.append((graph, ending))
    space = space_graph(robot, limits.rules) if limits.rules else None
    return Certifier(limits.motion, tuple(torques), limits.torque, space)


def _objective(
    settings: DesignSettings, chosen: Unknowns, torques: TorqueBlock | None, limits: DesignLimits
) -> Objective:
    if not settings.goals:
        return by_criterion(criterion(settings.criterion), chosen)
    return GoalAttainment(tuple(_goal(name, wanted, chosen, torques, limits) for name, wanted in settings.goals))


def _goal(name: str, wanted: float, chosen: Unknowns, torques: TorqueBlock | None, limits: DesignLimits) -> Goal:
    if not (np.isfinite(wanted) and wanted > 0):
        raise DesignError(f"goal '{name}': {wanted} is wanted; allowed is a number above 0")
    if not name.startswith(MEAN_TORQUE):
        if name == "d":
            raise DesignError("goal 'd': the log of a determinant has no natural size; choose another criterion")
        return Goal(name, wanted, by_criterion(criterion(name), chosen))
    joint = name.removeprefix(MEAN_TORQUE)
    if joint not in limits.motion.joints:
        allowed = [*CRITERIA, *(MEAN_TORQUE + known for known in limits.motion.joints)]
        raise DesignError(f"unknown goal '{name}'; allowed: {', '.join(allowed)}{nearest_match(name, allowed)}")
    row = limits.motion.joints.index(joint)
    if torques is None or not np.isfinite(limits.torque[row]):
        raise DesignError(f"goal '{name}' needs that joint's torques and their limit; give both, or leave the goal out")
    return Goal(name, wanted, None, row, float(limits.torque[row]))
