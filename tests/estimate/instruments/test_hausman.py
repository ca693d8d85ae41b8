"""The test of least squares: it rejects as often as it says, and finds out what is biased."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from estimate.instruments.disturbed_scara import GAINS, equations, evidence_of, moves, true_values
from steelyard.estimate import Endogeneity, Evidence
from steelyard.estimate.gls import noise_around
from steelyard.estimate.instruments import InstrumentSettings, direct_and_inverse, instrumental_variables
from steelyard.estimate.instruments import solution as module
from steelyard.estimate.instruments.iterations import IterationSolution
from steelyard.estimate.instruments.pairs import MovingRows, Twins, whitened_pairs
from steelyard.estimate.instruments.simulated import SimulatedMotion
from steelyard.estimate.instruments.solution import WHOLE, InstrumentSolution, hausman_test
from steelyard.observe import Preparation, row_source
from steelyard.papers.p1_motion import CASES, scara_run
from steelyard.robot import load_robot
from steelyard.signals.whitening import LARGEST_REFLECTION
from steelyard.simulation import Experiment, Noise, recording_of, simulate

PERSISTENT = Noise("correlated", (2.0, 0.1), 3.0)
BAND_LIMITED = Noise("band_limited", (2.0, 0.1), 20.0)


class QuietRuns:
    """Runs whose motion is exact, so that least squares is not biased, with a coloured noise on the torques."""

    def __init__(self, noise: Noise, decimation: int, seeds: int) -> None:
        experiment = Experiment(record_rate=100, control_rate=200, plant="ideal", motor_noise=noise)
        self._run, self.seeds = simulate(load_robot("scara_2r"), moves(8), experiment, range(seeds)), seeds
        preparation = Preparation(20.0, 4, decimation=decimation, trim=20, standstill=(0.02, 0.1))
        self._first = evidence_of(recording_of(self._run), preparation)
        self.settings = InstrumentSettings(control_rate=200)
        # The motion is that of every seed, and so is that of the true arm.
        self._simulated = SimulatedMotion(self._first, self.settings).sources(true_values(self._run))

    def evidence(self, index: int) -> Evidence:
        resolved = self._first.sources[0].resolved
        return replace(self._first, sources=(row_source(recording_of(self._run, index), equations(), resolved, "run"),))

    def twins(self, evidence: Evidence) -> Twins:
        return MovingRows(evidence, None).twins(self._simulated)

    def tests(self) -> Iterator[tuple[Endogeneity, Endogeneity]]:
        """Yield the test of every seed, and that of all rows with the noise model of the estimate."""
        for index in range(self.seeds):
            evidence = self.evidence(index)
            columns, twins = evidence.columns, self.twins(evidence)
            first = InstrumentSolution(whitened_pairs(twins, columns, evidence.noise))
            solved = IterationSolution(first.values, first.covariance, first.change_from)
            noise = noise_around(twins.real, evidence.plain.system, solved.values, solved.covariance)
            whitened = InstrumentSolution(whitened_pairs(twins, columns, noise))
            test, doubts = hausman_test(evidence, twins, solved, noise, whitened)
            assert doubts == ()
            yield test, whitened.endogeneity()


@pytest.mark.large
@pytest.mark.parametrize(("noise", "decimation"), [(PERSISTENT, 2), (BAND_LIMITED, 1)])
def test_least_squares_that_is_not_biased_is_rejected_as_often_as_the_test_says(noise, decimation):
    """Rows near standstill, decimated, or a noise model of order 4, at the full rate, would reject far more often."""
    tests, naive = zip(*QuietRuns(noise, decimation, 200).tests(), strict=True)
    assert 0.02 < np.mean([test.p < 0.05 for test in tests]) < 0.08
    assert np.mean([test.statistic for test in tests]) == pytest.approx(1.0, abs=0.15)
    assert np.mean([test.statistic for test in naive]) > 1.18


def test_rows_with_bridged_samples_in_their_window_are_not_tested():
    runs = QuietRuns(PERSISTENT, 2, 1)
    evidence = runs.evidence(0)
    shares = np.concatenate([block.share.ravel() for block in runs.twins(evidence).real[0]])
    ((test, naive),) = runs.tests()
    assert sum(naive.freedom) == np.sum(shares >= 0.5) - 8
    assert sum(test.freedom) == np.sum(shares >= WHOLE) - 8 < sum(naive.freedom)
    for method in (instrumental_variables, direct_and_inverse):
        reported = method(evidence, runs.settings, {}).endogeneity
        assert reported is not None
        assert reported.freedom == test.freedom


@pytest.mark.parametrize(("decimation", "whole"), [(10, 24), (12, 8)])
def test_too_few_rows_away_from_standstill_are_reported(decimation, whole):
    """Of 24 rows 10 are left beyond 14 unknowns; 8 parameters are not identifiable from 8 rows."""
    runs = QuietRuns(PERSISTENT, decimation, 1)
    evidence = runs.evidence(0)
    shares = np.concatenate([block.share.ravel() for block in runs.twins(evidence).real[0]])
    assert np.sum(shares >= WHOLE) == whole
    found = instrumental_variables(evidence, runs.settings, {})
    assert found.endogeneity is not None
    assert sum(found.endogeneity.freedom) == np.sum(shares >= 0.5) - 8
    assert any(
        note.startswith("the Durbin-Wu-Hausman test has too few rows away from standstill") for note in found.notes
    )


def test_runs_shorter_than_the_higher_order_keep_the_noise_model_of_the_estimate(monkeypatch):
    monkeypatch.setattr(module, "FINE_ORDER", 120)
    ((test, naive),) = QuietRuns(BAND_LIMITED, 1, 1).tests()
    assert (test.statistic, test.freedom) == (naive.statistic, naive.freedom)


def test_noise_that_no_predictor_frees_of_its_colour_keeps_the_noise_model_of_the_estimate(monkeypatch):
    persistent = np.zeros(0)
    for _ in range(12):  # up the Levinson recursion: every reflection as large as is allowed
        persistent = np.append(persistent - LARGEST_REFLECTION * persistent[::-1], LARGEST_REFLECTION)

    def too_persistent(*given):
        noise = noise_around(*given)
        return replace(noise, coefficients=dict.fromkeys(noise.coefficients, persistent))

    monkeypatch.setattr(module, "noise_around", too_persistent)
    ((test, naive),) = QuietRuns(BAND_LIMITED, 1, 1).tests()
    assert (test.statistic, test.freedom) == (naive.statistic, naive.freedom)


@pytest.mark.parametrize("case", [pytest.param("none", marks=pytest.mark.large), "full"])
def test_least_squares_of_a_disturbed_arm_is_found_out(case):
    found = instrumental_variables(
        evidence_of(recording_of(scara_run(range(1), 1.0)), CASES[case]), InstrumentSettings(**GAINS, most_rounds=3), {}
    )
    assert found.endogeneity is not None
    assert found.endogeneity.p < 1e-10
