"""The report of an identified arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..judge import autocorrelation
from ..plots import (
    HISTOGRAM_RANGE,
    arm_plot,
    friction_plot,
    histogram_plot,
    series_plot,
    whiteness_plot,
)
from ..report import DataTable, Figure, Page, PageSection, arm_motion
from ..verdict import first_named
from .figures import (
    ResidualSample,
    UnseenMotion,
    friction_curves,
    residual_samples,
    residuals_against,
    unseen_motion,
)
from .payload import payload_section
from .report_basis import (
    consistency_section,
    excitation_section,
    preparation_section,
    recordings_section,
    robust_section,
    selection_section,
)

if TYPE_CHECKING:
    from ..judge import JointTests
    from .result import Identification

_LAGS = 20


def identification_page(found: Identification, provenance: Mapping[str, str], notes: Sequence[str] = ()) -> Page:
    """Return the report of an identified arm.

    Args:
        found: The identified arm, with its recordings.
        provenance: Where it comes from, texts by name.
        notes: Further notes.
    """
    model, error = found.equations.model, found.unseen_error
    motion, samples = unseen_motion(found), residual_samples(found)
    sections = [
        _torques(found, motion),
        _parameters(found),
        None if found.payload is None else payload_section(found.payload, model.payload_link),
        _friction(found, samples),
        _residuals(found, samples),
        _arm(found, motion),
        consistency_section(found),
        excitation_section(found),
        preparation_section(found),
        robust_section(found),
        selection_section(found),
        recordings_section(found, notes),
    ]
    essential, missing = len(found.essential.columns), _missing(found)
    judged = len(model.robot.actuated) - len(missing)
    return Page(
        title=f"Identification of {model.robot.name}",
        subtitle=f"method {found.fit.method_text}, {model.measured} torque, effects {', '.join(model.chosen_effects)}",
        sections=[section for section in sections if section is not None],
        verdict=found.verdict,
        facts={
            "error on unseen motion": f"{error.relative_percent:.3g} %"
            + (f" ({judged} of {judged + len(missing)} joints)" if missing else ""),
            "error on the fit": f"{found.fit_error.relative_percent:.3g} %",
            "essential parameters": f"{essential} of {len(found.equations.base.base)}",
            "recordings": f"{len(found.training)}",
        },
        provenance=provenance,
    )  # fmt: skip


def _torques(found: Identification, motion: UnseenMotion) -> PageSection:
    error = found.unseen_error
    worst = max(error.joints, key=lambda joint: np.nan_to_num(joint.relative_percent))
    circled = any(len(joint.points["largest errors"][0]) for joint in motion.joints)
    click = "; a click on a circled error shows the arm at that instant" if circled else ""
    kind = f"the last {100 * found.held_out:.0f} % of every log, held out" if found.held_out else "unseen recordings"
    missing = _missing(found)
    without = f", without {first_named(missing)}, whose torques are not used" if missing else ""
    rows = [
        [one.joint, one.kind, one.torque_rms, one.rms, one.relative_percent, one.maximum, one.unit]
        for one in error.joints
    ]
    return PageSection(
        "Torques on unseen motion",
        [
            Figure(
                "torques", series_plot(motion.joints),
                f"Torque as recorded on {kind}, and measured, predicted and error torque through the evaluation filter "
                f"of {error.cutoff:.4g} Hz. The error is {error.relative_percent:.3g} % of the torque over all "
                f"joints{without}; largest on {worst.joint} ({worst.kind}) with {worst.relative_percent:.3g} %. Errors "
                f"near standstill are drawn but not counted. Zoom is linked{click}.",
            ),
            DataTable(
                "errors", ["joint", "torque", "torque rms", "error rms", "error [%]", "largest error", "unit"], rows,
                f"Errors of every joint while it moves{without}. The verdict's worst joint counts the fit too and "
                "leaves out means of recordings and joints whose torque hardly shows.", digits=3,
            ),
            *_recordings_apart(found),
        ],
    )  # fmt: skip


def _recordings_apart(found: Identification) -> list[DataTable]:
    """Return the errors of every unseen recording, if there are several."""
    error = found.unseen_error
    if len(error.parts) < 2:
        return []
    worst = max(error.parts, key=lambda one: np.nan_to_num(one.relative_percent))
    rows = [
        [one.label, one.relative_percent, one.relative_percent_all_rows, one.standstill_percent]
        for one in error.parts
    ]  # fmt: skip
    return [
        DataTable(
            "errors-by-recording", ["recording", "moving [%]", "all samples [%]", "near standstill [%]"], rows,
            f"Errors of every unseen recording apart, over all joints: while they move ({error.relative_percent:.3g} % "
            f"together), and of all samples ({error.relative_percent_all_rows:.3g} %). Worst is {worst.label}.",
            digits=3,
        )
    ]  # fmt: skip


def _missing(found: Identification) -> list[str]:
    """Return the joints of the arm that no equation is about: their torques were not recorded, or not used."""
    judged = {one.joint for one in found.unseen_error.joints}
    return [body.joint.name for body in found.equations.model.robot.actuated if body.joint.name not in judged]


def _parameters(found: Identification) -> PageSection:
    content = found.to_json()
    steps = {step["name"]: step for step in content["reduction"]["steps"]}
    file = _file_values(found)
    rows = []
    for row in content["parameters"]:
        value, half, wider = row["value"], *(_half(row[key]) for key in ("interval_95", "interval_95_widened"))
        state = "essential" if row["essential"] else "dropped" if row["excited"] else "not excited"
        step = steps.get(row["name"])
        statistic = "" if step is None else f"F = {step['f']:.3g}"
        rows.append(
            [row["name"], value, half, row["relative_sigma_percent"], row["unit"], file.get(row["name"]), wider, state,
             statistic, row["caution"] or "", row["regrouping"]]
        )  # fmt: skip
    weak = sum(1 for row in content["parameters"] if row["essential"] and (row["relative_sigma_percent"] or 0) > 10)
    return PageSection(
        "Parameters",
        [
            DataTable(
                "parameters",
                ["name", "value", "± 95 %", "sigma [%]", "unit", "robot file", "± widened", "state", "statistic",
                 "caution", "regrouping"], rows,
                "Base parameters of the judged model; 'robot file' is what the robot file gives for the same "
                f"combination. {_widened_text(content['widening'])}",
                intervals={1: 2, 5: 2}, is_folded=True,
            ),
            *_nonlinear(found),
        ],
        _known(weak, len(found.essential.columns), sum(not row["excited"] for row in content["parameters"])),
    )  # fmt: skip


def _half(interval: Sequence[float] | None) -> float | None:
    return None if interval is None else (interval[1] - interval[0]) / 2


def _widened_text(widening: Mapping[str, Any] | None) -> str:
    """Return what widened intervals are, and how wide."""
    if widening is None:
        return "This method has no widened intervals."
    most = widening["largest"]
    return (
        "'± 95 %' allows for noise, '± widened' also for what stretches of time, recordings and classes of speed and "
        f"position disagree about: sigmas are {widening['median_factor']:.3g} times as large in the median, of "
        f"{most['parameter']} {most['factor']:.3g} times."
    )


def _nonlinear(found: Identification) -> list[DataTable]:
    """Return the nonlinear parameters, if some were to be estimated."""
    rows = [
        [one.title, one.value, one.sigma, *(one.interval_95 or (None, None)), one.unit, one.given, one.remark]
        for one in found.nonlinear
    ]
    headings = ["name", "value", "sigma", "95 % from", "to", "unit", "before", "remark"]
    text = "Nonlinear parameters, estimated together with the linear ones, whose intervals include their uncertainty."
    return [DataTable("nonlinear", headings, rows, text, digits=4)] if rows else []


def _known(weak: int, essential: int, hidden: int) -> str:
    """Return how well parameters are known, in a sentence or two."""
    said = f"{weak or 'None'} of {essential} essential parameters have a sigma above 10 % of their value."
    return said + (f" {hidden} more are not excited by these recordings and have no value." if hidden else "")


def _file_values(found: Identification) -> dict[str, float]:
    """Return what the robot file gives for the base parameters, where it knows all that is regrouped in them."""
    known = found.equations.model.robot.parameters
    return {
        base.name: sum(factor * known[name] for name, factor in base.regrouping.items())
        for base in found.equations.base.base
        if all(name in known for name in base.regrouping)
    }


def _friction(found: Identification, samples: Sequence[ResidualSample]) -> PageSection | None:
    curves = friction_curves(found, samples)
    if not curves:
        return None
    left = {name: float(np.std(curve.torque - curve.law)) for name, curve in curves.items()}
    size = {name: max(float(np.abs(curve.law).max()), 1e-12) for name, curve in curves.items()}
    worst = max(left, key=lambda name: left[name] / size[name])
    return PageSection(
        "Friction",
        [
            Figure(
                "friction", friction_plot(curves),
                "Measured torque less the rest of the model, against speed, with the fitted law. Relative to its law "
                f"the cloud is widest on {worst}: standard deviation {left[worst]:.3g} {curves[worst].unit}, "
                f"{100 * left[worst] / size[worst]:.2g} % of its largest friction. A cloud that leaves the law means "
                "friction that the model lacks; about zero speed the decimation filter rounds the cloud.",
            )
        ],
    )  # fmt: skip


def _residuals(found: Identification, samples: Sequence[ResidualSample]) -> PageSection:
    tests = {(test.kind, test.joint): test for test in found.tests}
    by_title = dict(zip((one.title for one in samples), tests.values(), strict=True))
    parts: list[Figure | DataTable] = [
        Figure(
            f"residual-{signal}", residuals_against(samples, signal),
            f"Residuals of the fit against {signal}, with their mean in bins of equally many rows. "
            f"{_explained_by(signal, by_title)}",
        )
        for signal in ("velocity", "acceleration", "position", "load")
    ]  # fmt: skip
    white = {one.title: _correlation(one) for one in samples if np.isfinite(one.whitened).all()}
    beyond = [title for title, (values, band) in white.items() if np.abs(values).max() > 2 * band]
    whiteness = (
        f"Beyond twice the band: {first_named(beyond)}. The verdict's 'residual correlation' says whether this matters."
        if beyond
        else "What is left is white: the noise model describes these residuals."
    )
    if white:
        parts.insert(
            0,
            Figure("whiteness", whiteness_plot(white),
                   f"Autocorrelation of the whitened residuals with the 95 % band of white noise. {whiteness}"),
        )  # fmt: skip
    far = {one.title: _farthest(one.residual) for one in samples}
    farthest = max(far, key=lambda title: far[title])
    odd = [title for title, test in by_title.items() if test.jarque_bera_p < 0.01]
    normal = (
        f"Not normal (Jarque-Bera below 1 %): {first_named(odd)}." if odd else "No joint's residuals deviate clearly."
    )
    if found.fit.robust is not None:  # the tests are of rows whose tails were cut
        normal = "Rows far from the model have little weight in the fit: see 'Down-weighted rows'."
    parts.insert(
        0,
        Figure("histogram", histogram_plot({one.title: one.residual for one in samples}),
               "Distribution of the residuals in their own standard deviations, with the Gaussian; the outermost bins "
               f"hold all beyond {HISTOGRAM_RANGE:g}. Farthest: {far[farthest]:.3g} on {farthest}. {normal}"),
    )  # fmt: skip
    return PageSection("Residuals", parts, closed=True)


def _farthest(residual: np.ndarray) -> float:
    """Return the largest deviation from the mean, in standard deviations."""
    deviation = float(np.std(residual))
    return float(np.abs(residual - residual.mean()).max()) / deviation if deviation else 0.0


def _explained_by(signal: str, tests: Mapping[str, JointTests]) -> str:
    """Return what part of the residuals a signal explains, in a sentence."""
    shares = {
        title: pattern.share_explained
        for title, test in tests.items()
        for pattern in test.patterns
        if pattern.signal == signal
    }
    large = [f"{title} ({100 * share:.0f} %)" for title, share in shares.items() if share > 0.1]
    if large:
        return f"It explains a part of the residuals of {first_named(large)}: the model lacks an effect."
    most = max(shares, key=lambda title: shares[title], default="")
    if not most:
        return "No joint's residuals are found to depend on it beyond what other signals explain."
    return f"It explains little of any joint's residuals, most of {most} ({100 * shares[most]:.2g} %)."


def _correlation(one: ResidualSample) -> tuple[np.ndarray, float]:
    values = autocorrelation([one.whitened], min(_LAGS, max(1, len(one.whitened) // 5)))[1:]
    return values, 1.96 / np.sqrt(len(one.whitened))


def _arm(found: Identification, motion: UnseenMotion) -> PageSection:
    robot = found.equations.model.robot
    arms = {} if found.standard is None else {"identified": found.standard.robot}
    if any(body.inertia is not None and any(body.inertia) for body in robot.bodies):
        arms["robot file"] = robot
    instants = np.unique(np.concatenate([joint.points["largest errors"][0] for joint in motion.joints]))
    drawn = arm_motion(robot, motion.time, motion.q, instants, arms)
    about = (
        "Ellipsoids are solids of the links' mass and inertia, with their centres of mass"
        + (", identified beside the robot file's." if len(arms) > 1 else ".")
        if arms
        else "The model has no link inertias to draw."
    )
    return PageSection("The arm", [Figure("arm", arm_plot(drawn), f"The arm along the unseen motion. {about}")])
