"""The report of an identified arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..judge import autocorrelation
from ..plots import (
    arm_plot,
    bar_plot,
    friction_plot,
    histogram_plot,
    matrix_plot,
    series_plot,
    spectrum_plot,
    whiteness_plot,
)
from ..report import DataTable, Figure, Page, PageSection, arm_motion, sentence
from ..verdict import first_named
from .figures import (
    ResidualSample,
    UnseenMotion,
    friction_curves,
    residual_samples,
    residuals_against,
    torque_spectra,
    unseen_motion,
)

if TYPE_CHECKING:
    from ..judge import JointTests
    from .result import Identification

WORTH_KNOWING = 0.9
"""Correlation above which two parameters are named: the data know their sum or difference better than either."""

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
        _friction(found, samples),
        _residuals(found, samples),
        _arm(found, motion),
        _consistency(found),
        _excitation(found),
        _preparation(found),
        _selection(found),
        _recordings(found, notes),
    ]
    essential = len(found.essential.columns)
    return Page(
        title=f"Identification of {model.robot.name}",
        subtitle=f"method {found.estimate.method}, {model.measured} torque, effects {', '.join(model.effects)}",
        sections=[section for section in sections if section is not None],
        verdict=found.verdict,
        facts={
            "error on unseen motion": f"{error.relative_percent:.3g} %",
            "error on the fit": f"{found.fit_error.relative_percent:.3g} %",
            "essential parameters": f"{essential} of {len(found.estimate.columns)}",
            "recordings": f"{len(found.training)}",
        },
        provenance=provenance,
    )  # fmt: skip


def _torques(found: Identification, motion: UnseenMotion) -> PageSection:
    error = found.unseen_error
    worst = max(error.joints, key=lambda joint: np.nan_to_num(joint.relative_percent))
    circled = any(len(joint.points["largest errors"][0]) for joint in motion.joints)
    click = "; a click on a circled error shows the arm at that instant" if circled else ""
    kind = f"the last {found.held_out:.0%} of each recording, held out" if found.held_out else "unseen recordings"
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
                f"of {error.cutoff:g} Hz. The error is {error.relative_percent:.3g} % of the torque over all joints, "
                f"largest on {worst.joint} with {worst.relative_percent:.3g} %; errors near standstill are drawn but "
                f"not counted. Zoom is linked{click}.",
            ),
            DataTable(
                "errors", ["joint", "torque", "torque rms", "error rms", "error [%]", "largest error", "unit"], rows,
                "Errors of every joint while it moves.", digits=3,
            ),
        ],
    )  # fmt: skip


def _parameters(found: Identification) -> PageSection:
    content = found.to_json()
    steps = {step["name"]: step for step in content["reduction"]["steps"]}
    file = _file_values(found)
    rows = []
    for row in content["parameters"]:
        value, half = row["value"], None
        if row["interval_95"] is not None:
            half = (row["interval_95"][1] - row["interval_95"][0]) / 2
        state = "essential" if row["essential"] else "dropped" if row["excited"] else "not excited"
        step = steps.get(row["name"])
        statistic = "" if step is None else f"F = {step['f']:.3g}"
        rows.append(
            [row["name"], value, half, row["relative_sigma_percent"], row["unit"], file.get(row["name"]), state,
             statistic, row["caution"] or "", row["regrouping"]]
        )  # fmt: skip
    weak = sum(1 for row in content["parameters"] if row["essential"] and (row["relative_sigma_percent"] or 0) > 10)
    return PageSection(
        "Parameters",
        [
            DataTable(
                "parameters",
                ["name", "value", "± 95 %", "sigma [%]", "unit", "robot file", "state", "statistic", "caution",
                 "regrouping"], rows,
                "Base parameters of the judged model; 'robot file' is what the robot file gives for the same "
                "combination.",
                intervals={1: 2, 5: 2}, is_folded=True,
            )
        ],
        _known(weak, len(found.essential.columns), sum(not row["excited"] for row in content["parameters"])),
    )  # fmt: skip


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
        f"The noise model leaves correlation in {first_named(beyond)}; intervals allow for it."
        if beyond
        else "What is left is white: the noise model describes these residuals."
    )
    if white:
        parts.insert(
            0,
            Figure("whiteness", whiteness_plot(white),
                   f"Autocorrelation of the whitened residuals with the 95 % band of white noise. {whiteness}"),
        )  # fmt: skip
    odd = [title for title, test in by_title.items() if test.jarque_bera_p < 0.01]
    normal = (
        f"Not normal (Jarque-Bera below 1 %): {first_named(odd)}." if odd else "No joint's residuals deviate clearly."
    )
    parts.insert(
        0,
        Figure("histogram", histogram_plot({one.title: one.residual for one in samples}),
               f"Distribution of the residuals in their own standard deviations, with the Gaussian. {normal}"),
    )  # fmt: skip
    return PageSection("Residuals", parts, closed=True)


def _explained_by(signal: str, tests: Mapping[str, JointTests]) -> str:
    """Return what part of the residuals a signal explains, in a sentence."""
    shares = {
        title: pattern.share_explained
        for title, test in tests.items()
        for pattern in test.patterns
        if pattern.signal == signal
    }
    large = [f"{title} ({share:.0%})" for title, share in shares.items() if share > 0.1]
    if large:
        return f"It explains a part of the residuals of {first_named(large)}: the model lacks an effect."
    most = max(shares, key=lambda title: shares[title], default="")
    if not most:
        return "No joint's residuals are found to depend on it beyond what other signals explain."
    return f"It explains little of any joint's residuals, most of {most} ({shares[most]:.2%})."


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


def _consistency(found: Identification) -> PageSection | None:
    standard = found.standard
    if standard is None:
        return None
    content = found.to_json()
    rows = [
        [row["name"], row["value"], row["sigma"], row["unit"], row["source"], 100 * row["data_share"],
         row["file_value"], row["difference_in_sigmas"], row["link"] or row["joint"] or ""]
        for row in content["standard_parameters"]
    ]  # fmt: skip
    said = [
        f"Prior: {standard.prior.origin}, relative deviation {standard.prior.deviation:.2g}."
        if standard.prior is not None
        else "No prior: what the data do not show is where the rest is smallest.",
    ]
    if standard.edges:
        said.append(f"At the edge of what a body can be: {first_named(standard.edges)}.")
    if standard.zeros:
        said.append(f"Held at zero: {first_named(standard.zeros)}.")
    if standard.active:
        said.append(f"Active bounds: {first_named(standard.active)}.")
    if found.standard_error is not None:
        free, bound = found.unseen_error_of_all.relative_percent, found.standard_error.relative_percent
        said.append(f"Consistency changes the error on unseen motion from {free:.3g} % to {bound:.3g} %.")
    return PageSection(
        "Physical consistency",
        [
            DataTable(
                "standard",
                ["name", "value", "sigma", "unit", "from", "data [%]", "robot file", "difference [sigma]", "of"], rows,
                "Standard parameters of an arm that can exist, and where each comes from.",
                intervals={1: 2, 6: 2},
            )
        ],
        " ".join(said),
        closed=True,
    )  # fmt: skip


def _excitation(found: Identification) -> PageSection:
    estimate, names = found.estimate, found.equations.base.name_of
    system = found.fit.raw
    scaled = system.triangle[:-1, :-1] / system.scale
    _, singular, directions = np.linalg.svd(scaled)
    shown = [names[column] for column in estimate.columns]
    regressed = [names[column] for column in system.columns]
    main = [regressed[int(np.argmax(np.abs(row)))] for row in directions]
    correlation = estimate.covariance / np.outer(estimate.sigma, estimate.sigma)
    pairs = sorted(_pairs(shown, correlation), key=lambda pair: -abs(pair[2]))
    text = (
        f"Pairs of parameters with a correlation beyond {WORTH_KNOWING:g}, which the motion shows mostly together: "
        f"{len(pairs)}, first {first_named([f'{a} and {b}' for a, b, _ in pairs])}."
        if pairs
        else f"No two parameters have a correlation beyond {WORTH_KNOWING:g}."
    )
    labels = [f"{k + 1} {name}" for k, name in enumerate(main)]
    weakest = first_named(list(dict.fromkeys(reversed(main))))
    return PageSection(
        "Excitation",
        [
            Figure(
                "singular-values", bar_plot(labels, {"predicted": singular / singular[0]}, "singular value / largest",
                                            logarithmic=True),
                "What the motion showed: singular values of the regressor with columns of unit length, named "
                f"by the parameter that dominates each. Condition number {found.condition.normalised:.3g}; the "
                f"weakest directions are those of {weakest}.",
            ),
            Figure("correlations", matrix_plot(shown, shown, correlation, "correlation"), text),
        ],
        closed=True,
    )  # fmt: skip


def _pairs(names: Sequence[str], correlation: np.ndarray) -> Iterator[tuple[str, str, float]]:
    for i, j in np.argwhere(np.triu(np.abs(correlation) > WORTH_KNOWING, 1)).tolist():
        yield names[i], names[j], float(correlation[i, j])


def _preparation(found: Identification) -> PageSection:
    resolved = found.resolved
    frequency, spectra = torque_spectra(found)
    decimated = resolved.rate / resolved.decimation
    cutoffs = {"decimated Nyquist": decimated / 2} if resolved.decimation > 1 else {}
    if resolved.cutoff is not None:
        cutoffs["cut-off"] = resolved.cutoff
    reasons = " ".join(sentence(reason) for reason in resolved.reasons)
    return PageSection(
        "Filters and spectra",
        [
            Figure(
                "spectra", spectrum_plot(frequency, spectra, cutoffs, "N m"),
                f"Measured torques of the first recording at {resolved.rate:g} Hz. What is above the cut-off is left "
                f"out of the fit, which uses rows at {decimated:.3g} Hz. {reasons}",
            )
        ],
        closed=True,
    )  # fmt: skip


def _selection(found: Identification) -> PageSection | None:
    reduction, names = found.reduction, found.equations.base.name_of
    if not reduction.steps:
        return None
    rows = [
        [k, names[step.name], step.relative_sigma, step.f, step.total_f, step.bic]
        for k, step in enumerate(reduction.steps, 1)
    ]
    return PageSection(
        "Selection of essential parameters",
        [
            DataTable(
                "selection", ["step", "left out", "sigma [%]", "F", "F of all", "BIC"], rows,
                f"Parameters left out by rule '{reduction.rule}', in order. {sentence(reduction.stopped)}".strip(),
            )
        ],
        closed=True,
    )  # fmt: skip


def _recordings(found: Identification, notes: Sequence[str]) -> PageSection:
    rows = [
        [one.label, one.samples, 100 * one.masked, one.payload or "", "; ".join(one.notes)] for one in found.training
    ]
    parts: list[Figure | DataTable] = [
        DataTable("recordings", ["recording", "samples", "near standstill [%]", "payload", "notes"], rows,
                  "Recordings that were fitted.", digits=6)
    ]  # fmt: skip
    agreed = found.repeatability
    text = "A single recording: repeatability is not judged."
    if agreed is not None:
        parts.append(
            Figure(
                "repeatability",
                bar_plot(list(agreed.recordings), {"spread": np.array(list(agreed.recordings.values()))},
                         "spread / predicted by sigma", levels={"as the sigmas predict": 1.0}),
                f"Each recording fitted alone against all: the spread is {agreed.spread:.3g} times what the sigmas "
                "predict (1 is expected).",
            )
        )  # fmt: skip
        text = ""
    if found.findings:
        listed = [[one.severity, one.recording, one.text] for one in found.findings]
        parts.append(DataTable("findings", ["severity", "recording", "finding"], listed, "Findings of the log checks."))
    everything = [*found.notes, *notes]
    said = " ".join([text, *(sentence(note) for note in everything)]).strip()
    return PageSection("Recordings", parts, said, closed=True)
