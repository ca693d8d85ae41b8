"""Drive gains from recordings without and with a payload of known mass, by maximum likelihood in units of the current.

``i_j = (W_j x + W_Lj x_L) / g_j + friction_j + noise``: the weight of a known mass is the yardstick. The gains are
estimated with several laws of friction; what these disagree about, and what blocks of time disagree about, is in their
sigmas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from ..effects import EFFECTS
from ..errors import EstimateError
from ..estimate import ScaleFit, fit_scales, joint_deviations
from ..model import Model, build_model
from ..model.terms import payload_link
from ..observe import ResolvedPreparation, channel_of, equations_of, reduce_rows, resolve_preparation
from ..progress import Stage, no_stages
from ..recording import DriveGains, Recording, RecordingsLike, gains_of, load_recordings, with_gains
from ..recording.gains import ASSUMED_SIGMA
from ..robot import AnyRobot, Robot, load_robot
from ..verdict import Reason
from .gains_result import CHANGED, KNOWN, WEAK, FrictionModel, GainsEvidence, GainsFound, KnownLoad, judge_gains
from .inputs import (
    Labelled,
    arm_of,
    inertial_names,
    labels_of,
    measured_side,
    settings_of,
    sources_of,
    without_locked,
)
from .payload_body import COLUMNS, reach_of
from .settings import Settings, refuse_nonlinear

FRICTION = {
    "plain": (),
    "by load": ("Fg",),
    "with memory": ("Fd2", "Fd3"),
    "curved": ("Fvr",),
    "all of these": ("Fg", "Fd2", "Fd3", "Fvr"),
}
"""Laws of friction that are tried: effects beyond those of the model, without the side of the gears."""

BLOCKS = 12
"""Blocks of time of each recording, at least."""
LOADED = 0.05
"""The payload's weight loads a joint if its torque there is at least this part of that on the joint of most torque."""
EXCHANGED = 5.0
"""Sigmas by which a mass must act upwards to be refused."""
_SAMPLES = 200


def identify_gains(
    robot: AnyRobot,
    unloaded: RecordingsLike,
    loaded: RecordingsLike,
    mass: float | None = None,
    *,
    centre: Sequence[float] | None = None,
    settings: Settings | None = None,
    stage: Stage = no_stages,
) -> GainsFound:
    """Find the gains of an arm's drives from recordings without and with a payload of known mass.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        unloaded: Recordings without payload, or the paths of their logs.
        loaded: Recordings with it.
        mass: Its mass [kg]; None: that of the payload of the robot file that the loaded recordings name, of which all
            ten parameters count as known then.
        centre: Its centre of mass in the frame of the link that carries it [m]; None: not known.
        settings: Effects, gravity, held joints, preparation, threads; the defaults if not given.
        stage: Called with the stage name; returns a progress callback.

    Raises:
        EstimateError: If recordings are missing or of different kinds, no mass is known, or motors are coupled.

    Example:
        >>> from dataclasses import replace
        >>> hanging = steelyard.load_robot("scara_2r").with_gravity((0, -9.81, 0))
        >>> robot = replace(hanging, payloads={"brick": (0.02, 0, 0, 0.2, 0, 0.2, 0.9, 0.1, 0, 5.0)})
        >>> sin, cos = [[0.3, 0.2, 0.1], [0.5, 0.2, 0.3]], [[0.1, 0.2, 0.2], [0.2, 0.3, 0.1]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 8.0, ["joint_1", "joint_2"])
        >>> empty, loaded = (steelyard.Experiment(record_rate=100, payload=name) for name in (None, "brick"))
        >>> logs = [steelyard.recording_of(steelyard.simulate(robot, motion, one)) for one in (empty, loaded)]
        >>> steelyard.identify_gains(robot, *logs, mass=5.0).gains.values.round(1)
        array([1., 1.])
    """
    robot, settings = load_robot(robot), settings_of(settings)
    refuse_nonlinear(settings, "drive gains")
    arm = arm_of(robot, settings)
    given, carries = _recordings(robot, unloaded, loaded, settings)
    known = _known_parameters(arm, given, mass, centre)
    _refuse_far_centre(arm, given, known)
    side, nominal = _nominal_gains(arm, given, settings)
    resolved = resolve_preparation(settings.preparation, [one for _, one in given])
    model = build_model(arm, settings.effects, side, "paired", settings.sign_width, settings.friction)
    start = nominal or _unit_gains(arm)
    progress = stage("fitting")
    if others := _without_load(model):
        model = _with_load(model, _fit(others, given, start, resolved, known, settings.threads, None)[0])
    fits, models, loads = [], [], []
    gains, deviations = start, None
    for number, (name, effects) in enumerate(FRICTION.items()):
        larger = _with_friction(model, effects, fits[0] if fits else None)
        fit, by_mass, deviations = _fit(larger, given, gains, resolved, known, settings.threads, deviations)
        _refuse_exchanged(by_mass, given, carries)
        values = gains.values / fit.scales
        if not fits:
            gains = replace(gains, values=values)  # later fits begin with torques of the right size
            deviations = {group: one / fit.scales[start.joints.index(group[2])] for group, one in deviations.items()}
        fits.append(fit)
        loads.append(by_mass)
        sigma = np.sqrt(np.diag(fit.covariance))
        relative = fit.cross_validation / fits[0].cross_validation
        models.append(FrictionModel(name, larger.chosen_effects, values, sigma, relative))
        progress(number + 1, len(FRICTION))
    load = _known_load(known, loads, fits)
    return _combined(arm, given, carries, known, nominal, start, models, fits, model, load)


def _recordings(
    robot: Robot, unloaded: RecordingsLike, loaded: RecordingsLike, settings: Settings
) -> tuple[list[Labelled], list[bool]]:
    """Return all recordings with labels, without held joints, and which of them carry the payload."""
    without = load_recordings(robot, unloaded, "unloaded")
    carrying = load_recordings(robot, loaded, "loaded")
    for what, found in (("without", without), ("with", carrying)):
        if not found:
            raise EstimateError(
                f"no recording {what} payload is given; gains need recordings without and with a payload of known mass"
            )
    if named := [one.payload for one in without if one.payload]:
        raise EstimateError(
            f"a recording given as unloaded says that it carries payload '{named[0]}'; give it as loaded, or correct "
            "its set-up"
        )
    every = [*without, *(replace(one, payload=one.payload or "payload") for one in carrying)]
    labelled = zip(labels_of(every), every, strict=True)
    moving = [(label, without_locked(one, label, settings.lock)) for label, one in labelled]
    return moving, [False] * len(without) + [True] * len(carrying)


def _known_parameters(
    arm: Robot, given: Sequence[Labelled], mass: float | None, centre: Sequence[float] | None
) -> dict[str, float]:
    """Return the known parameters of the payload by column."""
    names = sorted({one.payload for _, one in given if one.payload})
    if mass is None:
        if len(names) != 1 or names[0] not in arm.payloads:
            raise EstimateError(
                "the mass of the payload is not given; give it with --mass, or name a payload of the robot file in the "
                "set-up of the loaded logs"
            )
        return dict(zip(COLUMNS, map(float, arm.payloads[names[0]]), strict=True))
    if not (np.isfinite(mass) and mass > 0):
        raise EstimateError(f"mass: got {mass:g} kg, allowed is a number above 0")
    if centre is None:
        return {"ML": float(mass)}
    if len(centre) != 3 or not np.isfinite(centre).all():
        raise EstimateError(f"centre: got {list(centre)}, allowed are three numbers x,y,z in metres")
    return {**{f"M{axis}L": mass * float(one) for axis, one in zip("XYZ", centre, strict=True)}, "ML": float(mass)}


def _refuse_far_centre(arm: Robot, given: Sequence[Labelled], known: Mapping[str, float]) -> None:
    """Refuse a payload whose centre is farther from its link than the arm reaches: most likely in millimetres."""
    if "MXL" not in known or not known["ML"] > 0:
        return
    link = payload_link(arm)
    reach = reach_of(arm, link, np.concatenate([one.q for _, one in given], axis=1))
    distance = float(np.linalg.norm([known[f"M{axis}L"] / known["ML"] for axis in "XYZ"]))
    if reach is not None and distance > reach:
        raise EstimateError(
            f"centre: got {distance:.4g} m from the origin of link '{link}', allowed is at most the reach of the arm, "
            f"{reach:.3g} m; give it in metres (--centre 0.3,0,0), in the frame of that link"
        )


def _nominal_gains(arm: Robot, given: Sequence[Labelled], settings: Settings) -> tuple[str, DriveGains | None]:
    """Return which torques are measured, and the gains that they have so far."""
    if np.abs(arm.motor_coupling() - np.eye(len(arm.actuated))).max(initial=0.0) > 0:
        raise EstimateError(
            f"motors of '{arm.name}' turn with two joints: their gains cannot be found joint by joint; give the gains "
            "of the data sheet"
        )
    side = settings.measured or measured_side(arm, [one for _, one in given])
    side = "motor" if side == "both" else side
    if side not in ("motor", "joint"):
        raise EstimateError(f"torque '{side}' has no gain of its own; choose motor or joint")
    channels = [channel_of(one, side, label) for label, one in given]
    if len({channel.kind for channel in channels}) > 1:
        kinds = ", ".join(sorted({channel.kind for channel in channels}))
        raise EstimateError(f"the recordings have torques of different kinds ({kinds}); give logs of one kind")
    return side, gains_of(arm, channels[0])


def _unit_gains(arm: Robot) -> DriveGains:
    """Return gains of 1 N m/A, for currents of which nothing is known: torques always have a gain."""
    count = len(arm.joint_names)
    return DriveGains("motor_current", arm.joint_names, np.ones(count), np.full((count, count), np.inf), "none")


def _without_load(model: Model) -> Model | None:
    """Return the model without effects in proportion to the load; None if it has none or their load is given."""
    own = model.dependent_effects
    if not own or model.friction.inertias:
        return None
    return replace(model, effects=tuple(effect for effect in model.effects if effect not in own))


def _with_load(model: Model, fit: ScaleFit) -> Model:
    """Return the model with the inertias of arm and payload that a fit found: the load of its gears."""
    inertial, pairs = inertial_names(model), zip(fit.columns, fit.values.tolist(), strict=True)
    return model.with_inertias({name: value for name, value in pairs if name in inertial})


def _with_friction(model: Model, effects: Sequence[str], plain_fit: ScaleFit | None) -> Model:
    """Return the model with further friction; its load is that of the inertias which the plain model found."""
    suffix = "l" if model.measured == "joint" else "m"
    own = {effect for effect in model.effects if effect not in model.joints_of}
    added = [f"{name}{suffix}" for name in effects if f"{name}{suffix}" not in own]
    if not added or plain_fit is None:
        return model
    if any(EFFECTS[name].needs_inertias for name in added) and not model.friction.inertias:
        model = _with_load(model, plain_fit)
    chosen = [name for name in model.chosen_effects if name.rstrip("0123456789") not in added]
    return build_model(model.robot, (*chosen, *added), model.measured, model.payload, model.sign_width, model.friction)


def _fit(
    model: Model,
    given: Sequence[Labelled],
    gains: DriveGains,
    resolved: ResolvedPreparation,
    known: Mapping[str, float],
    threads: int,
    deviations: Mapping[tuple[str, str, str], float] | None,
) -> tuple[ScaleFit, ScaleFit, dict[tuple[str, str, str], float]]:
    """Return the fit with all that is known of the payload, that with its mass alone, and the noise of all groups."""
    equations = equations_of(model)
    scaled = [(label, with_gains(one, gains)) for label, one in given]
    observations = reduce_rows(sources_of(scaled, equations, resolved), blocks=BLOCKS, threads=threads)
    noise = dict(deviations or joint_deviations(observations))
    missing = [name for name in known if name not in equations.names]
    if "ML" in missing:
        raise EstimateError("the payload's mass has no effect on the torques of this arm: gains cannot be found")
    weights = {group: 1 / one for group, one in noise.items()}
    shown = {name: value for name, value in known.items() if name not in missing}
    fit = fit_scales(observations, equations.names, gains.joints, shown, weights)
    if len(shown) == 1:
        return fit, fit, noise
    mass = {"ML": shown["ML"]}
    return fit, fit_scales(observations, equations.names, gains.joints, mass, weights), noise


def _refuse_exchanged(fit: ScaleFit, given: Sequence[Labelled], carries: Sequence[bool]) -> None:
    """Refuse recordings in which the mass, all else of the payload free, acts against the arm's own weight."""
    factor, sigma = fit.known_factor
    if factor >= -EXCHANGED * sigma:
        return
    pairs = [(label, own) for (label, _), own in zip(given, carries, strict=True)]
    without, loaded = (", ".join(label for label, own in pairs if own is side) for side in (False, True))
    raise EstimateError(
        f"the payload comes out with a negative mass ({factor:.3g} times that given, in units of recorded torques); "
        f"most likely recordings without ({without}) and with payload ({loaded}) are exchanged: give each as the "
        "other, or check the signs of torques"
    )


def _known_load(known: Mapping[str, float], by_mass: Sequence[ScaleFit], fits: Sequence[ScaleFit]) -> KnownLoad | None:
    """Return what the data say of all that is given beside the mass; None if nothing is.

    Args:
        known: The given parameters by column.
        by_mass: Fits with the mass alone, one for each law of friction.
        fits: Those with all that is given.
    """
    columns = by_mass[0].columns
    names = tuple(name for name in known if name != "ML" and name in columns)
    if not names:
        return None
    best = int(np.argmin([one.cross_validation for one in by_mass]))
    places = [[one.columns.index(name) for name in names] for one in by_mass]
    values = np.array([one.values[own] for one, own in zip(by_mass, places, strict=True)])
    spread = np.sum((values - values[best]) ** 2, axis=0) / max(len(by_mass) - 1, 1)
    sigma = np.sqrt(by_mass[best].value_sigma[places[best]] ** 2 + spread)
    least = min(one.cross_validation for one in fits)
    ratio = float(np.sqrt(least / by_mass[best].cross_validation))
    return KnownLoad(names, np.array([known[name] for name in names]), values[best], sigma, known["ML"], ratio)


def _combined(
    arm: Robot,
    given: Sequence[Labelled],
    carries: Sequence[bool],
    known: Mapping[str, float],
    nominal: DriveGains | None,
    start: DriveGains,
    models: Sequence[FrictionModel],
    fits: Sequence[ScaleFit],
    model: Model,
    load: KnownLoad | None,
) -> GainsFound:
    """Return the gains of the model that predicts left-out blocks best; what the others differ by is in the sigmas."""
    chosen = int(np.argmin([one.cross_validation for one in models]))
    best, fit = models[chosen], fits[chosen]
    away = np.log(np.array([one.gains for one in models]) / best.gains)
    spread = away.T @ away / (len(models) - 1)  # what they differ by, squared and averaged over the others
    changes = fit.sure_changes(CHANGED)
    covariance = fit.covariance + np.diag(changes**2)  # one gain for two that differ is neither of them
    blocks, by_models = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(spread))
    loaded = [one for (_, one), carried in zip(given, carries, strict=True) if carried]
    weight, sigma = _payload_weight(model, fits[0], loaded), np.hypot(blocks, by_models)
    kept = nominal is not None and nominal.is_known
    values, covariance = _with_nominal(best.gains, covariance + spread, nominal if kept else None)
    evidence = GainsEvidence(
        start.kind, start.joints, best.gains, sigma, nominal, weight, values * _peaks(given, model.measured),
        float(known["ML"]), arm, fit, load,
    )  # fmt: skip
    verdict = judge_gains(evidence, tuple(_reasons(start.joints, np.where(changes == 0, sigma, 0.0), weight, kept)))
    labels = tuple((label, carried) for (label, _), carried in zip(given, carries, strict=True))
    doubt = " (verdict poor)" if verdict.grade == "poor" else ""
    names = ", ".join(label for label, _ in labels)
    source = f"steelyard gains{doubt}, payload of {known['ML']:.4g} kg, recordings {names}"
    found = DriveGains(start.kind, start.joints, values, covariance, source)
    change = np.array([np.expm1(-fit.changes), np.exp(-fit.changes) * fit.change_sigma])
    return GainsFound(
        found, nominal, tuple(models), chosen, blocks, by_models, change, fit.blocks, weight, float(known["ML"]),
        tuple(known), model.payload_link, labels, verdict, arm,
    )  # fmt: skip


def _with_nominal(
    gains: np.ndarray, covariance: np.ndarray, nominal: DriveGains | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return gains and covariance; a gain that the data show no better than a published one is left as it was."""
    values, unknown = gains.copy(), np.sqrt(np.diag(covariance)) > WEAK
    if nominal is not None:
        values[unknown], both = nominal.values[unknown], np.ix_(unknown, unknown)
        covariance[unknown, :], covariance[:, unknown] = 0.0, 0.0
        covariance[both] = np.maximum(nominal.covariance[both], ASSUMED_SIGMA**2)
    return values, covariance


def _peaks(given: Sequence[Labelled], side: str) -> np.ndarray:
    """Return the largest torque or current of each joint (n,), less the thousandth part that may be spikes."""
    values = np.concatenate([channel_of(one, side, label).values for label, one in given], axis=1)
    return np.quantile(np.abs(values), 0.999, axis=1)


def _payload_weight(model: Model, fit: ScaleFit, loaded: Sequence[Recording]) -> np.ndarray:
    """Return the rms of the torques by which the weight of the payload loads each joint (n,)."""
    names = dict(zip(fit.columns, fit.values.tolist(), strict=True))
    values = np.array([names.get(one.name, 0.0) if one.effect == "payload" else 0.0 for one in model.parameters])
    q = np.concatenate([one.q[:, :: max(1, one.samples // _SAMPLES)] for one in loaded], axis=1)
    still = [np.zeros(value.shape) for value in model.inputs[1:]]
    torques = [np.array(ca.DM(model.regressor(column, *still))) @ values for column in q.T]
    return np.sqrt(np.mean(np.square(torques), axis=0))


def _reasons(joints: Sequence[str], sigma: np.ndarray, weight: np.ndarray, has_nominal: bool) -> Iterator[Reason]:
    for joint, one, torque in zip(joints, sigma, weight, strict=True):
        if one <= KNOWN:
            continue
        level = "known to" if one <= WEAK else "not identifiable: its sigma is"
        why = "" if torque > LOADED * weight.max() else ", as the payload's weight does not load it"
        kept = "; the gain given before is kept" if one > WEAK and has_nominal else ""
        remedy = "move it with the payload far from its axis, or faster" if why else "record longer, with more motion"
        yield Reason(f"the gain of joint '{joint}' is {level} {100 * one:.2g} %{why}{kept}", remedy, "gains")
