"""Leaving out parameters costs nothing on unseen motion, and sigmas do not jump with the share that is held out."""

from __future__ import annotations

import pytest

from data_folder import data_folder
from from_benchmarks import benchmark_module

essential = benchmark_module("essential")


def judged(found):
    """Check both."""
    rarely_worse(found)
    without_jumps(found)


def rarely_worse(found):
    """Check that at most one in twenty is worse than all parameters by 5 %."""
    worse = [(one.name, one.share, one.reduced_percent, one.all_percent) for one in found if one.is_worse]
    assert len(worse) <= 0.05 * len(found), worse


def without_jumps(found):
    """Check that no sigma jumps between neighbouring shares by more than 2 where motion and blocks of time do not."""
    jumps = [(one.name, one.share, one.column, one.unconfirmed_jump) for one in found]
    assert [jump for jump in jumps if jump[-1] > essential.LARGEST_JUMP] == []


@pytest.mark.large
def test_a_simulated_arm_with_slow_residuals():
    judged(list(essential.outcomes(essential.simulated_case("scara_2r", essential.SLOW_POLE), (0.25, 0.3, 0.35))))


@pytest.fixture(scope="module")
def simulated():
    poles = (0.0, essential.SLOW_POLE)
    cases = [essential.simulated_case(name, pole) for name in essential.ARMS for pole in poles]
    return [one for case in cases for one in essential.outcomes(case)]


@pytest.fixture(scope="module")
def real():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_DATA", str(data_folder()))
        return [one for case in essential.real_cases() for one in essential.outcomes(case)]


@pytest.mark.large
def test_every_simulated_arm(simulated):
    judged(simulated)


@pytest.mark.large
@pytest.mark.data
def test_the_reduced_models_of_simulated_and_real_arms(simulated, real):
    rarely_worse([*simulated, *real])


@pytest.mark.large
@pytest.mark.data
def test_the_sigmas_of_every_real_recording(real):
    without_jumps(real)
