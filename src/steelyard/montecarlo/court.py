"""The Monte-Carlo court: any estimators on any arm and motion, over noise levels, seeds and starts."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import SimulationError, require_type
from ..model import BaseParameter, build_model
from ..progress import Progress, silent
from ..simulate.truth import plant_model
from ..text import short_repr
from .arrangement import Arrangement
from .bound import Bound, cramer_rao_bound
from .noises import noises_of
from .processes import finished_jobs
from .runs import NOT_SIMULATED, CaseRuns, joined
from .store import RunStore
from .study import Case, Study
from .verdict import CaseVerdict, judged_cases
from .workshop import SMOOTH_WIDTHS, Job, Workshop

JOBS_A_PROCESS = 4
"""Jobs for each process at least, so that none waits long for the last."""


@dataclass(frozen=True, eq=False)
class Court:
    """What a study found.

    Attributes:
        study: Methods, seeds, noise levels, starts.
        parameters: The base parameters, c of them.
        true: Their true values (c,).
        bound: The Cramer-Rao bound at noise level 1.
        runs: Runs of every case, in the order of the study's seeds.
        verdicts: What they say, case by case.
        notes: What a reader should know, a sentence each.
    """

    __repr__ = short_repr

    study: Study
    parameters: tuple[BaseParameter, ...]
    true: np.ndarray
    bound: Bound
    runs: tuple[CaseRuns, ...]
    verdicts: tuple[CaseVerdict, ...]
    notes: tuple[str, ...]


def montecarlo(
    given: Arrangement,
    study: Study,
    folder: Path | None = None,
    processes: int = 1,
    progress: Progress = silent,
) -> Court:
    """Run every case of a study with every seed, and judge the estimators.

    The results are the same whatever the number of processes, and each seed gives the same numbers alone.

    Args:
        given: Arm, motion, experiment and settings of the fit.
        study: Methods, seeds, noise levels, starts.
        folder: Where finished runs are kept; those that are there already are not made again. None keeps nothing.
        processes: Processes that share the work; 1 works in this one.
        progress: Told how many runs are done.

    Raises:
        SteelyardError: If the arm cannot be simulated, not even with one seed, or the folder holds another study.
        KeyboardInterrupt: After an interrupt; runs that were finished are in the folder.
    """
    require_type(given, Arrangement, "given", "what arrangement(robot, motion, ...) returns", SimulationError)
    require_type(study, Study, "study", "Study(...)", SimulationError)
    if processes < 1:
        raise SimulationError(f"processes: got {processes}, needed is at least 1")
    workshop = Workshop(given)
    _check_noise(workshop)
    for method in study.methods:  # refuses settings that do not go with a method before anything is run
        replace(workshop.settings, method=method)
    names = workshop.equations.names
    store = None if folder is None else RunStore(folder, given.fingerprint)
    kept = {} if store is None else {case: store.read(case, names) for case in study.cases}
    parts = {case: [] if (known := kept.get(case)) is None else [known] for case in study.cases}
    jobs = _missing(study, parts, _seeds_together(workshop, study, processes))
    total = len(study.cases) * study.seeds
    done = total - sum(len(job.seeds) * len(job.cases) for job in jobs)
    progress(done, total)
    # Closed at once when something goes wrong here: then the processes end too.
    with closing(_finished(given, workshop, jobs, processes)) as finished:
        for found in finished:
            for runs in found:
                parts[runs.case].append(runs)
                if store is not None:
                    store.write(runs)
                done += len(runs.seeds)
            progress(done, total)
    runs = tuple(joined(parts[case]).chosen(study.all_seeds) for case in study.cases)
    _check_simulated(study, runs)
    return _judged(workshop, study, runs)


def _check_noise(workshop: Workshop) -> None:
    if not noises_of(workshop.experiment):
        raise SimulationError(
            "the experiment has no noise, so that every run would be the same; give motor_noise, joint_noise, "
            "position_noise or disturbance in [simulate]"
        )


def _check_simulated(study: Study, runs: Sequence[CaseRuns]) -> None:
    """Refuse to judge methods that never got a recording."""
    messages = [text for one in runs for text in one.failures]
    if all(text.startswith(NOT_SIMULATED) for text in messages):
        levels = ", ".join(f"{level:g}" for level in study.noise_levels)
        raise SimulationError(
            f"no experiment could be simulated: all {study.seeds} seeds failed at noise level {levels}; "
            f"seed {study.first_seed} {messages[0].removeprefix(NOT_SIMULATED)}"
        )


def _seeds_together(workshop: Workshop, study: Study, processes: int) -> int:
    fair = -(-study.seeds * len(study.noise_levels) // (JOBS_A_PROCESS * processes))
    return max(1, min(workshop.seeds_together, fair))


def _missing(study: Study, parts: dict[Case, list[CaseRuns]], together: int) -> list[Job]:
    """Return the jobs that are left: seeds that the same cases lack, so many together."""
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


def _finished(
    given: Arrangement, workshop: Workshop, jobs: Sequence[Job], processes: int
) -> Generator[list[CaseRuns], None, None]:
    if processes > 1 and len(jobs) > 1:
        yield from finished_jobs(given, jobs, processes)
        return
    for job in jobs:
        yield workshop.run(job)


def _judged(workshop: Workshop, study: Study, runs: tuple[CaseRuns, ...]) -> Court:
    equations, bound = workshop.equations, cramer_rao_bound(workshop)
    verdicts = judged_cases(runs, equations.base.base, workshop.true, bound.sigma)
    return Court(study, equations.base.base, workshop.true, bound, runs, verdicts, tuple(_notes(workshop, bound)))


def _notes(workshop: Workshop, bound: Bound) -> Iterator[str]:
    if bound.reason:
        about = "Cramer-Rao bound" if bound.sigma is not None else "no Cramer-Rao bound"
        yield f"{about}: {bound.reason}"
    if workshop.preparation is not workshop.settings.preparation:
        width = workshop.undisturbed.experiment.sign_width or 0.0
        yield (
            f"the sign of simulated friction is smooth over {width:.2g} rad/s: samples slower than "
            f"{SMOOTH_WIDTHS:g} times that are left out, as no model here has it"
        )
    model, arm = workshop.equations.model, plant_model(workshop.robot, sign_width=1.0)
    unfelt = {"joint": "motor", "difference": "link"}.get(model.measured)
    lacking = {one.effect for one in arm.parameters if one.effect not in model.effects and one.side != unfelt}
    if lacking:
        told = ", ".join(effect for effect in arm.effects if effect in lacking)
        yield f"the simulated arm has {told}, which the fitted model leaves out: this shows as bias"
    added = [effect for effect in model.effects if effect not in build_model(workshop.robot).effects]
    if added:
        yield f"beyond the arm's own default the fitted model has {', '.join(added)}"
