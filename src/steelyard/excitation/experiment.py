"""Design of an experiment in one call, and prior information from a robot's description or an earlier run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import NoneType

import numpy as np

from ..effects import EFFECTS
from ..errors import DesignError, require_type
from ..identification import RunLike, SavedRun, load_run
from ..model import Model, base_parameters, build_model, refuse_history
from ..robot import AnyRobot, load_robot
from ..simulation.plant import payload_of, payload_values, plant_model, true_values
from .assembly import Known
from .generations import SearchCallback, no_progress
from .limits.design_limits import DesignLimits, design_limits
from .motion_design import Design, design_motion
from .rows import KnownTorques, known_torques
from .settings import DesignSettings
from .space.self_collision import FloorHeight


def known_of(model: Model, limits: DesignLimits, payload: str | None = None) -> tuple[Known, tuple[str, ...]]:
    """Return prior information from the robot's description, and notes.

    Args:
        model: The unknown effects and the measured torques.
        limits: The limits, whose torque side counts.
        payload: Name of a payload that the robot knows; its only one by default.
    """
    robot = model.robot
    carried = None
    if model.payload != "none":
        carried = (
            next(iter(robot.payloads.values()), None) if payload is None else payload_of(robot, payload, DesignError)
        )
    torques = known_torques(robot, limits.torque_side, carried)
    notes = []
    if torques is None and np.isfinite(limits.torque).any():
        notes.append("the robot's inertias are not known: torque limits could not be looked at")
    if model.payload != "none" and carried is None:
        notes.append("the payload is not known: torque limits are kept for the arm without it")
    values = {} if torques is None else {**true_values(plant_model(robot, 0.0)), **payload_values(carried)}
    return Known(torques, values, has_payload=carried is not None), tuple(notes)


def known_after(known: Known, run: SavedRun, model: Model, limits: DesignLimits, rate: float) -> Known:
    """Return prior information after a run: its estimate, its information and its noise.

    The run's parameters stand for those of the description, with their covariance where the same side's torques are
    limited as were measured. Its information is the inverse of its covariance: what is recorded next adds to it.

    Raises:
        DesignError: If the run is of another model.
    """
    estimate = run.estimate
    columns = [parameter.column for parameter in base_parameters(model).base]
    strange = [name for name in estimate.columns if name not in columns]
    if strange:
        raise DesignError(
            f"the run '{run.folder}' knows {', '.join(strange[:4])}, which this model has not; design with the run's "
            "robot, --torque, --payload and --effects"
        )
    values = dict(zip(estimate.columns, (float(value) for value in estimate.values), strict=True))
    information = np.linalg.inv(estimate.covariance)
    torques = known.torques
    if model.measured == limits.torque_side:
        torques = _torques_of(estimate.columns, estimate.values, estimate.covariance, model)
    return replace(
        known, torques=torques, values=values, earlier=(information, estimate.columns),
        deviations=_deviations(run, model, rate),
        has_payload=known.has_payload if torques is known.torques else model.payload != "none",
    )  # fmt: skip


def _torques_of(columns: tuple[str, ...], values: np.ndarray, covariance: np.ndarray, model: Model) -> KnownTorques:
    """Return torques by base parameters: the eliminated standard parameters count as zero.

    Balancers whose scale is known are no unknowns of the model; the drives carry their torques all the same.
    """
    exact = replace(model, sign_width=0.0)
    if model.known_balancers:
        effects = tuple(name for name in EFFECTS if name in (*model.effects, "balancer"))
        joints_of = {name: numbers for name, numbers in model.joints_of.items() if name != "balancer"}
        exact = replace(exact, effects=effects, joints_of=joints_of)
    places = [exact.names.index(name) for name in columns]
    scales = [model.robot.values[name] if name.startswith("Sb") else 0.0 for name in exact.names]
    chi, spread = np.array(scales), np.zeros((len(exact.names),) * 2)
    chi[places] = values
    spread[np.ix_(places, places)] = covariance
    return KnownTorques(exact, chi, spread)


def _deviations(run: SavedRun, model: Model, rate: float) -> np.ndarray | None:
    """Return the noise of independent samples at a rate that carry as much information as the run's rows.

    Rows are samples behind the decimator, which is wider than the rate it leaves: neighbours share some noise, and
    the noise before it follows from its gain, not from the number of samples for a row.
    """
    rows = {(entry["kind"], entry["joint"]): entry["deviations"] for entry in run.content.get("noise") or ()}
    preparation = run.content.get("preparation") or {}
    if "noise_gain" not in preparation or any(row not in rows for row in model.rows):
        return None
    each = np.array([np.sqrt(np.mean(np.square(list(rows[row].values())))) for row in model.rows])
    widening = float(np.median(run.estimate.widening))
    return each * widening * float(np.sqrt(rate / preparation["rate"] / preparation["noise_gain"]))


def design(
    robot: AnyRobot,
    settings: DesignSettings | None = None,
    *,
    torque: str | None = None,
    payload: str = "none",
    effects: Iterable[str] | None = None,
    limits: DesignLimits | str | os.PathLike[str] | None = None,
    carries: str | None = None,
    after: RunLike | None = None,
    start: Sequence[float] | None = None,
    floor: FloorHeight = None,
    position_scale: float | None = None,
    callback: SearchCallback = no_progress,
) -> Design:
    """Design the motion that makes an arm's parameters most certain, within limits that hold at every instant.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        settings: Settings of the design; a Fourier series of 20 s, D-optimal, by default.
        torque: Measured torques, as in :func:`~steelyard.model.build_model`.
        payload: ``none``, ``loaded`` or ``paired``.
        effects: Effects that are unknown; the robot's own by default.
        limits: Limits, or the path of a limits file; the robot's own limits by default.
        carries: Name of the payload, of those the robot knows.
        after: An earlier run, or its folder: its parameters, noise and information are the prior.
        start: Posture (n,) to start from and to return to [rad or m].
        floor: Height of the floor against gravity [m], or ``none``, as in :func:`~steelyard.excitation.design_limits`.
        position_scale: Part of each position range that may be used, as there.
        callback: Called with the progress of the search.

    Raises:
        DesignError: If the settings contradict each other, or no motion keeps the limits.

    Example:
        >>> settings = steelyard.DesignSettings(duration=5.0, harmonics=2, noise=(1.0, 0.2), starts=1)
        >>> motion = steelyard.design("scara_2r", settings, floor="none")
        >>> motion.certificate.holds, motion.trajectory.duration
        (True, 5.0)
    """
    robot = load_robot(robot)
    require_type(settings, (DesignSettings, NoneType), "settings", "DesignSettings(...) or None", DesignError)
    settings = settings or DesignSettings()
    model = build_model(robot, effects, torque, payload)
    refuse_history(model, "the design of a motion")
    if not isinstance(limits, DesignLimits):
        path = None if limits is None else Path(limits)
        limits = design_limits(robot, path, floor=floor, position_scale=position_scale)
    elif floor is not None or position_scale is not None:
        raise DesignError("floor and position_scale are part of limits that are given; give them to design_limits")
    known, notes = known_of(model, limits, carries)
    if after is not None:
        known = known_after(known, load_run(after), model, limits, settings.rate)
    return design_motion(model, limits, settings, known, start=start, callback=callback, notes=notes)
