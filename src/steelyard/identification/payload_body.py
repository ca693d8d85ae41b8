"""A payload as a body: mass, centre and inertia with their sigmas; and the mass of one that nobody declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimate import Estimate
from ..model.terms import PAYLOAD_NAMES
from ..observe import Equations, Observations
from ..robot import Robot, moved_parameters, pseudo_inertia, transform_from_placement
from ..text import short_repr
from ..verdict import Grade, Reason, VerdictRow, limits_below, row_below, row_not_judged
from .regularisation import link_rows

COLUMNS = PAYLOAD_NAMES
FARTHEST = 10.0
"""Sigma of a centre of mass [m] beyond which it is not identifiable: no arm reaches so far."""

SIGNIFICANT = 3.0
"""Sigmas above zero of the mass of a payload that is there."""
LEAST_PART = 0.002
"""Part of the arm's mass below which a payload is none."""
UNLIKE = 0.1
"""Relative difference from the mass in the robot file that is another payload's: gains of drives may be off by 5 %."""


@dataclass(frozen=True, eq=False)
class PayloadBody:
    """A payload, in the frame of the link that carries it.

    Attributes:
        mass: Mass and its sigma [kg].
        centre: Centre of mass (3,) [m]; None where the mass is not above zero, NaN where it is
            not identifiable.
        centre_sigma: Its sigmas (3,).
        inertia: XX XY XZ YY YZ ZZ about the frame's origin (6,) [kg m^2]; NaN where not estimated.
        inertia_sigma: Their sigmas (6,).
        inertia_at_centre: The same about the centre of mass (6,).
        inertia_at_centre_sigma: Their sigmas (6,).
        covariance: Covariance of the ten parameters (10, 10), NaN where not estimated.
    """

    __repr__ = short_repr

    mass: tuple[float, float]
    centre: np.ndarray | None
    centre_sigma: np.ndarray | None
    inertia: np.ndarray
    inertia_sigma: np.ndarray
    inertia_at_centre: np.ndarray | None
    inertia_at_centre_sigma: np.ndarray | None
    covariance: np.ndarray

    @property
    def parameters(self) -> np.ndarray:
        """The ten parameters ``XX XY XZ YY YZ ZZ MX MY MZ M`` (10,), NaN where not known."""
        moment = np.full(3, np.nan) if self.centre is None else self.mass[0] * self.centre
        return np.array([*self.inertia, *moment, self.mass[0]])

    def in_frame(self, rotation: np.ndarray, translation: np.ndarray) -> PayloadBody:
        """Return the same payload in another frame, given the transform of the present frame in that one.

        What depends on a parameter that is not known is not known either.
        """
        change = np.column_stack([moved_parameters(unit, rotation, translation) for unit in np.eye(10)])
        change[np.abs(change) < 1e-12] = 0.0
        known = np.isfinite(self.parameters)
        is_known = ~np.any(change[:, ~known] != 0, axis=1)
        values = np.where(is_known, change @ np.where(known, self.parameters, 0.0), np.nan)
        both = np.outer(is_known, is_known)
        covariance = np.where(np.outer(known, known), self.covariance, 0.0)
        return body_from_parameters(values, np.where(both, change @ covariance @ change.T, np.nan))


def payload_body(estimate: Estimate) -> PayloadBody | None:
    """Return the payload of an estimate; None if its mass is not among the columns."""
    if "ML" not in estimate.columns:
        return None
    known = [k for k, name in enumerate(COLUMNS) if name in estimate.columns]
    places = [estimate.columns.index(COLUMNS[k]) for k in known]
    values, covariance = np.full(10, np.nan), np.full((10, 10), np.nan)
    values[known] = estimate.values[places]
    covariance[np.ix_(known, known)] = estimate.covariance[np.ix_(places, places)]
    return body_from_parameters(values, covariance)


def is_missing(mass: float, sigma: float, robot: Robot) -> bool:
    """Return whether a declared payload is not there: its mass is not significant, or next to nothing of the arm's."""
    return mass < SIGNIFICANT * sigma or mass < LEAST_PART * (mass_of(robot) or 0.0)


def unlike_file(
    body: PayloadBody, robot: Robot, names: Iterable[str | None], grade: Grade | None = None
) -> Iterator[Reason]:
    """Yield where a payload has another mass than the robot file gives the one of that name."""
    for name in dict.fromkeys(one for one in names if one is not None and one in robot.payloads):
        in_file = float(robot.payloads[name][9])
        if abs(body.mass[0] - in_file) > max(SIGNIFICANT * body.mass[1], UNLIKE * in_file):
            yield Reason(
                f"payload '{name}' comes out with a mass of {mass_text(body)}, the robot file has {in_file:.4g} kg",
                "check which payload was carried, its mass in the file, and the gains of the drives (steelyard gains)",
                "payload",
                grade,
            )


def mass_text(body: PayloadBody) -> str:
    """Return the mass of a payload with its 95 % interval."""
    return f"{body.mass[0]:.3g} +- {1.96 * body.mass[1]:.2g} kg"


def body_from_parameters(values: np.ndarray, covariance: np.ndarray) -> PayloadBody:
    """Return a payload from its ten parameters (10,) and their covariance (10, 10), NaN where not known."""
    sigma = np.sqrt(np.diag(covariance))
    centre = centre_sigma = inside = inside_sigma = None
    if values[9] > 0:
        centre, slope = _centre(values)
        centre_sigma = _carried(slope, covariance)
        inside, slope = _at_centre(values)
        inside_sigma = _carried(slope, covariance)
        if (unknown := centre_sigma > FARTHEST).any():
            centre, centre_sigma = (np.where(unknown, np.nan, one) for one in (centre, centre_sigma))
            inside, inside_sigma = np.full(6, np.nan), np.full(6, np.nan)
    return PayloadBody(
        (float(values[9]), float(sigma[9])), centre, centre_sigma, values[:6], sigma[:6], inside, inside_sigma,
        covariance,
    )  # fmt: skip


def centre_text(body: PayloadBody) -> str:
    """Return the centre of mass with its sigmas, in mm, and which of its coordinates are not identifiable."""
    if body.centre is None or body.centre_sigma is None or not np.isfinite(body.centre).any():
        return "not identifiable"
    pairs = zip(1000 * body.centre, 1000 * body.centre_sigma, strict=True)
    shown = [f"{c:.1f} +- {s:.1f}" if np.isfinite(c) else "not identifiable" for c, s in pairs]
    return f"{', '.join(shown)} mm"


def _centre(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``c = m / M`` and its derivative by the ten parameters (3, 10)."""
    centre = values[6:9] / values[9]
    slope = np.zeros((3, 10))
    slope[:, 6:9] = np.eye(3) / values[9]
    slope[:, 9] = -centre / values[9]
    return centre, slope


def _at_centre(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inertia about the centre of mass, ``I - (m^T m E - m m^T) / M``, and its derivative (6, 10)."""
    moment, mass = values[6:9], values[9]
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    inside, slope = np.zeros(6), np.zeros((6, 10))
    for row, (i, j) in enumerate(pairs):
        steiner = (float(moment @ moment) * (i == j) - moment[i] * moment[j]) / mass
        inside[row] = values[row] - steiner
        slope[row, row] = 1.0
        change = 2 * moment * (i == j)
        change[i] -= moment[j]
        change[j] -= moment[i]
        slope[row, 6:9] = -change / mass
        slope[row, 9] = steiner / mass
    return inside, slope


def _carried(slope: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the sigmas of a function of the ten parameters; unknown entries count only where the slope is not zero."""
    used = np.any(slope != 0, axis=0)
    part = slope[:, used] @ covariance[np.ix_(used, used)] @ slope[:, used].T
    return np.sqrt(np.diag(part))


IMPOSSIBLE = 4.0
"""Sigmas by which a value must be below zero to be called impossible."""


def impossible_payload(body: PayloadBody) -> list[str]:
    """Return what no body can have, beyond doubt: a negative mass, moment of inertia, or density.

    No density is negative exactly if the pseudo-inertia is positive semi-definite; its smallest eigenvalue
    ``v^T J v`` is linear in the parameters for its own vector v, so that its sigma follows from theirs.
    """
    mass, sigma = body.mass
    found = [f"mass {mass:.3g} +- {sigma:.2g} kg"] if mass < -IMPOSSIBLE * sigma else []
    if body.inertia_at_centre is None or body.inertia_at_centre_sigma is None or body.centre is None:
        return found
    for name, place in (("XX", 0), ("YY", 3), ("ZZ", 5)):
        value, sigma = body.inertia_at_centre[place], body.inertia_at_centre_sigma[place]
        if value < -IMPOSSIBLE * sigma:
            found.append(f"{name} about its centre {value:.3g} +- {sigma:.2g} kg m^2")
    ten = np.array([*body.inertia, *(mass * body.centre), mass])
    if found or not np.isfinite(ten).all():
        return found
    sizes, vectors = np.linalg.eigh(pseudo_inertia(ten))
    slope = np.array([vectors[:, 0] @ pseudo_inertia(unit) @ vectors[:, 0] for unit in np.eye(10)])
    sigma = float(np.sqrt(slope @ body.covariance @ slope))
    if sizes[0] < -IMPOSSIBLE * sigma:
        found.append(f"inertia with negative density (eigenvalue {sizes[0]:.3g} +- {sigma:.2g} kg m^2)")
    return found


def reach_of(robot: Robot, link: str, q: np.ndarray) -> float | None:
    """Return how far an arm reaches [m], not less than it does: all lengths, slides and twice the last centre of mass.

    Args:
        robot: The arm.
        link: The link that carries the payload.
        q: Positions of the actuated joints (na, N), for slides.

    Returns:
        None where the file has no length between joints, so that nothing says how large the arm is.
    """
    frame, matrix, offset = robot.frame(link), *robot.coupling()
    slides = np.abs(matrix @ q + offset[:, None]).max(axis=1, initial=0.0)
    last, number = robot.bodies[frame.body - 1] if frame.body else None, frame.body
    lengths = [float(np.linalg.norm(transform_from_placement(frame.placement)[1]))]
    base = 0.0
    while number:
        body = robot.bodies[number - 1]
        base = float(np.linalg.norm(transform_from_placement(body.placement)[1]))
        lengths += [base, float(slides[number - 1]) if body.joint.kind == "prismatic" else 0.0]
        number = body.parent
    total = sum(lengths)
    if not total - base > 0:
        return None
    if last is not None and last.inertia is not None and last.inertia[9] > 0:
        own = 2 * float(np.linalg.norm(last.inertia[6:9])) / last.inertia[9]
        total += min(own, total)  # inertias that were identified may have a centre far outside
    return total


def mass_of(robot: Robot) -> float | None:
    """Return the mass of all moving links of the robot file [kg]; None if one is unknown, or all are 0."""
    masses = [None if body.inertia is None else body.inertia[9] for body in robot.bodies]
    known = [one for one in masses if one is not None]
    return float(sum(known)) if len(known) == len(masses) and sum(known) > 0 else None


MASS_OVER_ARM = (1.0, 2.0)
"""Mass of a payload over that of the arm's moving links: good and fair up to these. Arms carry less than they weigh."""


def mass_row(mass: float, robot: Robot, remedy: str) -> VerdictRow:
    """Return the row of a payload's mass against that of the arm."""
    name, own = "payload's mass over the arm's", mass_of(robot)
    if own is None:
        return row_not_judged("plausible", name, limits_below(MASS_OVER_ARM), "the robot file has no masses")
    part = mass / own
    text = f"the payload of {mass:.4g} kg is {part:.3g} times as heavy as the moving links of the arm, {own:.4g} kg"
    return row_below("plausible", name, part, f"{part:.2g}", MASS_OVER_ARM, text, remedy)


def payload_to_json(body: PayloadBody) -> dict[str, Any]:
    """Return mass, centre and inertia with their sigmas."""
    return {
        "mass": body.mass[0],
        "mass_sigma": body.mass[1],
        "centre": body.centre,
        "centre_sigma": body.centre_sigma,
        "inertia": body.inertia,
        "inertia_sigma": body.inertia_sigma,
        "inertia_at_centre": body.inertia_at_centre,
        "inertia_at_centre_sigma": body.inertia_at_centre_sigma,
    }


FILE_DEVIATION = 0.2
"""Relative deviation of a right robot file's links."""


LEAST_LOAD, MOST_LOAD = 0.05, 1.0
"""Parts of the robot file's arm: lighter loads may be cables, and nothing that an arm carries is heavier."""
CERTAIN_LOAD = 4.0
"""Standard deviations of a load from none."""


@dataclass(frozen=True, eq=False)
class LoadBeyondFile:
    """A body at the end of the arm that the robot file does not have.

    Attributes:
        mass: Its mass [kg].
        sigma: Standard deviation of that.
        base: What it adds to base parameters by name.
    """

    mass: float
    sigma: float
    base: Mapping[str, float]


def load_beyond_file(equations: Equations, estimate: Estimate, robot: Robot) -> LoadBeyondFile | None:
    """Return a body at the end of the arm that the robot file does not have; None if no load is certain.

    Args:
        equations: Model and base parameters.
        estimate: Estimate of them all, with its covariance.
        robot: The robot whose link inertias are known to about a fifth.
    """
    model, arm = equations.model, mass_of(robot)
    if arm is None or "inertias" not in robot.carries or "inertia" not in model.effects or model.payload != "none":
        return None
    span = equations.payload_span(estimate.columns)
    if not span[:, -1].any():  # its mass bears on no torque
        return None
    # Rows of the data, and of links near those of the file, which the load is not part of.
    root = _inverse_root(estimate.covariance)
    drawn = link_rows(equations, estimate.columns, robot) / FILE_DEVIATION
    size = span.shape[1]
    data = np.hstack([root, root @ span, (root @ estimate.values)[:, None]])
    file = np.hstack([drawn[:, :-1], np.zeros((len(drawn), size)), drawn[:, -1:]])
    stacked = np.vstack([data, file])
    scale = np.linalg.norm(stacked[:, :-1], axis=0)
    scale[scale == 0] = 1.0
    left, sizes, right = np.linalg.svd(stacked[:, :-1] / scale, full_matrices=False)
    inside = sizes > 1e-9 * sizes[0]
    values = (right[inside].T / sizes[inside] @ (left[:, inside].T @ stacked[:, -1])) / scale
    covariance = (right[inside].T / sizes[inside] ** 2) @ right[inside] / np.outer(scale, scale)
    mass, sigma = float(values[-1]), float(np.sqrt(covariance[-1, -1]))
    if not max(CERTAIN_LOAD * sigma, LEAST_LOAD * arm) < mass < MOST_LOAD * arm:
        return None
    added = dict(zip(estimate.columns, (span @ values[-size:]).tolist(), strict=True))
    return LoadBeyondFile(mass, sigma, added)


def _inverse_root(covariance: np.ndarray) -> np.ndarray:
    """Return R with ``R^T R`` the inverse of a covariance, which may be singular but for rounding."""
    sigma = np.sqrt(np.diag(covariance))
    variances, vectors = np.linalg.eigh(covariance / sigma / sigma[:, None])
    return (vectors / np.sqrt(np.maximum(variances, 1e-12))).T / sigma


@dataclass(frozen=True)
class FileScale:
    """Measured torque of a joint over what the robot file's inertias give along the motion, its friction apart.

    Attributes:
        joint: The joint.
        kind: Its torque kind.
        ratio: That factor.
        explained: Part of the torque's squares that these inertias explain beyond friction and offsets.
    """

    joint: str
    kind: str
    ratio: float
    explained: float


def scales_by_joint(
    equations: Equations, observations: Observations, load: LoadBeyondFile | None = None
) -> tuple[FileScale, ...]:
    """Return the factor of every joint's torque against the robot file; empty if the file has no inertias.

    Args:
        equations: Model and base parameters.
        observations: Factors of the rows.
        load: What the arm carries beyond the file.
    """
    robot, model = equations.model.robot, equations.model
    if "inertias" not in robot.carries or "inertia" not in model.effects:
        return ()
    inertial = {one.name for one in model.parameters if one.effect in ("inertia", "Ia")}
    file = equations.base_values({name: value for name, value in robot.parameters.items() if name in inertial})
    for name, value in () if load is None else load.base.items():
        file[name] = file.get(name, 0.0) + value
    found = []
    for kind, joint in equations.kinds_joints:
        rows = []
        for factor in observations.factors:
            if (factor.kind, factor.joint) == (kind, joint):
                rigid = [k for k, name in enumerate(factor.columns) if name in inertial]
                other = [k for k, name in enumerate(factor.columns) if name not in inertial]
                known = factor.triangle[:, rigid] @ [file[factor.columns[k]] for k in rigid]
                rows.append(np.column_stack([known, factor.triangle[:, other], factor.triangle[:, -1]]))
        if not rows:
            continue
        width = max(part.shape[1] for part in rows)
        stacked = np.vstack([part for part in rows if part.shape[1] == width])
        total = float(stacked[:, -1] @ stacked[:, -1])
        if total > 0:
            values, squares = _least_squares(stacked)
            explained = (_least_squares(stacked[:, 1:])[1] - squares) / total
            found.append(FileScale(joint, kind, float(values[0]), explained))
    return tuple(found)


def _least_squares(rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the values of all columns but the last, which they explain, and the squares that are left."""
    values = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=1e-10)[0]
    rest = rows[:, -1] - rows[:, :-1] @ values
    return values, float(rest @ rest)
