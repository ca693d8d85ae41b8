"""Monte Carlo studies: any estimators on any arm and motion, over noise levels, seeds and starts.

Finished runs are saved in a folder, so that an interrupted study can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..archive import ArchiveError, read_arrays
from ..errors import FileError, SimulationError, WorkerError, require_type
from ..files import opened_aside, write_aside
from ..model import BaseParameter, build_model
from ..plain_data import frame_of, plain
from ..progress import Progress, silent
from ..simulation.plant import plant_model
from ..text import html_table, short_repr
from ..workers import Shared, Workers, open_workers
from .bound import Bound, cramer_rao_bound
from .configuration import Case, StudyConfiguration, StudySettings, noises_of
from .experiments import SMOOTH_WIDTHS, Job, SimulatedExperiments, run_job
from .figures import plot_bias, plot_coverage, plot_sigmas, plot_times, to_html
from .statistics import ARRAYS, NOT_SIMULATED, CaseRuns, IntervalChecks, joined
from .verdict import CaseVerdict, ParameterVerdict, judged_cases, sentences

if TYPE_CHECKING:
    import polars

STUDY_FILE = "study.json"
_DIFFERENCES = {
    "robot": "another arm",
    "motion": "another trajectory",
    "simulate": "other settings of the experiment",
    "identify": "other settings of the fit",
    "steelyard": "another version of steelyard",
}


class RunStore:
    """Runs of one study in a folder; each file holds some seeds of one case and is complete or absent."""

    def __init__(self, folder: Path, fingerprint: Mapping[str, str]) -> None:
        """Open the folder, or make it.

        Raises:
            FileError: If the folder holds runs of something else, or cannot be read.
        """
        self.folder = folder
        known = _known(folder / STUDY_FILE)
        if known is None:
            write_aside(folder / STUDY_FILE, json.dumps(dict(fingerprint), indent=2) + "\n")
            return
        other = [text for key, text in _DIFFERENCES.items() if known.get(key) != fingerprint.get(key)]
        if other:
            raise FileError(
                f"'{folder}' holds runs of another study ({', '.join(other)}); give another folder with --out, or "
                "remove this one"
            )

    def write(self, runs: CaseRuns) -> None:
        """Write runs as one file, aside and renamed."""
        first, last = int(runs.seeds.min()), int(runs.seeds.max())
        arrays = {name: getattr(runs, name) for name in ARRAYS}
        texts = {"names": np.array(runs.names, dtype=np.str_), "failures": np.array(runs.failures, dtype=np.str_)}
        with opened_aside(self.folder / f"{runs.case.name}_{first:07d}_{last:07d}.npz") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, **texts)

    def read(self, case: Case, names: Sequence[str]) -> CaseRuns | None:
        """Return all runs of a case that are there, None if there are none.

        Raises:
            FileError: If a file is damaged.
        """
        digits = "[0-9]" * 7
        found = [_read(path, case) for path in sorted(self.folder.glob(f"{case.name}_{digits}*_{digits}*.npz"))]
        if not found:
            return None
        for part in found:
            if part.names != tuple(names):
                raise FileError(f"'{self.folder}' holds runs with other parameters; give another folder with --out")
        return joined(found)


def _known(path: Path) -> dict[str, str] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read '{path}' ({error}); give another folder with --out") from error


def _read(path: Path, case: Case) -> CaseRuns:
    try:
        content = read_arrays(path)
        arrays = {name: content[name] for name in ARRAYS}
        names, failures = (tuple(str(text) for text in content[name]) for name in ("names", "failures"))
    except (ArchiveError, KeyError, TypeError) as error:
        raise FileError(f"'{path}' is damaged; remove it, and its runs are made again") from error
    return CaseRuns(case, names, **arrays, failures=failures)


JOBS_A_PROCESS = 4
"""Jobs for each process at least, so that none waits long for the last."""


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Result of a study.

    Attributes:
        study: Methods, seeds, noise levels, starts.
        parameters: The base parameters, c of them.
        true: Their true values (c,).
        bound: The Cramer-Rao bound at noise level 1.
        runs: Runs of every case, in the order of the study's seeds.
        verdicts: Verdict of each case.
        notes: Notes for the reader, a sentence each.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> experiment = {"record_rate": 100, "plant": "ideal", "motor_noise": {"kind": "white", "std": [0.5, 0.05]}}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.true.shape, len(result.verdicts)
        ((8,), 1)
    """

    __repr__ = short_repr

    study: StudySettings
    parameters: tuple[BaseParameter, ...]
    true: np.ndarray
    bound: Bound
    runs: tuple[CaseRuns, ...]
    verdicts: tuple[CaseVerdict, ...]
    notes: tuple[str, ...]

    plot_bias = plot_bias
    plot_coverage = plot_coverage
    plot_sigmas = plot_sigmas
    plot_times = plot_times
    to_html = to_html

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``result.json``, without what a run folder adds."""
        return study_to_json(self)

    def to_frame(self) -> polars.DataFrame:
        """Return bias, spread and coverage of every parameter in every case, a row each."""
        return frame_of(
            [
                {"method": case["method"], "noise_level": case["noise_level"], "start": case["start"], **parameter}
                for case in self.to_json()["cases"]
                for parameter in case["parameters"]
            ]
        )

    def _repr_html_(self) -> str:
        """Return the figures of every case as notebooks show them."""
        rows = [
            (
                one.case.method, one.case.noise_level, one.case.start, one.runs, one.failures, one.rms_over_bound,
                None if one.mean_coverage is None else 100 * one.mean_coverage, one.seconds,
            )
            for one in self.verdicts
        ]  # fmt: skip
        columns = ("method", "noise", "start", "runs", "failed", "rms / bound", "coverage [%]", "time [s]")
        return html_table(columns, rows)


def montecarlo(
    given: StudyConfiguration,
    study: StudySettings,
    folder: Path | None = None,
    processes: int = 1,
    progress: Progress = silent,
    *,
    scheduler: str | None = None,
) -> StudyResult:
    """Run every case of a study with every seed, and judge the estimators.

    The results are the same whatever the number of workers, and each seed gives the same numbers alone.

    Args:
        given: Arm, motion, experiment and settings of the fit.
        study: Methods, seeds, noise levels, starts.
        folder: Where finished runs are saved; those that are there already are not run again. None saves nothing.
        processes: Processes that share the work; 1 works in this one.
        progress: Progress callback, counting runs.
        scheduler: Address of a Dask scheduler whose workers do the work instead, such as ``tcp://127.0.0.1:8786``.

    Raises:
        SteelyardError: If the arm cannot be simulated, not even with one seed, the folder holds another study, or the
            scheduler cannot be used.
        KeyboardInterrupt: After an interrupt; runs that were finished are in the folder.

    Example:
        >>> sin, cos = [[0.3, 0.1], [0.5, 0.2]], [[0.1, 0.2], [0.2, 0.3]]
        >>> motion = steelyard.fourier([0, 0], sin, cos, 5.0, ["joint_1", "joint_2"])
        >>> experiment = {"record_rate": 100, "motor_noise": {"kind": "white", "std": [0.5, 0.05]}}
        >>> given = steelyard.study_configuration("scara_2r", motion, experiment, {})
        >>> result = steelyard.montecarlo(given, steelyard.StudySettings(methods=("wls",), seeds=2))
        >>> result.to_frame().shape
        (8, 19)
    """
    require_type(given, StudyConfiguration, "given", "what study_configuration(robot, ...) returns", SimulationError)
    require_type(study, StudySettings, "study", "StudySettings(...)", SimulationError)
    if processes < 1:
        raise SimulationError(f"processes: got {processes}, needed is at least 1")
    with open_workers(scheduler, processes) as workers:
        return _studied(Shared(SimulatedExperiments, given), given, study, folder, workers, progress)


def _studied(
    shared: Shared[SimulatedExperiments],
    given: StudyConfiguration,
    study: StudySettings,
    folder: Path | None,
    workers: Workers,
    progress: Progress,
) -> StudyResult:
    experiments = shared.here
    _check_noise(experiments)
    for method in study.methods:  # refuses settings that do not go with a method before anything is run
        replace(experiments.settings, method=method)
    names = experiments.equations.names
    store = None if folder is None else RunStore(folder, given.fingerprint)
    saved = {} if store is None else {case: store.read(case, names) for case in study.cases}
    parts = {case: [] if (known := saved.get(case)) is None else [known] for case in study.cases}
    jobs = _missing(study, parts, _seeds_together(experiments, study, workers.count))
    total = len(study.cases) * study.seeds
    done = total - sum(len(job.seeds) * len(job.cases) for job in jobs)
    progress(done, total)
    # Closed at once when something goes wrong here: then the workers end too.
    with closing(workers.finished(run_job, shared, jobs)) as finished:
        for number, found in finished:
            if isinstance(found, WorkerError):
                seeds = jobs[number].seeds
                raise SimulationError(f"seeds {seeds[0]} to {seeds[-1]}: {found}") from found
            for runs in found:
                parts[runs.case].append(runs)
                if store is not None:
                    store.write(runs)
                done += len(runs.seeds)
            progress(done, total)
    runs = tuple(joined(parts[case]).chosen(study.all_seeds) for case in study.cases)
    _check_simulated(study, runs)
    return _judged(experiments, study, runs)


def _check_noise(experiments: SimulatedExperiments) -> None:
    if not noises_of(experiments.experiment):
        raise SimulationError(
            "the experiment has no noise, so that every run would be the same; give motor_noise, joint_noise, "
            "position_noise or disturbance in [simulate]"
        )


def _check_simulated(study: StudySettings, runs: Sequence[CaseRuns]) -> None:
    """Refuse to judge methods without a single recording."""
    messages = [text for one in runs for text in one.failures]
    if all(text.startswith(NOT_SIMULATED) for text in messages):
        levels = ", ".join(f"{level:g}" for level in study.noise_levels)
        raise SimulationError(
            f"no experiment could be simulated: all {study.seeds} seeds failed at noise level {levels}; "
            f"seed {study.first_seed} {messages[0].removeprefix(NOT_SIMULATED)}"
        )


def _seeds_together(experiments: SimulatedExperiments, study: StudySettings, processes: int) -> int:
    fair = -(-study.seeds * len(study.noise_levels) // (JOBS_A_PROCESS * processes))
    return max(1, min(experiments.seeds_together, fair))


def _missing(study: StudySettings, parts: dict[Case, list[CaseRuns]], together: int) -> list[Job]:
    """Return the jobs that are left: seeds missing in the same cases, so many in each job."""
    there = {case: {int(seed) for part in known for seed in part.seeds} for case, known in parts.items()}
    jobs = []
    for level in study.noise_levels:
        groups: dict[tuple[Case, ...], list[int]] = {}
        for seed in study.all_seeds:
            lacking = tuple(case for case in study.cases if case.noise_level == level and seed not in there[case])
            if lacking:
                groups.setdefault(lacking, []).append(seed)
        for cases, seeds in groups.items():
            jobs += [Job(level, tuple(seeds[k : k + together]), cases) for k in range(0, len(seeds), together)]
    return jobs


def _judged(experiments: SimulatedExperiments, study: StudySettings, runs: tuple[CaseRuns, ...]) -> StudyResult:
    equations, bound = experiments.equations, cramer_rao_bound(experiments)
    verdicts = judged_cases(runs, equations.base.base, experiments.true, bound.sigma)
    return StudyResult(
        study, equations.base.base, experiments.true, bound, runs, verdicts, tuple(_notes(experiments, bound))
    )


def _notes(experiments: SimulatedExperiments, bound: Bound) -> Iterator[str]:
    if bound.reason:
        about = "Cramer-Rao bound" if bound.sigma is not None else "no Cramer-Rao bound"
        yield f"{about}: {bound.reason}"
    if experiments.preparation is not experiments.settings.preparation:
        width = experiments.undisturbed.experiment.sign_width or 0.0
        yield (
            f"the sign of simulated friction is smooth over {width:.2g} rad/s: samples slower than "
            f"{SMOOTH_WIDTHS:g} times that are left out, as no model here has it"
        )
    model, arm = experiments.equations.model, plant_model(experiments.robot, sign_width=1.0)
    unmeasured = {"joint": "motor", "difference": "link"}.get(model.measured)
    lacking = {one.effect for one in arm.parameters if one.effect not in model.effects and one.side != unmeasured}
    if lacking:
        left_out = ", ".join(effect for effect in arm.effects if effect in lacking)
        yield f"the simulated arm has {left_out}, which the fitted model leaves out: this shows as bias"
    added = [effect for effect in model.effects if effect not in build_model(experiments.robot).effects]
    if added:
        yield f"beyond the arm's own default the fitted model has {', '.join(added)}"


def study_to_json(result: StudyResult) -> dict[str, Any]:
    """Return everything but times: the same study gives the same bytes."""
    study = result.study
    return plain(
        {
            "methods": study.methods,
            "seeds": {"first": study.first_seed, "count": study.seeds},
            "noise_levels": study.noise_levels,
            "starts": study.starts,
            "bound": {"is_known": result.bound.sigma is not None, "reason": result.bound.reason or None},
            "cases": [_case(verdict, runs) for verdict, runs in zip(result.verdicts, result.runs, strict=True)],
            "sentences": sentences(result.verdicts),
            "notes": result.notes,
        }
    )


def times_to_json(result: StudyResult) -> list[dict[str, Any]]:
    """Return the CPU time of a run's estimation in every case [s]."""
    return plain(
        [
            {**plain(runs.case), "median": verdict.seconds, "least": runs.times.min(), "most": runs.times.max()}
            for verdict, runs in zip(result.verdicts, result.runs, strict=True)
        ]
    )


def _case(verdict: CaseVerdict, runs: CaseRuns) -> dict[str, Any]:
    worst, least, pooled = verdict.worst_bias, verdict.smallest_coverage, verdict.pooled
    return {
        **plain(runs.case),
        "runs": verdict.runs,
        "failures": [
            {"seed": seed, "message": text}
            for seed, text in zip(runs.seeds, runs.failures, strict=True)
            if text
        ],
        "failure_rate": verdict.failures / verdict.runs,
        "failure_rate_interval": verdict.failure_interval,
        "worst_bias": None if worst is None else {
            "name": worst.name, "in_sigmas": worst.bias_in_sigmas, "significant": worst.is_biased,
        },
        "biased": [one.name for one in verdict.parameters if one.is_biased],
        "overconfident": [one.name for one in verdict.parameters if one.is_overconfident],
        "rms_over_bound": verdict.rms_over_bound,
        "mean_coverage": verdict.mean_coverage,
        "mean_coverage_least_by_chance": None if pooled is None else pooled.least,
        "mean_coverage_shown": None if pooled is None else pooled.shown,
        "smallest_coverage": None if least is None else {"name": least.name, "coverage": least.coverage},
        "checks_by_bound": _checks(verdict.checks_by_bound),
        "checks_as_reported": _checks(verdict.checks_as_reported),
        "parameters": [_parameter(one) for one in verdict.parameters],
        "not_estimated": verdict.not_estimated,
    }  # fmt: skip


def _checks(checks: IntervalChecks | None) -> dict[str, Any] | None:
    return None if checks is None else {"means_within_68": checks.means, "variances_within_90": checks.variances}


def _parameter(one: ParameterVerdict) -> dict[str, Any]:
    return {
        "name": one.name, "unit": one.unit, "true": one.true, "runs": one.runs, "mean": one.mean, "bias": one.bias,
        "bias_interval": one.bias_interval, "bias_p": one.bias_p, "bias_in_sigmas": one.bias_in_sigmas,
        "biased": one.is_biased, "spread": one.spread, "reported_sigma": one.reported_sigma,
        "bound_sigma": one.bound_sigma, "efficiency": one.efficiency,
        "efficiency_interval": one.efficiency_interval,
        "coverage": one.coverage, "coverage_interval": one.coverage_interval, "coverage_p": one.coverage_p,
        "overconfident": one.is_overconfident,
    }  # fmt: skip
