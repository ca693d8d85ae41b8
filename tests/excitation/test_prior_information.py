"""What is known before an experiment: from the description, and from an earlier run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.errors import DesignError
from steelyard.excitation import DesignSettings, assembled, design_limits, known_after, known_of
from steelyard.excitation.assembly import Known
from steelyard.identification import SavedRun, Settings, identify, read_run, write_run
from steelyard.model import base_parameters, build_model
from steelyard.motion import fourier
from steelyard.robot import load_robot
from steelyard.run import RunFolder

SCARA, LWR4 = load_robot("scara_2r"), load_robot("kuka_lwr4")
MODEL = build_model(SCARA)
LIMITS = design_limits(SCARA)
RATE = 100.0
MOTION = fourier(
    [0.2, -0.3], [[0.4, -0.2], [0.5, -0.25]], [[-0.4, 0.1], [0.8, -0.2]], 6.0, ("joint_1", "joint_2")
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> SavedRun:
    folder = tmp_path_factory.mktemp("runs") / "first"
    folder.mkdir()
    found = identify(SCARA, [scara(1)], [scara(3)], Settings(bias_repeats=0))
    with RunFolder(folder, "identify") as saved:
        write_run(saved, {}, {}, found)
    return read_run(folder)


@pytest.fixture(scope="module")
def after(run) -> Known:
    return known_after(known_of(MODEL, LIMITS)[0], run, MODEL, LIMITS, RATE)


def test_a_description_tells_torques_and_sizes():
    known, notes = known_of(MODEL, LIMITS)
    assert notes == ()
    assert known.values["Fcm1"] == SCARA.values["Fcm1"]
    assert known.torques is not None
    assert known.torques.covariance is None
    assert not known.has_payload
    assert known.earlier is None


def test_a_payload_is_known_by_its_name():
    paired = build_model(LWR4, payload="paired")
    limits = design_limits(LWR4)
    first, second = (known_of(paired, limits, name)[0] for name in ("P5", "P2"))
    assert first.has_payload
    assert first.values["ML"] == LWR4.payloads["P5"][9]
    assert second.values["ML"] == LWR4.payloads["P2"][9]
    assert known_of(paired, limits)[0].values["ML"] == first.values["ML"]
    with pytest.raises(DesignError, match="knows no payload 'P3'; it knows: P5, P2"):
        known_of(paired, limits, "P3")


def test_what_is_not_known_is_said():
    without = replace(SCARA, links=tuple(replace(link, inertia=None) for link in SCARA.links))
    known, notes = known_of(build_model(without), LIMITS)
    assert known.torques is None
    assert known.values == {}
    assert notes == ("the robot's inertias are not known: torque limits could not be looked at",)
    known, notes = known_of(build_model(load_robot("ur10e"), payload="loaded"), design_limits(load_robot("ur10e")))
    assert not known.has_payload
    assert notes == ("the payload is not known: torque limits are kept for the arm without it",)


def test_after_a_run_its_own_numbers_are_known(run, after):
    estimate = run.estimate
    assert after.values == dict(zip(estimate.columns, estimate.values, strict=True))
    assert after.earlier is not None
    matrix, columns = after.earlier
    assert columns == estimate.columns
    np.testing.assert_allclose(matrix @ estimate.covariance, np.eye(len(columns)), atol=1e-6)
    assert after.torques is not None
    names = after.torques.model.names
    chi = dict(zip(names, after.torques.values, strict=True))
    assert all(chi[column] == value for column, value in zip(columns, estimate.values, strict=True))
    assert sum(value != 0 for value in chi.values()) == len(columns)


def test_noise_of_a_run_stands_for_its_rows_at_the_new_rate(run, after):
    """White noise of 0.5 and 0.02 N m at 100 Hz was simulated; rows are fewer and quieter by the same factor."""
    assert after.deviations is not None
    # The deviation of some 800 rows is known to 2.5 %, and positions add a few per cent: no more than 12 % in all.
    np.testing.assert_allclose(after.deviations, [0.5, 0.02], rtol=0.12)
    faster = known_after(known_of(MODEL, LIMITS)[0], run, MODEL, LIMITS, 4 * RATE)
    assert faster.deviations is not None
    np.testing.assert_allclose(faster.deviations, 2 * after.deviations)


def test_a_design_after_a_run_promises_what_both_tell(run, after):
    """Sigmas are those of the run's information stacked on the new rows."""
    assert after.deviations is not None
    ready = assembled(MODEL, LIMITS, DesignSettings(rate=RATE), after)
    figures = ready.forecast()(MOTION)
    base = base_parameters(MODEL)
    columns_of_base = [parameter.column for parameter in base.base]
    assert list(ready.unknowns.columns) == columns_of_base
    columns = [MODEL.names.index(name) for name in columns_of_base]
    count = int(RATE * MOTION.duration)
    there = MOTION.at((np.arange(count) + 0.5) / RATE)
    total = np.zeros((len(columns_of_base),) * 2)
    place = [columns_of_base.index(name) for name in run.estimate.columns]
    total[np.ix_(place, place)] = np.linalg.inv(run.estimate.covariance)
    for one in zip(there.q.T, there.qd.T, there.qdd.T, strict=True):
        W = MODEL.regressor(*one).full()[:, columns] / after.deviations[:, None]
        total += W.T @ W
    np.testing.assert_allclose(figures.sigma, np.sqrt(np.diag(np.linalg.inv(total))), rtol=1e-8)
    alone = assembled(MODEL, LIMITS, DesignSettings(rate=RATE), replace(after, earlier=None)).forecast()(MOTION)
    assert (figures.sigma < alone.sigma).all()
    assert (figures.sigma[place] <= run.estimate.sigma * (1 + 1e-9)).all()


def test_uncertain_parameters_keep_torques_away_from_their_limits(after):
    findings = {}
    for sigmas in (0.0, 2.0, 4.0):
        certifier = assembled(MODEL, LIMITS, DesignSettings(sigmas=sigmas), after).certifier
        findings[sigmas] = {one.name: one.worst for one in certifier(MOTION).findings if one.name.startswith("torque")}
    assert set(findings[0.0]) == {"torque of joint_1", "torque of joint_2"}
    for name in findings[0.0]:
        assert findings[0.0][name] < findings[2.0][name] < findings[4.0][name]


def test_uncertainty_is_that_of_the_rows_and_the_covariance(run, after):
    """At the worst instant: the torque itself, and two of its standard deviations."""
    torques = after.torques
    assert torques is not None
    certifier = assembled(MODEL, LIMITS, DesignSettings(sigmas=2.0), after).certifier
    time = np.linspace(0, MOTION.duration, 4001)[1:-1]
    there = MOTION.at(time)
    model, columns = torques.model, run.estimate.columns
    place = [model.names.index(name) for name in columns]
    rows = np.array(
        [model.regressor(*one).full()[:, place] for one in zip(there.q.T, there.qd.T, there.qdd.T, strict=True)]
    )
    spread = np.sqrt(np.einsum("nep,pq,neq->ne", rows, run.estimate.covariance, rows))
    largest = (np.abs(rows @ run.estimate.values) + 2 * spread).max(axis=0)
    worst = [one.worst for one in certifier(MOTION).findings if one.name.startswith("torque")]
    np.testing.assert_allclose(worst, largest, rtol=1e-2)
    assert (largest <= np.array(worst) + 1e-9).all()


def test_a_run_of_another_model_is_refused(run):
    less = build_model(SCARA, ("inertia",))
    with pytest.raises(
        DesignError, match=r"knows Fvm1, .*, which this model has not; design with the run's robot"
    ) as error:
        known_after(known_of(less, LIMITS)[0], run, less, LIMITS, RATE)
    assert "\n" not in str(error.value)
