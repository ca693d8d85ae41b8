"""Repeatability: each recording fitted alone from its own factors, compared with all recordings together.

A part of the data gives an estimate ``x_r`` with covariance ``C_r``, all of them together ``x`` with C. As x is the
best combination, ``cov(x_r - x) = C_r - C``, so that ``z = (x_r - x) / sqrt(diag(C_r - C))`` has variance 1 if the
recordings are of one arm and the sigmas are right. Another temperature, payload or noise than assumed makes it larger.

The sigmas are those of noise within a recording: residuals of all recordings together already contain what they
disagree about, and would hide it. Where recordings disagree, a payload, a torque gain and other friction are tried as
the cause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..errors import EstimateError
from ..estimate import Estimate, NoiseGroup, group_of, weighted, with_correlated_noise
from ..observe import Equations, Factor, Observations, RowSource, merged_triangle
from ..verdict import first_named
from .reduction import scaled_least_squares

WEAKEST = 10.0
"""A column is compared in a recording whose own sigma is at most so many times that of all recordings."""

LARGEST_SPREAD = 4.0
"""Recordings whose estimates differ by more than so many of their sigmas, in the root mean square, disagree. Up to
there they do so only if a payload, a torque gain or friction explains the difference."""

SUSPECT_SPREAD, SUSPECT_SCORE = 2.0, 8.0
"""Spread, or score of a single column, from which a cause is looked for; found, it counts as disagreement too."""

EXPLAINED = 0.75
"""A cause is named if it explains at least this share of what recordings disagree about."""

REVERSED = -0.5
"""A torque gain below this is a reversed sign."""

# A cause of one number is taken before one of ten that explains as much but for a few per cent.
_COST_OF_A_NUMBER = 0.003
# Directions that a recording does not excite get sigmas so large that no column they touch is compared.
_NOT_EXCITED = 1e-10
# Where a recording has all but this part of the information there is nothing left to compare it with.
_LEAST_OTHERS = 1e-6
_DIFFERENT = 4.0


@dataclass(frozen=True)
class Repeatability:
    """How far recordings agree.

    Attributes:
        spread: ``sqrt(mean z^2)`` over columns and recordings: 1 is what the sigmas predict.
        recordings: The same for each recording, by label; those without a comparable column are left out.
        compared: How many columns of each recording were compared, by label.
        worst_column: Column with the largest ``|z|``.
        worst_recording: Recording of that z.
        worst_z: That z, with its sign.
        different: Columns with ``|z|`` above 4 in each recording, the largest first, by label.
    """

    spread: float
    recordings: Mapping[str, float]
    compared: Mapping[str, int]
    worst_column: str
    worst_recording: str
    worst_z: float
    different: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Disagreement:
    """Recordings that are not of one and the same arm.

    Attributes:
        recording: Label of the recording that differs.
        cause: ``payload``, ``gain of joint 'X'``, ``friction of joint 'X'``, either ``of all joints``, or empty if none
            explains the difference.
        text: The finding as a sentence.
        remedy: What to do about it.
        columns: Columns that differ by more than 4 sigmas in that recording, the largest difference first.
        explained: Share of the difference that the cause explains.
        gain: Torques of that recording over those of the others, if a gain is the cause; else 1.
        carrying: Recordings that carry the payload, if one is the cause.
        numbers: How many numbers the cause has.
    """

    recording: str
    cause: str
    text: str
    remedy: str
    columns: tuple[str, ...]
    explained: float
    gain: float = 1.0
    carrying: tuple[str, ...] = ()
    numbers: int = 1


def recordings_agree(
    observations: Observations, sources: Sequence[RowSource], columns: Sequence[str]
) -> Repeatability | None:
    """Compare each recording's own estimate with that of all, with the noise that each recording alone shows.

    Args:
        observations: Factors of the rows as measured.
        sources: The rows of every recording.
        columns: The parameters.
    """
    if len(sources) < 2:
        return None
    plain = weighted(observations, columns)
    gains = {source.label: _own_gain(observations, source, plain.columns) for source in sources}
    return repeatability(observations, plain, plain.weights, gains)


def _own_gain(observations: Observations, source: RowSource, columns: Sequence[str]) -> np.ndarray:
    """Return by how much the noise of one recording alone widens its variances (c,), NaN where it is not known."""
    factors = tuple(factor for factor in observations.factors if factor.recording == source.label)
    gain = np.full(len(columns), np.nan)
    try:
        own = replace(observations, factors=factors)
        alone = weighted(own, columns)
        wide = with_correlated_noise([source], alone, own).estimate
    except EstimateError:  # too short to be fitted alone
        return gain
    gain[[columns.index(name) for name in alone.columns]] = (wide.sigma / alone.sigma) ** 2
    return gain


def repeatability(
    whitened: Observations,
    estimate: Estimate,
    weights: Mapping[NoiseGroup, float],
    gains: Mapping[str, np.ndarray] | None = None,
) -> Repeatability | None:
    """Compare each recording's own estimate with that of all recordings.

    A recording is compared in the columns that it determines by itself: those it does not excite, or only together
    with others (the payload and the last links of a loaded recording), have infinite sigmas there and drop out by
    themselves.

    Args:
        whitened: Factors of the rows that gave the estimate.
        estimate: The estimate of all recordings.
        weights: Weight of every noise group, one over the deviation of its noise, as in the estimate.
        gains: By how much correlated noise widens the variance of every column (c,) in each recording, by label, NaN
            where not known; by default what the covariance of the estimate has beyond that of white noise.

    Returns:
        The comparison; None if there are fewer than two recordings that can be compared.
    """
    # A deviation of the bare system is 1; the gain turns it into the sigma that is reported.
    bare = np.diag(estimate.system.inverse)
    if gains is None:
        gains = dict.fromkeys((info.label for info in whitened.recordings), np.diag(estimate.covariance) / bare)
    alone = {info.label: _alone(whitened, estimate, weights, info.label) for info in whitened.recordings}
    scores = {label: _scores(estimate, bare, alone, gains, label) for label in alone}
    known = {label: z for label, z in scores.items() if np.isfinite(z).any()}
    if len(whitened.recordings) < 2 or not known:
        return None
    label, column = max(
        ((label, int(np.nanargmax(np.abs(z)))) for label, z in known.items()), key=lambda at: abs(known[at[0]][at[1]])
    )
    spreads = {label: _root_mean_square(z) for label, z in known.items()}
    compared = {label: int(np.isfinite(z).sum()) for label, z in known.items()}
    different: dict[str, tuple[str, ...]] = {}
    for name, z in known.items():
        size = np.nan_to_num(np.abs(z))
        different[name] = tuple(estimate.columns[int(k)] for k in np.argsort(-size) if size[k] > _DIFFERENT)
    return Repeatability(
        _root_mean_square(np.concatenate(list(known.values()))), MappingProxyType(spreads), MappingProxyType(compared),
        estimate.columns[column], label, float(known[label][column]), MappingProxyType(different),
    )  # fmt: skip


def _scores(
    estimate: Estimate,
    bare: np.ndarray,
    alone: Mapping[str, tuple[np.ndarray, np.ndarray]],
    gains: Mapping[str, np.ndarray],
    label: str,
) -> np.ndarray:
    """Return z of every column (c,), NaN where the recording is not compared."""
    values, variance = alone[label]
    beyond = variance - bare
    compared = (variance <= WEAKEST**2 * bare) & (beyond > _LEAST_OTHERS * bare) & np.isfinite(gains[label])
    # x_r - x is x_r - x_others in part: the noise of the others counts as much as the recording has of the information.
    share = bare / variance
    gain = (1 - share) * gains[label] + share * _gain_of_others(alone, gains, label)
    z = np.full(len(bare), np.nan)
    z[compared] = (values - estimate.values)[compared] / np.sqrt((gain * beyond)[compared])
    return z


def _gain_of_others(
    alone: Mapping[str, tuple[np.ndarray, np.ndarray]], gains: Mapping[str, np.ndarray], label: str
) -> np.ndarray:
    """Return the gain of all other recordings together (c,): their mean by information, else that of this one."""
    others = [other for other in alone if other != label]
    known = np.array([np.where(np.isfinite(gains[other]), 1 / alone[other][1], 0.0) for other in others])
    total = known.sum(axis=0)
    mean = np.sum([one * np.nan_to_num(gains[other]) for one, other in zip(known, others, strict=True)], axis=0)
    return np.divide(mean, total, out=gains[label].copy(), where=total > 0)


def _alone(
    whitened: Observations, estimate: Estimate, weights: Mapping[NoiseGroup, float], label: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return a recording's own solution (c,) and its variances (c,), infinite for columns that are not determined."""
    factors = [factor for factor in whitened.factors if factor.recording == label and group_of(factor) in weights]
    triangle, _ = merged_triangle(factors, estimate.columns, lambda factor: weights[group_of(factor)])
    norms = np.linalg.norm(triangle[:, :-1], axis=0)
    excited = norms > 1e-13 * norms.max(initial=0.0)
    values, variance = np.zeros(len(norms)), np.full(len(norms), np.inf)
    if not excited.any():
        return values, variance
    scale = norms[excited]
    left, sizes, right = np.linalg.svd(triangle[:, :-1][:, excited] / scale, full_matrices=False)
    held = np.maximum(sizes, _NOT_EXCITED * sizes[0])
    values[excited] = right.T @ ((left.T @ triangle[:, -1]) / held) / scale
    variance[excited] = np.sum((right.T / held) ** 2, axis=1) / scale**2
    return values, variance


def _root_mean_square(z: np.ndarray) -> float:
    return float(np.sqrt(np.nanmean(z**2)))


def disagreement(
    observations: Observations, equations: Equations, repeated: Repeatability | None, apart: Collection[str] = ()
) -> Disagreement | None:
    """Return which recording is not of the same arm as the others, and what explains it.

    A payload of the last link that only one recording carries, or all others, and a torque gain and friction of one
    joint or of all in one recording, are tried: each gives that recording's rows further columns. What they explain is
    counted as a share of the squares by which one estimate for all recordings fits worse than an estimate for each.

    Args:
        observations: Factors of the rows as measured.
        equations: The model's equations.
        repeated: How far the recordings agree.
        apart: Labels of recordings, such as those of validation, that may have a payload in common.

    Returns:
        The finding; None if the recordings agree, or there are fewer than two.
    """
    if repeated is None or (repeated.spread <= SUSPECT_SPREAD and abs(repeated.worst_z) <= SUSPECT_SCORE):
        return None
    plain = weighted(observations, equations.names)
    tried = _Pooled(observations, plain, equations)
    causes = [*tried.payloads(apart), *tried.gains(), *tried.frictions()] if tried.excess > 0 else []
    # Beside a declared payload, one more of one recording and one of all others may explain the same.
    best = max(
        causes, default=None,
        key=lambda cause: (round(cause.explained - _COST_OF_A_NUMBER * cause.numbers, 4), -len(cause.carrying)),
    )  # fmt: skip
    if best is not None and best.explained >= EXPLAINED:
        return replace(best, columns=repeated.different.get(best.recording, ()))
    if repeated.spread <= LARGEST_SPREAD:
        return None
    label = max(repeated.recordings, key=lambda name: repeated.recordings[name])
    text = (
        f"the recordings disagree: '{label}' differs most, by {repeated.recordings[label]:.2g} times its sigmas in the "
        "root mean square; neither a payload nor a torque gain nor friction explains it"
    )
    remedy = "identify the recordings one by one and compare them (steelyard compare); record them at one temperature"
    return Disagreement(label, "", text, remedy, repeated.different.get(label, ()), 0.0)


class _Pooled:
    """One estimate for all recordings, with further columns for the rows of one of them."""

    def __init__(self, observations: Observations, plain: Estimate, equations: Equations) -> None:
        self._equations, self._columns, weights = equations, plain.columns, plain.weights
        self._declared = {info.label: info.payload for info in observations.recordings if info.payload}
        groups: dict[NoiseGroup, list[Factor]] = {}
        for factor in observations.factors:
            if group_of(factor) in weights:
                groups.setdefault(group_of(factor), []).append(factor)
        self._rows = {
            group: merged_triangle(factors, plain.columns, lambda factor: weights[group_of(factor)])[0]
            for group, factors in groups.items()
        }
        self._labels = list(dict.fromkeys(group[0] for group in groups))
        self._together = self._squares({})[0]
        separate = [_residual(np.vstack([self._rows[c] for c in groups if c[0] == label]))[0] for label in self._labels]
        self.excess = self._together - sum(separate)

    def payloads(self, apart: Collection[str] = ()) -> Iterator[Disagreement]:
        """Yield a payload of each recording, or of some together; one of negative mass is one that the others carry."""
        span = self._equations.payload_span(self._columns)
        several = [tuple(label for label in self._labels if label in apart)]
        for own in (*((label,) for label in self._labels), *(one for one in several if len(one) > 1)):
            extra = {group: rows[:, :-1] @ span for group, rows in self._rows.items() if group[0] in own}
            squares, values = self._squares(extra)
            mass = float(values[-1])
            others = tuple(label for label in self._labels if label not in own)
            share = min((self._together - squares) / self.excess, 1.0)
            yield _payload(*((own, others) if mass >= 0 else (others, own)), abs(mass), share, self._declared)

    def gains(self) -> Iterator[Disagreement]:
        """Yield a torque gain in each recording as the cause: of all joints, of a joint, of one of its torques."""
        for label in self._labels:
            known = _residual(np.vstack([rows for group, rows in self._rows.items() if group[0] != label]))[1]
            own = {group: (rows[:, :-1] @ known)[:, None] for group, rows in self._rows.items() if group[0] == label}
            squares, values = self._squares(own)
            yield self._gain(label, "", 1 + float(values[-1]), squares)
            joints: dict[str, list[NoiseGroup]] = {}
            for group in own:
                joints.setdefault(group[2], []).append(group)
            for joint, groups in joints.items():
                kinds = [[group] for group in groups] if len(groups) > 1 else []
                for scaled in (groups, *kinds):
                    squares, values = self._squares({group: own[group] for group in scaled})
                    yield self._gain(label, joint, 1 + float(values[-1]), squares)

    def frictions(self) -> Iterator[Disagreement]:
        """Yield other viscous and Coulomb friction in each recording as the cause: of a joint, of all joints."""
        owners = {
            one.name: one.joint
            for one in self._equations.model.parameters
            if one.friction in ("viscous", "dry") and one.name in self._columns
        }
        joints = dict.fromkeys(owners.values())
        for label in self._labels if joints else ():
            for own in (*((joint,) for joint in joints), tuple(joints)):
                columns = [self._columns.index(name) for name, joint in owners.items() if joint in own]
                extra = {group: rows[:, columns] for group, rows in self._rows.items() if group[0] == label}
                share = min((self._together - self._squares(extra)[0]) / self.excess, 1.0)
                whose = f"joint '{own[0]}'" if len(own) == 1 else "all joints"
                text = (
                    f"the recordings disagree: friction of {whose} is another in '{label}' than in the others; this "
                    f"explains {100 * share:.0f} % of the difference"
                )
                remedy = "record at one temperature, and identify recordings of different days apart"
                yield Disagreement(label, f"friction of {whose}", text, remedy, (), share, numbers=len(columns))

    def _gain(self, label: str, joint: str, gain: float, squares: float) -> Disagreement:
        share = min((self._together - squares) / self.excess, 1.0)
        whose = f"joint '{joint}'" if joint else "all joints"
        if gain < REVERSED:
            cause, remedy = "sign", f"check the signs of torques and positions in the set-up of '{label}'"
            what = f"the torque of {joint} seems" if joint else "the torques of all joints seem"
            what += f" reversed in '{label}'"
        else:
            cause, what = "gain", f"torques of {whose} are {gain:.2g} times as large in '{label}' as in the others"
            remedy = f"check the gain of {whose} in the set-up of '{label}', and the unit of the torque columns"
        text = f"the recordings disagree: {what}; this explains {100 * share:.0f} % of the difference"
        return Disagreement(label, f"{cause} of {whose}", text, remedy, (), share, gain)

    def _squares(self, extra: Mapping[NoiseGroup, np.ndarray]) -> tuple[float, np.ndarray]:
        """Return the squares of all rows with further columns for some groups, and all values, further ones last."""
        count = next((part.shape[1] for part in extra.values()), 0)
        stacked = [
            np.hstack([rows[:, :-1], extra.get(group, np.zeros((len(rows), count))), rows[:, -1:]])
            for group, rows in self._rows.items()
        ]
        return _residual(np.vstack(stacked))


def _payload(
    carrying: tuple[str, ...], others: tuple[str, ...], mass: float, share: float, declared: Mapping[str, str]
) -> Disagreement:
    """Return a payload that some recordings carry and the others do not, whatever is declared."""
    remedy = 'declare it in the set-up of those that carry it (payload = "name"), and fit some with and some without it'
    with_it, without_it = (first_named([f"'{label}'" for label in labels]) for labels in (carrying, others))
    what = f"all recordings but {without_it} carry a payload"
    if len(carrying) == 1:
        what = f"{with_it} carries a payload that the others do not"
        remedy = f'declare it in the set-up of {with_it} (payload = "name"), or leave that recording out'
    elif len(carrying) <= len(others):
        what = f"{with_it} carry a payload that the others do not"
    if declared:
        named = first_named([f"{name} in '{label}'" for label, name in declared.items()])
        what = f"beside what is declared, {what}"
        remedy = f"check which recording carries which payload: declared is {named}; or leave that recording out"
    text = f"the recordings disagree: {what}, about {mass:.2g} kg; it explains {100 * share:.0f} % of the difference"
    return Disagreement(carrying[0], "payload", text, remedy, (), share, carrying=carrying, numbers=10)


def _residual(rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the squares that least squares leaves of rows (m, c + 1), and its values (c,)."""
    values = scaled_least_squares(rows[:, :-1], rows[:, -1], 1e-9)
    return float(np.sum((rows[:, :-1] @ values - rows[:, -1]) ** 2)), values
