"""Figures of an identified arm: torques on unseen motion, residuals, friction, parameters, spectra.

They are drawn from the recordings again, block by block and thinned: an :class:`Identification` knows its rows, and a
log of any length takes no more memory than a short one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate
from ..judge import RunCollector, filtered_torques, predictor, residuals_of, unit_of
from ..observe import PreparedBlock, RowSource, raw_samples
from ..plots import (
    Chart,
    EvenSample,
    FrictionCurve,
    JointSeries,
    Thinned,
    friction_plot,
    histogram_plot,
    interval_plot,
    series_plot,
    signal_plot,
)
from ..signals import evaluation_filter

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .result import Identification

OUTLIERS, OUTLYING = 3, 4.0
"""Errors of a joint that get a marker: at most so many, each this many times the root mean square."""

SIGNALS = {"velocity": "rad/s", "acceleration": "rad/s²", "position": "rad", "load": "N m"}
_LINES: tuple[str, ...] = ("as recorded", "measured", "predicted", "error")
_MOTION: tuple[str, ...] = ("position", "velocity", "acceleration", "load")
_SAMPLE = 4000
"""Rows of an equation whose residuals are drawn."""
_SPECTRUM = 2048
"""Samples of a spectrum, of which some are averaged."""


@dataclass(frozen=True, eq=False)
class UnseenMotion:
    """What unseen recordings show, one after the other on one axis of time.

    Attributes:
        joints: Lines of every equation: the torque as recorded; measured, predicted and error torque through the
            evaluation filter. Points: the largest errors while the joint moves, as they are judged.
        time: Times (f,) [s] of some positions.
        q: Positions of the actuated joints then (n, f).
    """

    joints: tuple[JointSeries, ...]
    time: np.ndarray
    q: np.ndarray


def unseen_motion(found: Identification) -> UnseenMotion:
    """Return measured and predicted torques on unseen motion through the evaluation filter, as they were judged."""
    start = None
    if found.held_out and len(found.unseen) == len(found.sources) == 1:  # times are those of the whole recording
        start = float(next(iter(raw_samples(found.sources[0]))).time[0])
    return motion_of(found.unseen, found.essential, found.unseen_error.cutoff, start)


def motion_of(
    sources: Sequence[RowSource], estimate: Estimate, cutoff: float, start: float | None = None
) -> UnseenMotion:
    """Return measured and predicted torques of recordings through an evaluation filter.

    Args:
        sources: Rows of the recordings.
        estimate: The parameters.
        cutoff: Cut-off of the filter [Hz].
        start: Stamp that counts as time 0 [s]; the first sample of each recording if not given.

    Raises:
        EstimateError: If there are no recordings: a result that was read from its files has none.
    """
    equations = _sources(sources)[0].equations
    count = len(equations.kinds_joints)
    lines, poses, shift, last = Thinned((1 + len(_LINES)) * count), EvenSample(), 0.0, 0.0
    for source in sources:
        first: list[float] = []

        def see(block: PreparedBlock, first: list[float] = first, shift: float = shift) -> None:
            if not first:
                first.append(float(block.time[0]) if start is None else start)
            poses.add(np.vstack([block.time - first[0] + shift, block.q]))

        low, segment = evaluation_filter(source.resolved.rate, cutoff), 0 if shift == 0 else -1
        for block in filtered_torques(source, estimate, low, see):
            time = block.time - first[0] + shift
            if block.segment != segment:
                lines.break_lines(float(time[0]))
            segment, last = block.segment, float(time[-1])
            error = block.measured - block.predicted
            judged = np.where(block.moving, error, 0.0)
            lines.add(time, np.concatenate([block.raw, block.measured, block.predicted, error, judged]))
        shift = last + 1.0
    drawn, sampled = lines.lines(), poses.values()
    several = len({kind for kind, _ in equations.kinds_joints}) > 1
    joints = []
    for e, (kind, joint) in enumerate(equations.kinds_joints):
        *seen, judged = drawn[e::count]
        named = dict(zip(_LINES, seen, strict=True))
        title = f"{joint} ({kind})" if several else joint
        joints.append(JointSeries(title, unit_of(equations, joint), named, {"largest errors": _peaks(*judged)}))
    return UnseenMotion(tuple(joints), sampled[0], sampled[1:])


def _peaks(time: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest errors that stand out, apart from each other by a fiftieth of the time."""
    size = np.abs(np.nan_to_num(error))
    least, apart = OUTLYING * float(np.sqrt(np.mean(size**2))), (time[-1] - time[0]) / 50 if len(time) else 0.0
    picked: list[int] = []
    for k in np.argsort(size)[::-1].tolist():
        if size[k] < least or len(picked) == OUTLIERS:
            break
        if all(abs(time[k] - time[other]) > apart for other in picked):
            picked.append(k)
    return time[picked], error[picked]


def _sources(sources: Sequence[RowSource]) -> Sequence[RowSource]:
    if not sources:
        raise EstimateError("this result holds no recordings to draw; identify again in this session")
    return sources


@dataclass(frozen=True, eq=False)
class ResidualSample:
    """Decimated residuals of one equation over all recordings that were fitted.

    Attributes:
        title: Name of the joint, with the torque kind if there are several.
        unit: ``N m`` or ``N``.
        prismatic: Whether the joint slides.
        residual: Residuals (n,).
        signals: Position, velocity, acceleration and load of the rows, by name.
        friction: Friction and offsets of the fitted model (n,).
        whitened: Whitened residuals, in their own deviations (n,).
    """

    title: str
    unit: str
    prismatic: bool
    residual: np.ndarray
    signals: Mapping[str, np.ndarray]
    friction: np.ndarray
    whitened: np.ndarray


def residual_samples(found: Identification) -> tuple[ResidualSample, ...]:
    """Return the residuals of every equation, of long recordings those of pieces spread evenly over them."""
    equations, estimate = found.equations, found.essential
    resistive = [_friction_values(found, columns) for columns in equations.columns]
    collectors = [RunCollector(_SAMPLE) for _ in equations.kinds_joints]
    for source in _sources(found.sources):
        for run in residuals_of(source, estimate, found.fit.noise):
            e = run.run.equation
            joint, block, places = int(equations.joint_index[e]), run.run.block, run.run.places
            motion = [signal[joint, places] for signal in (block.q, block.qd, block.qdd)]
            friction = run.run.rows[:, :-1] @ resistive[e]
            white = np.full(len(run.residual), np.nan) if run.whitened is None else run.whitened
            columns = np.array([run.residual, *motion, run.model, friction, white])
            collectors[e].add(columns, run.run.starts)
    several = len({kind for kind, _ in equations.kinds_joints}) > 1
    samples = []
    for (kind, joint), collector in zip(equations.kinds_joints, collectors, strict=True):
        rows = np.concatenate(collector.runs(), axis=1)
        prismatic = equations.model.robot.joint(joint).kind == "prismatic"
        signals = dict(zip(_MOTION, rows[1:5], strict=True))
        title = f"{joint} ({kind})" if several else joint
        samples.append(ResidualSample(title, unit_of(equations, joint), prismatic, rows[0], signals, rows[5], rows[6]))
    return tuple(samples)


def _friction_values(found: Identification, columns: Sequence[str]) -> np.ndarray:
    """Return the values of the columns that are friction or an offset, 0 for all others."""
    parameters = {one.name: one for one in found.equations.model.parameters}
    known = dict(zip(found.essential.columns, found.essential.values, strict=True))
    return np.array([known.get(c, 0.0) if _is_friction(parameters[c]) else 0.0 for c in columns])


def _is_friction(parameter: object) -> bool:
    return bool(getattr(parameter, "friction", "")) or str(getattr(parameter, "symbol", "")).startswith("off")


def friction_curves(found: Identification, samples: Sequence[ResidualSample]) -> dict[str, FrictionCurve]:
    """Return friction against speed of every equation whose model has some."""
    laws = _laws(found, [one.signals["velocity"] for one in samples])
    return {
        one.title: FrictionCurve(
            one.signals["velocity"], one.residual + one.friction, one.friction, one.unit,
            "m/s" if one.prismatic else "rad/s", law,
        )
        for one, law in zip(samples, laws, strict=True)
        if np.any(one.friction)
    }  # fmt: skip


def _laws(found: Identification, speeds: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """Return speeds and friction by the model for every equation; None where it depends on more than the own speed.

    Rows went through the decimation filter, which rounds the step of dry friction: the law itself is computed here.
    """
    equations = found.equations
    torque, count = predictor(equations, loaded=False), len(equations.joints)
    values = _friction_values(found, equations.names)
    found_laws: list[tuple[np.ndarray, np.ndarray] | None] = []
    for e, (joint, seen) in enumerate(zip(equations.joint_index.tolist(), speeds, strict=True)):
        about_zero = max(equations.model.sign_width, 1e-9 * float(np.ptp(seen))) * np.linspace(-4, 4, 41)
        grid = np.unique(np.concatenate([np.linspace(seen.min(), seen.max(), 201), about_zero]))
        grid = grid[(grid >= seen.min()) & (grid <= seen.max())]
        at_rest, other = np.zeros((count, len(grid))), np.full((count, len(grid)), 0.7)
        laws = []
        for q, qd in ((at_rest, at_rest.copy()), (other, other.copy())):
            qd[joint] = grid
            # Friction with a state as after long motion in one direction, at the reference temperature.
            steady = {"memory": np.sign(qd), "temperature": np.zeros_like(qd)}
            states = [
                np.tile(steady[name], (one.shape[0] // count, 1))
                for name, one in zip(equations.model.further_inputs, equations.model.inputs[3:], strict=True)
            ]
            laws.append(torque(q, qd, at_rest, *states, values)[0][e])
        is_own = np.allclose(*laws, rtol=1e-9, atol=1e-12)
        found_laws.append((grid, laws[0]) if is_own else None)
    return found_laws


def plot_torques(self: Identification) -> go.Figure:
    """Return measured, predicted and error torque of every joint on unseen motion; zoom is linked.

    Example:
        >>> figure = steelyard.identify("scara_2r", "log.npz").plot_torques()
        >>> figure.layout.yaxis.title.text
        'joint_1<br>[N m]'
    """
    return series_plot(unseen_motion(self).joints).figure()


def plot_residuals(self: Identification, against: str = "") -> go.Figure:
    """Return the distribution of the residuals, or the residuals against a signal.

    Args:
        self: The identified arm.
        against: ``velocity``, ``acceleration``, ``position`` or ``load``; empty: a histogram with the Gaussian.

    Example:
        >>> figure = steelyard.identify("scara_2r", "log.npz").plot_residuals("velocity")
        >>> figure.layout.xaxis.title.text
        'velocity [rad/s]'
    """
    samples = residual_samples(self)
    if not against:
        return histogram_plot({one.title: one.residual for one in samples}).figure()
    return residuals_against(samples, against).figure()


def residuals_against(samples: Sequence[ResidualSample], signal: str) -> Chart:
    """Return the residuals of every joint against one of the signals beside them.

    Raises:
        EstimateError: If there is no such signal.
    """
    if signal not in SIGNALS:
        raise EstimateError(f"residuals against '{signal}': allowed are {', '.join(SIGNALS)}")
    sliding = all(one.prismatic for one in samples)
    unit = SIGNALS[signal].replace("rad", "m").replace("N m", "N") if sliding else SIGNALS[signal]
    return signal_plot(signal, unit, {one.title: (one.signals[signal], one.residual, one.unit) for one in samples})


def plot_parameters(self: Identification) -> go.Figure:
    """Return the essential parameters, each over its sigma's size: value and 95 % interval relative to the value.

    Example:
        >>> figure = steelyard.identify("scara_2r", "log.npz").plot_parameters()
        >>> figure.layout.xaxis.title.text
        '95 % interval [% of the value]'
    """
    estimate, names = self.essential, self.equations.base.name_of
    half = 100 * estimate.half_width() / np.maximum(np.abs(estimate.values), 1e-300)
    order = np.argsort(half)[::-1]
    shown = np.minimum(half[order], 200.0)  # an interval twice its value says no more than that
    return interval_plot(
        [names[estimate.columns[k]] for k in order], {"95 % interval": (np.zeros(len(order)), shown)},
        "95 % interval [% of the value]",
    ).figure()  # fmt: skip


def plot_friction(self: Identification) -> go.Figure:
    """Return friction against speed for every joint: the measured cloud and the fitted law.

    Raises:
        EstimateError: If the model has no friction.

    Example:
        >>> figure = steelyard.identify("scara_2r", "log.npz").plot_friction()
        >>> figure.layout.yaxis.title.text
        'friction [N m]'
    """
    curves = friction_curves(self, residual_samples(self))
    if not curves:
        raise EstimateError("the model has no friction to draw; add effects such as 'Fvm' and 'Fcm'")
    return friction_plot(curves).figure()


def to_html(self: Identification, provenance: Mapping[str, str] | None = None) -> str:
    """Return the report as one HTML document, as run folders have it.

    Args:
        self: The identified arm.
        provenance: Where it comes from, texts by name.

    Example:
        >>> steelyard.identify("scara_2r", "log.npz").to_html()[:15]
        '<!doctype html>'
    """
    from ..report import page_html
    from .report import identification_page  # loaded when used: most identifications are not printed

    return page_html(identification_page(self, provenance or {}))


def torque_spectra(found: Identification) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return frequencies (f,) [Hz] and the amplitude density of every measured torque over its first minutes."""
    source, taken, count = _sources(found.sources)[0], [], 0
    for block in raw_samples(source):
        if block.starts and count >= _SPECTRUM:  # one segment: a gap is no step of the torque
            break
        taken, count = ([block.y], block.y.shape[1]) if block.starts else ([*taken, block.y], count + block.y.shape[1])
        if count >= 32 * _SPECTRUM:
            break
    torque = np.nan_to_num(np.concatenate(taken, axis=1))
    size = min(_SPECTRUM, torque.shape[1])
    window, step = np.hanning(size), max(1, size // 2)
    parts = [torque[:, start : start + size] for start in range(0, torque.shape[1] - size + 1, step)]
    power = [np.abs(np.fft.rfft(window * (part - part.mean(axis=1, keepdims=True)))) ** 2 for part in parts]
    density = np.sqrt(2 / (source.resolved.rate * np.sum(window**2)) * np.mean(power, axis=0))
    names = [joint for _, joint in found.equations.kinds_joints]
    return np.fft.rfftfreq(size, 1 / source.resolved.rate), dict(zip(names, density, strict=True))
