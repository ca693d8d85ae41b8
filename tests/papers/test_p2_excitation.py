"""P2's excitation with few starts: what must hold of any search holds, and figures are those of independent code."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.motion import limit_violations
from steelyard.papers.p2_excitation import (
    Effort,
    Excitation,
    excitation,
    excitation_claims,
    excitation_tables,
    p2_arm,
    random_motions,
)
from steelyard.papers.p2_sigmas import SigmaStudy, least_sigmas, sigma_claims, sigma_tables


@pytest.fixture(scope="module")
def stages():
    return []


@pytest.fixture(scope="module")
def found(stages) -> Excitation:
    def stage(name):
        stages.append(name)
        return lambda done, total: stages.append(done / total)

    return excitation(Effort(first=1, second=1, sweep=1, periods=(), random=2), 2, stage)


@pytest.mark.large
def test_every_motion_is_proven_and_the_stages_are_told(found, stages):
    claims = list(excitation_claims(found))
    assert claims[0].ours == "2 of 2"
    assert claims[0].holds
    names = [each for each in stages if isinstance(each, str)]
    assert names == ["optimisation A", "optimisation B", "random points at full speed", "other periods"]
    assert all(0 <= each <= 1 for each in stages if not isinstance(each, str))


@pytest.mark.large
def test_any_optimised_motion_beats_random_points_in_what_was_optimised(found):
    assert found.first.figures.raw < min(each.raw for each in found.random)
    assert found.first.figures.raw < 50
    assert len(found.first.figures.sigma) == 49


@pytest.mark.large
def test_gamma_is_the_largest_relative_miss_of_its_goals(found):
    second = found.second
    misses = [second.figures.raw / 35 - 1, *((38 - second.mean_torques[5:]) / (0.9 * 38) - 1)]
    assert second.value == pytest.approx(max(misses), rel=1e-9)


@pytest.mark.large
def test_tables_have_all_motions_and_periods(found):
    first, sweep, tightest = excitation_tables(found)
    assert [row[1] for row in first.rows] == [84.21, 34.01, 37.23]
    assert [row[0] for row in sweep.rows] == [20.0]
    assert all(row[-1] == 0 for row in tightest.rows)


@pytest.mark.large
def test_random_points_go_at_full_speed_and_keep_the_limits():
    arm = p2_arm()
    ready = arm.ready(arm.settings)
    (motion,) = random_motions(arm.limits.motion, ready.certifier, 1)
    assert motion.duration == pytest.approx(20.0)
    assert limit_violations(motion, arm.model.robot) == ()
    assert ready.certifier(motion).holds
    np.testing.assert_allclose(motion.extrema().velocity.value, arm.limits.motion.velocity, rtol=1e-9)


@pytest.mark.large
def test_no_motion_of_a_joint_goes_below_the_least_sigmas():
    """Columns of one joint alone, everything else known, at random speeds: numpy's covariance against the bound."""
    arm = p2_arm()
    unknowns = arm.ready(arm.settings).unknowns
    least = dict(zip(unknowns.columns, least_sigmas(unknowns, arm.limits.motion.velocity, 20.0), strict=True))
    rng = np.random.default_rng(3)
    highest = arm.limits.motion.velocity[1]
    sigma = bound = np.zeros(5)
    for speeds in (rng.uniform(-1, 1, 4000), rng.choice([-1.0, -1e-9, 1e-9, 1.0], 4000)):
        v = highest * speeds
        one, none = np.ones_like(v), np.zeros_like(v)
        motor = np.column_stack([v, np.sign(v), np.sign(v), one, one]) / 30.2
        sensor = np.column_stack([none, none, np.sign(v), none, one]) / 11.4
        rows = np.vstack([motor, sensor])
        sigma = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
        bound = np.array([least[name] for name in ("Fvm2", "Fcm2", "Fcl2", "offm2", "offl2")])
        assert (sigma >= bound * (1 - 1e-3)).all()
    # Standing still half of the time and at full speed otherwise is the best there is for viscous friction.
    assert sigma[0] == pytest.approx(bound[0], rel=0.01)
    assert least["XX2"] == least["Ia1"] == 0


@pytest.mark.large
def test_ratios_and_their_bound_are_told_by_criterion(found: Excitation):
    random = np.median([each.sigma for each in found.random], axis=0)
    unknowns = found.arm.ready(found.arm.settings).unknowns
    least = least_sigmas(unknowns, found.arm.limits.motion.velocity, 20.0)
    keys = [("condition", "5 harmonics of 20 s"), ("d", "5 harmonics of 20 s")]
    study = SigmaStudy(unknowns.columns, random, dict.fromkeys(keys, found.first), least)
    claims = list(sigma_claims(study))
    assert claims[0].ours == pytest.approx(np.median(random / found.first.figures.sigma))
    assert int((~study.is_inertial).sum()) == 27
    assert study.most < 2
    ratios, single = sigma_tables(study)
    assert [row[1] for row in ratios.rows] == ["condition", "d"]
    assert len(single.rows) == 49
    bounded = [row for row in single.rows if row[4] is not None]
    assert len(bounded) == 27
    assert [row[3] for row in single.rows] == pytest.approx(list(random / found.first.figures.sigma))
