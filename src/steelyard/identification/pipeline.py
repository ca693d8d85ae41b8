"""Identification of an arm: recordings to parameters, errors on unseen motion and a verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..effects import EFFECTS
from ..errors import EstimateError
from ..estimate import Estimate
from ..judge import (
    Bias,
    Evaluation,
    JointTests,
    LeftOutBlocks,
    StateSums,
    combined,
    disagreement,
    estimate_bias,
    evaluate_each,
    joint_tests,
    plausibility,
    recordings_agree,
    reduce_parameters,
    residual_runs,
    unseen_patterns,
)
from ..model import Model
from ..observe import (
    Equations,
    ResolvedPreparation,
    RowSource,
    equations_of,
    resolve_preparation,
)
from ..progress import Progress, Stage, no_stages, silent
from ..recording import RecordingsLike, load_recordings
from ..robot import AnyRobot, Robot, load_robot
from ..signals import whitened_series
from ..verdict import Reason, verdict_of
from .causes import with_causes
from .consistent import consistent_parameters, cost_cause, inertia_prior, is_costly
from .cutoff import with_cutoff
from .earlier_runs import as_earlier, check_joinable, with_earlier_runs
from .findings import LogFinding, log_findings, moving_sources, with_findings
from .fitting import ArmFit, column_name, fit_sources
from .folds import Folds
from .inputs import Inputs, Labelled, inputs_of, model_of, settings_of, sources_of, with_found_inertias
from .log_faults import refuse_removed_gravity
from .mounting import MOUNTING
from .nonlinear import NonlinearFit, estimate_nonlinear
from .payload_gains import check_same_gains, payload_and_notes
from .plain_fit import PlainFit
from .reasons import cautions_of, judged, notes_of, set_up_reasons
from .regularisation import drawn_estimate, regularisation_note, regularised_fit, settings_for_chosen
from .result import ConditionNumbers, Identification, Trained
from .run_files import RunLike, load_run
from .selection import Selection, SelectionStep, select_effects
from .settings import FACTOR_METHODS, Settings
from .widened import state_sums, widening_of

if TYPE_CHECKING:
    from ..consistency import StandardParameters


def identify(
    robot: AnyRobot,
    recordings: RecordingsLike,
    validation: RecordingsLike = (),
    settings: Settings | None = None,
    *,
    payload: str | None = None,
    earlier: Sequence[RunLike] = (),
    stage: Stage = no_stages,
) -> Identification:
    """Identify an arm from recordings, with a verdict on how far the result can be trusted.

    Args:
        robot: The arm, its catalogue name or the path of its file.
        recordings: Recordings to fit, or the paths of their logs; those with a payload say so.
        validation: Recordings or paths to judge by; without any, the last part of each recording is held out.
        settings: Choices; the defaults if not given.
        payload: ``none``, ``loaded`` or ``paired``; None: as the recordings say.
        earlier: Runs, or their folders, of the same arm and filter whose factors count too; their recordings are not
            read again.
        stage: Called with the stage name; returns a progress callback.

    Raises:
        SteelyardError: If an input has to be corrected; the message says how.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> noise = steelyard.Noise("white", (0.5, 0.05))
        >>> experiment = steelyard.Experiment(record_rate=100, motor_noise=noise)
        >>> run = steelyard.simulate("scara_2r", motion, experiment, seeds=[0, 1])
        >>> first, second = (steelyard.recording_of(run, number) for number in (0, 1))
        >>> found = steelyard.identify("scara_2r", first, validation=second)
        >>> found.verdict.grade, round(found.values()["ZZ1R"], 1)
        ('fair', 3.4)
    """
    robot, settings = load_robot(robot), settings_of(settings)
    runs = [load_run(run) for run in earlier]
    if runs:
        check_joinable(settings.method)
        settings = as_earlier(settings, runs)
    stage("reading")
    given = (load_recordings(robot, recordings), load_recordings(robot, validation, "validation"))
    stage("preparing")
    inputs = inputs_of(*given, settings)
    model = model_of(robot, inputs.training, inputs.unseen, settings, payload)
    findings, dead = log_findings(model, inputs, settings)
    resolved = resolve_preparation(settings.preparation, [recording for _, recording in inputs.training])
    try:
        chosen = _chosen_model(model, inputs, resolved, settings, stage, dead)
        equations, settings = chosen.equations, chosen.settings
        sources = sources_of(inputs.training, equations, chosen.resolved)
        check_same_gains(sources, [run.content for run in runs])
        unseen, still = moving_sources(sources_of(inputs.unseen, equations, chosen.resolved), bool(inputs.held_out))
        fit = fit_sources(sources, equations, settings, stage("estimating"))
        fit = chosen.nonlinear.completed(fit)
    except EstimateError as error:
        raise with_findings(error, findings) from error
    fit = chosen.regularised(fit)
    if runs:
        fit = replace(fit, estimate=with_earlier_runs(fit, equations, runs))
    found = _examined(inputs, sources, unseen, fit, settings, (*findings, *still), stage, chosen.steps)
    found = replace(
        found, nonlinear=chosen.nonlinear.parameters, selection=chosen.selection,
        notes=(*found.notes, *chosen.notes(fit)),
    )  # fmt: skip
    stage("grading")
    cautions = _cautions(found, unseen, fit, settings)
    found = replace(found, verdict=judged(found, [*chosen.set_up, *cautions]))
    return replace(found, verdict=with_causes(found, inputs, stage))


@dataclass(frozen=True)
class _ChosenModel:
    """The model that is fitted, and how it came about.

    Attributes:
        equations: Its equations.
        resolved: The preparation of the recordings.
        settings: Settings with what was chosen.
        set_up: Zeros and gains of joints that seem wrong.
        selection: How effects were chosen; None if they were given.
        prior: The robot whose link inertias are trusted, if any.
        nonlinear: Nonlinear parameters that were asked for.
        recordings: The recordings to fit.
    """

    equations: Equations
    resolved: ResolvedPreparation
    settings: Settings
    set_up: Sequence[Reason]
    selection: Selection | None
    prior: Robot | None
    nonlinear: NonlinearFit
    recordings: Sequence[Labelled]

    @property
    def steps(self) -> tuple[SelectionStep, ...]:
        """Effects that joined the plain model."""
        return () if self.selection is None else self.selection.steps

    def regularised(self, fit: ArmFit) -> ArmFit:
        """Return the fit with chosen effects drawn to zero and links to usual ones, where effects were chosen."""
        if self.selection is None or not self._regularises:
            return fit
        part_of = Folds(self.recordings).numbered(fit.used)[0]
        return regularised_fit(fit, self.equations, self.selection.plain, self.prior, part_of)

    def notes(self, fit: ArmFit) -> list[str]:
        """Return what a reader should know of the choice, a sentence each."""
        notes = [*self.nonlinear.remarks]
        if self.selection is not None:
            notes.append(self.selection.text)
        return [*notes, regularisation_note(fit, self.equations, self.prior)] if self._regularises else notes

    @property
    def _regularises(self) -> bool:
        return bool(self.steps) and self.settings.method in FACTOR_METHODS


def _chosen_model(
    plain: Model,
    inputs: Inputs,
    resolved: ResolvedPreparation,
    settings: Settings,
    stage: Stage,
    dead: Collection[tuple[str, str]],
) -> _ChosenModel:
    """Return the model with the effects and nonlinear parameters that are asked for, as the recordings show them."""
    prior = inertia_prior(plain.robot, settings)[0]
    equations = equations_of(plain, without=dead)
    _check_protected(equations, settings)
    refuse_removed_gravity(equations, inputs.training, resolved, settings.threads)
    model, set_up, selection, drawn = plain, [], None, None
    if settings.chooses_effects:
        set_up = set_up_reasons(PlainFit(plain, inputs.training, settings, dead))
        progress = stage("choosing the cut-off")
        resolved, settings = with_cutoff(equations, inputs.training, resolved, settings, progress)
        progress = stage("choosing effects")
        model, selection = select_effects(plain, inputs.training, resolved, prior, settings, progress, without=dead)
        settings = settings_for_chosen(settings) if selection.steps else settings
        if "tilt" in model.effects:  # the estimate tells it
            set_up = [one for one in set_up if one.criterion != MOUNTING]
        if selection.steps and settings.method in FACTOR_METHODS:
            # Effects in proportion to torques of the links need good ones: free links beside many effects are none.
            drawn = partial(drawn_estimate, plain=selection.plain, prior=prior)
    model = with_found_inertias(model, inputs.training, resolved, settings, dead, drawn)
    nonlinear = NonlinearFit(model, resolved, (), None)
    if settings.nonlinear:
        progress = stage("estimating nonlinear parameters")
        nonlinear = estimate_nonlinear(
            model, inputs.training, resolved, settings, dead, progress, selected=selection is not None
        )
        model, resolved = nonlinear.model, nonlinear.resolved
        preparation = replace(settings.preparation, delay=resolved.chosen.delay)
        settings = replace(settings, sign_width=model.sign_width, preparation=preparation)
    settings = replace(settings, friction=None if model.friction == plain.robot.friction else model.friction)
    if model is not plain:
        equations = equations_of(model, without=dead)
    return _ChosenModel(equations, resolved, settings, set_up, selection, prior, nonlinear, inputs.training)


def _check_protected(equations: Equations, settings: Settings) -> None:
    """Refuse names of protected parameters that neither the model has nor effects that may be chosen."""
    further = set[str]()
    if settings.chooses_effects:
        owners = [one for body in equations.model.robot.actuated for one in (body.number, body.link, body.joint.name)]
        symbols = {symbol for effect in EFFECTS.values() for symbol in effect.symbols}
        further = {f"{symbol}{owner}" for symbol in symbols for owner in ("", *owners)}
    for name in settings.protected:
        if name.replace("[", "").replace("]", "") not in further:
            column_name(equations, name)


def _cautions(found: Identification, unseen: Sequence[RowSource], fit: ArmFit, settings: Settings) -> list[Reason]:
    """Return what the grade has to weigh beside errors and tests."""

    def error(estimate: Estimate) -> Evaluation:
        return _errors(unseen, [estimate], fit, settings, silent, [False])[0]

    plain_error = None if fit.plain is None else error(fit.plain)
    cause = None
    if found.standard is not None and is_costly(found.unseen_error_of_all, found.standard_error):
        cause = cost_cause(
            found.standard, found.equations, fit.of_links, settings, lambda estimate: error(estimate).relative_percent
        )
    return cautions_of(found, plain_error, cause)


def _examined(
    inputs: Inputs,
    sources: Sequence[RowSource],
    unseen: Sequence[RowSource],
    fit: ArmFit,
    settings: Settings,
    findings: tuple[LogFinding, ...],
    stage: Stage,
    steps: Sequence[SelectionStep] = (),
) -> Identification:
    """Reduce the model and test it on the recordings; the verdict is left open."""
    stage("choosing parameters")
    equations, resolved = sources[0].equations, sources[0].resolved
    protected = [column_name(equations, name) for name in settings.protected]
    repeated = recordings_agree(fit.observations, sources, fit.raw.columns)
    differs = disagreement(fit.observations, equations, repeated)
    left_out = _left_out(fit, equations)
    reduction = reduce_parameters(
        fit.estimate, settings.reduction, protected, left_out=left_out,
        hold=f"{differs.text}: no parameter is left out" if differs else "",
    )  # fmt: skip
    (fitted,) = _errors(sources, [reduction.estimate], fit, settings, stage("judging the fit"))
    stage("making it consistent")
    standard, note = consistent_parameters(equations, fit.of_links, settings, left_out)
    unseen_error, of_all, standard_error = _unseen_errors(
        unseen, reduction.estimate, standard, fit, settings, stage("judging unseen motion")
    )
    rows = sources if fit.robust is None else fit.robust.sources
    states = state_sums(fit, equations, fitted.extent, settings)
    tests = _tests(rows, reduction.estimate, fit, stage("testing residuals"), states)
    wider = states and widening_of(fit, reduction.estimate, states, inputs.training, equations, steps)
    least = settings.thresholds.pattern / 100
    beyond = unseen_patterns(unseen, reduction.estimate, fit.noise, tests, least)
    bias = _bias(inputs, rows, fit, settings, stage("looking for bias"))
    plausible = plausibility(equations, fit.of_data, fit.observations, fitted, unseen_error)
    payload, unknown = payload_and_notes(fit.estimate, fit.observations, sources)
    condition = ConditionNumbers(fit.raw.condition, fit.raw.normalised_condition, fit.estimate.system.condition)
    return Identification(
        settings, equations, resolved, fit, reduction, condition, _trained(inputs, sources), inputs.held_out, fitted,
        unseen_error, of_all, tests, repeated, bias, payload, standard, standard_error,
        plausible, verdict_of(()), (*notes_of(resolved, sources, fit), note, *unknown), findings, differs,
        tuple(sources), tuple(unseen), widening=wider, unseen_patterns=beyond,
    )  # fmt: skip


def _left_out(fit: ArmFit, equations: Equations) -> LeftOutBlocks:
    """Return the prediction of left-out blocks; torques of sliding and of turning joints are not added."""
    kinds = {body.joint.name: body.joint.kind for body in equations.model.robot.actuated}
    columns, weights = fit.estimate.columns, fit.estimate.weights
    return LeftOutBlocks(fit.observations, fit.used, weights, columns, lambda factor: kinds[factor.joint])


def _unseen_errors(
    unseen: Sequence[RowSource],
    essential: Estimate,
    standard: StandardParameters | None,
    fit: ArmFit,
    settings: Settings,
    progress: Progress,
) -> tuple[Evaluation, Evaluation, Evaluation | None]:
    """Return the errors of essential, of all and of consistent parameters on unseen recordings, in one pass."""
    wanted = [(essential, True)]
    if fit.estimate is not essential:
        wanted.append((fit.estimate, False))
    if standard is not None:
        wanted.append((standard.base, True))
    estimates, decimated = zip(*wanted, strict=True)
    errors = _errors(unseen, estimates, fit, settings, progress, decimated)
    of_all = errors[0] if fit.estimate is essential else errors[1]
    return errors[0], of_all, None if standard is None else errors[-1]


def _errors(
    sources: Sequence[RowSource],
    estimates: Sequence[Estimate],
    fit: ArmFit,
    settings: Settings,
    progress: Progress,
    decimated: Sequence[bool] = (True,),
) -> list[Evaluation]:
    """Return the errors of estimates on recordings together; with ``decimated``, those of decimated rows too."""
    found = []
    for done, source in enumerate(sources, 1):
        found.append(evaluate_each(source, estimates, fit.noise, settings.evaluation_cutoff, decimated))
        progress(done, len(sources))
    return [combined(of_one) for of_one in zip(*found, strict=True)]


def _tests(
    sources: Sequence[RowSource], estimate: Estimate, fit: ArmFit, progress: Progress, states: StateSums | None
) -> tuple[JointTests, ...]:
    """Test the residuals of every equation over all recordings, the noise of each taken at its own size."""
    equations, also = sources[0].equations, None if states is None else states.take
    per_source = [residual_runs(source, estimate, also) for source in sources]
    found = []
    for e, (kind, joint) in enumerate(equations.kinds_joints):
        residuals, whitened, signals = [], [], {}
        for source, of_source in zip(sources, per_source, strict=True):
            deviation = fit.noise.deviations.get((source.label, kind, joint))
            if deviation is None:
                continue
            residuals += of_source[e].residual
            whitener = fit.noise.whitening.whitener((kind, joint))
            whitened += [run / deviation for run in whitened_series(whitener, of_source[e].residual)]
            for name, runs in of_source[e].signals.items():
                signals.setdefault(name, []).extend(runs)
        if not residuals:
            raise EstimateError(f"joint '{joint}' ({kind} torque) has no usable rows; does it move at all?")
        size = float(np.sqrt(np.mean(np.concatenate(residuals) ** 2)))
        prismatic = equations.model.robot.joint(joint).kind == "prismatic"
        complete = {name: runs for name, runs in signals.items() if len(runs) == len(residuals)}
        found.append(joint_tests((kind, joint), residuals, whitened, complete, fit.noise, size, prismatic=prismatic))
        progress(e + 1, len(equations.kinds_joints))
    return tuple(found)


def _bias(
    inputs: Inputs, sources: Sequence[RowSource], fit: ArmFit, settings: Settings, progress: Progress
) -> Bias | None:
    # The refits are of least squares: they say nothing of a method that does not use these rows.
    if settings.bias_repeats < 1 or settings.method not in FACTOR_METHODS:
        return None
    recordings = [recording for _, recording in inputs.training]
    return estimate_bias(
        recordings, sources, fit.of_rows, fit.whitening, settings.bias_repeats, settings.seed, progress, used=fit.used
    )


def _trained(inputs: Inputs, sources: Sequence[RowSource]) -> tuple[Trained, ...]:
    return tuple(
        Trained(
            label=label,
            files=tuple((file.path, file.sha256) for file in recording.sources),
            payload=source.payload,
            samples=source.samples,
            masked=float(source.masked.max(initial=0.0)),
            notes=source.notes,
        )
        for (label, recording), source in zip(inputs.training, sources, strict=True)
    )
