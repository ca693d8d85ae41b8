"""P1's Kalman filter and recursive least squares beside weighted least squares (P1.7, P1.8, Table 2)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import EstimateError
from ..estimate import Estimated, Evidence, with_correlated_noise
from ..estimate.kalman import KalmanSettings, kalman_filter, kalman_filters
from ..estimate.kalman.discrete import Integrator
from ..estimate.recursive import RecursiveSettings, recursive_least_squares
from ..observe import prepared_blocks
from ..progress import Progress, silent
from ..simulate import SimulatedRun
from .fits import PaperFit
from .scara import CASES, NAMES, RATE, SIGN_WIDTH, CaseFits, case_fits, paper_values

ROUGH = (1.0, 1e-3, 1e-1, 1e-1, 1e-1, 1e-3, 1e-3, 1e-1)
"""Case 2's start, in the order of the paper's parameters."""

FREE = {"Fv1": 1e-3, "LMY2": 1e-3}
"""Parameters that case 3 leaves free, with their start; the others start at the weighted least-squares result."""

SETTLED = 0.05
REPEATS = 5
"""Of each method's timing: the shortest is least disturbed by other work."""


@dataclass(frozen=True)
class FilterCase:
    """A case of P1.7 as it is printed: variances of the start, of the positions, and of the states for each step."""

    start: tuple[float, ...]
    variances: tuple[float, ...]
    positions: tuple[float, float]
    states: float

    def prior(self) -> dict[str, tuple[float, float]]:
        """Return start and deviation by column."""
        return {
            column: (value / scale, float(np.sqrt(variance)) / scale)
            for (column, scale), value, variance in zip(NAMES.values(), self.start, self.variances, strict=True)
        }

    def settings(self, integrator: Integrator = "euler") -> KalmanSettings:
        """Return the filter's settings; the state's first variance is 10 in every case."""
        return KalmanSettings(
            integrator=integrator, process="state", state_noise=float(np.sqrt(self.states)), start="zero",
            position_noise=tuple(float(np.sqrt(each)) for each in self.positions),
            state_deviation=float(np.sqrt(10.0)), sign_width=SIGN_WIDTH, torque="held",
        )  # fmt: skip


CASE_1 = FilterCase((0.0,) * 8, (1e5,) * 8, (1e-3, 1e-2), 1e-2)
CASE_2 = FilterCase(ROUGH, (10.0,) + (1.0,) * 7, (1e-3, 1e-2), 1e-2)


def case_3(least_squares: np.ndarray) -> FilterCase:
    """Return case 3 for a weighted least-squares result (8,) in the paper's parameters."""
    start = tuple(FREE.get(name, float(value)) for name, value in zip(NAMES, least_squares, strict=True))
    return FilterCase(start, tuple(1.0 if name in FREE else 1e-3 for name in NAMES), (1e-4, 1e-2), 1e-4)


@dataclass(frozen=True, eq=False)
class Filters:
    """What the filters find, for every seed.

    Attributes:
        case_1: What is said of case 1.
        cases: Results of cases 2 and 3, and of case 3 with Runge and Kutta's integration.
        recursive: Recursive least squares on the fully filtered rows.
        least_squares: The weighted least-squares fits on the same rows.
        velocity: rms error of velocities, (2,) [rad/s], of the zero-phase filter and of case 3.
        seconds: Processor time of one experiment by method.
    """

    case_1: str
    cases: Mapping[str, tuple[Estimated, ...]]
    recursive: tuple[Estimated, ...]
    least_squares: CaseFits
    velocity: Mapping[str, np.ndarray]
    seconds: Mapping[str, float]

    def values(self, case: str) -> np.ndarray:
        """Return the estimates of a case in the paper's parameters (8, seeds)."""
        return np.column_stack([paper_values(each.estimate) for each in self.cases[case]])

    def relative_sigmas(self, case: str) -> np.ndarray:
        """Return relative sigmas [%] of a case (8, seeds)."""
        columns = self.cases[case][0].estimate.columns
        order = [columns.index(column) for column, _ in NAMES.values()]
        return np.column_stack([each.estimate.relative_sigma[order] for each in self.cases[case]])


def p1_filters(run: SimulatedRun, full: CaseFits, progress: Progress = silent) -> Filters:
    """Run every filter on every simulated experiment.

    Args:
        run: The experiments.
        full: Their weighted least-squares fits with full filtering.
        progress: Told how far it is.
    """
    evidences = [evidence_of(fit) for fit in full.fits]
    good = [case_3(values) for values in full.values.T]
    cases = {"case 2": tuple(_all_good(kalman_filters(evidences, CASE_2.settings(), CASE_2.prior())))}
    progress(1, 4)
    integrators: dict[str, Integrator] = {"case 3": "euler", "case 3, RK4": "rk4"}
    for done, (name, integrator) in enumerate(integrators.items(), 2):
        cases[name] = tuple(
            kalman_filter(evidence, case.settings(integrator), case.prior())
            for evidence, case in zip(evidences, good, strict=True)
        )
        progress(done, 4)
    recursive = tuple(recursive_least_squares(each, RecursiveSettings(), {}) for each in evidences)
    progress(4, 4)
    velocity = {"zero-phase filter": _filter_errors(run, full), "case 3": _history_errors(run, cases["case 3"])}
    return Filters(_case_1(evidences[0]), cases, recursive, full, velocity, _seconds(run, evidences[0], good[0]))


def evidence_of(fit: PaperFit) -> Evidence:
    """Return what an estimator is given, from a fit of the paper."""
    noise = with_correlated_noise(fit.sources, fit.estimate).noise
    return Evidence(fit.sources, fit.sources[0].equations, fit.estimate, noise)


def _all_good(found: Sequence[Estimated | EstimateError]) -> Iterator[Estimated]:
    for each in found:
        if isinstance(each, EstimateError):
            raise each
        yield each


def _case_1(evidence: Evidence) -> str:
    (found,) = kalman_filters([evidence], CASE_1.settings(), CASE_1.prior())
    return str(found) if isinstance(found, EstimateError) else "it ran"


def _filter_errors(run: SimulatedRun, full: CaseFits) -> np.ndarray:
    """Return the rms error of the low-passed, differentiated velocities (2,), all experiments together."""
    squares = []
    for seed, fit in enumerate(full.fits):
        for block in prepared_blocks(fit.sources[0]):
            squares.append((block.qd - run.qd[seed][:, _places(block.time)]) ** 2)
    return np.sqrt(np.concatenate(squares, axis=1).mean(axis=1))


def _history_errors(run: SimulatedRun, found: Sequence[Estimated]) -> np.ndarray:
    squares = []
    for seed, each in enumerate(found):
        history = each.history
        assert history is not None
        assert history.qd is not None
        squares.append((history.qd - run.qd[seed][:, _places(history.time)]) ** 2)
    return np.sqrt(np.concatenate(squares, axis=1).mean(axis=1))


def _places(times: np.ndarray) -> np.ndarray:
    return np.round(times * RATE).astype(int)


def _seconds(run: SimulatedRun, evidence: Evidence, good: FilterCase) -> dict[str, float]:
    """Return the shortest processor time of some repeats of one experiment; compiling is not counted, it is done."""
    found = {}
    for name, work in (
        ("weighted least squares", lambda: case_fits(run, evidence.equations, CASES["full"], seeds=1)),
        ("recursive least squares", lambda: recursive_least_squares(evidence, RecursiveSettings(), {})),
        ("Kalman filter, case 3", lambda: kalman_filter(evidence, good.settings(), good.prior())),
    ):
        repeats = []
        for _ in range(REPEATS):
            start = time.process_time()
            work()
            repeats.append(time.process_time() - start)
        found[name] = min(repeats)
    return found
