"""Studies: reproducible seed by seed, whatever the chunks and processes; resumable; refused in one line."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from steelyard.errors import EstimateError, FileError, SimulationError
from steelyard.identification import fit_arm, fit_arms
from steelyard.simulation import recording_of, simulate
from steelyard.study import Case, StudySettings, montecarlo, study_to_json, times_to_json
from steelyard.study.experiments import Job, SimulatedExperiments
from steelyard.workers import _Batch
from study.studies import DISTURBED, WHITE, moves, scara

CLOSED_LOOP = {"plant": "compiled", "control_rate": 500.0, "plant_rate": 2000.0, **DISTURBED}


def same_numbers(first, second):
    """Whether two courts hold the same runs to the last bit; times apart."""
    for one, other in zip(first.runs, second.runs, strict=True):
        assert one.case == other.case
        assert one.failures == other.failures
        for name in ("seeds", "values", "sigma", "half_width"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("experiment", [WHITE, CLOSED_LOOP], ids=["ideal", "closed loop"])
@pytest.mark.parametrize("method", ["gls", "ekf"])
def test_a_seed_alone_gives_the_same_numbers(experiment, method):
    given = scara(experiment)
    together = montecarlo(given, StudySettings(("wls", method), seeds=6, first_seed=3))
    alone = montecarlo(given, StudySettings((method,), seeds=2, first_seed=5))
    for row in range(2):
        np.testing.assert_array_equal(alone.runs[0].values[:, row], together.runs[1].values[:, 2 + row])
        np.testing.assert_array_equal(alone.runs[0].half_width[:, row], together.runs[1].half_width[:, 2 + row])
    assert (np.ptp(together.runs[0].values, axis=1) > 0).all()


def test_processes_give_the_same_numbers_and_an_interrupt_keeps_what_they_finished(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.study.run.JOBS_A_PROCESS", 2)
    given, study = scara(CLOSED_LOOP), StudySettings(("wls", "ols"), seeds=8, noise_levels=(0.5, 1.0))
    next_finished, made = _Batch.next_finished, []

    def interrupted_after_the_first(batch):
        if len(made) == 1:
            made.append(None)
            raise KeyboardInterrupt
        one = next_finished(batch)
        made.extend([] if one is None else [one])
        return one

    monkeypatch.setattr(_Batch, "next_finished", interrupted_after_the_first)
    with pytest.raises(KeyboardInterrupt):
        montecarlo(given, study, tmp_path, processes=2)
    assert multiprocessing.active_children() == []
    saved = list(tmp_path.glob("*.npz"))
    assert 2 <= len(saved) < 2 * 4
    whole = montecarlo(given, study)
    for path in saved:
        with np.load(path) as found:
            case = next(runs for runs in whole.runs if path.name.startswith(runs.case.name))
            np.testing.assert_array_equal(found["values"], case.chosen(found["seeds"].tolist()).values)
    monkeypatch.undo()
    resumed = montecarlo(given, study, tmp_path)
    same_numbers(resumed, whole)
    assert json.dumps(study_to_json(resumed)) == json.dumps(study_to_json(whole))


def test_an_interrupted_study_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.study.run.JOBS_A_PROCESS", 5)
    given, study = scara(), StudySettings(("wls", "gls"), seeds=10)

    def interrupt(done, total):
        if done >= 0.4 * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        montecarlo(given, study, tmp_path, progress=interrupt)
    saved = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert len(saved) == 4  # two methods, two of five jobs
    reported = []
    resumed = montecarlo(given, study, tmp_path, progress=lambda done, total: reported.append((done, total)))
    assert reported[0] == (8, 20)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in saved} == saved
    whole = montecarlo(given, study)
    same_numbers(resumed, whole)
    assert json.dumps(study_to_json(resumed)) == json.dumps(study_to_json(whole))


def test_more_seeds_methods_and_levels_run_only_what_is_new(tmp_path):
    given = scara()
    montecarlo(given, StudySettings(("wls",), seeds=4), tmp_path)
    reported = []
    more = StudySettings(("gls", "wls"), seeds=6, noise_levels=(1.0, 2.0))
    study_result = montecarlo(given, more, tmp_path, progress=lambda done, total: reported.append((done, total)))
    assert reported[0] == (4, 24)
    same_numbers(study_result, montecarlo(given, more))
    fewer = montecarlo(given, StudySettings(("wls",), seeds=3, first_seed=1), tmp_path)
    np.testing.assert_array_equal(fewer.runs[0].seeds, [1, 2, 3])


def test_a_folder_of_another_study_is_refused(tmp_path):
    montecarlo(scara(), StudySettings(("wls",), seeds=2), tmp_path)
    for other, message in (
        (scara(identify={"cutoff": 10.0}), "other settings of the fit"),
        (scara(simulate={**WHITE, "record_rate": 50.0}), "other settings of the experiment"),
        (scara(motion=moves(6)), "another trajectory"),
    ):
        with pytest.raises(FileError, match=message) as caught:
            montecarlo(other, StudySettings(("wls",), seeds=2), tmp_path)
        assert "another folder" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 cut"])
def test_a_damaged_file_of_runs_is_named(tmp_path, content):
    montecarlo(scara(), StudySettings(("wls",), seeds=2), tmp_path)
    damaged = next(tmp_path.glob("wls*.npz"))
    damaged.write_bytes(content)
    with pytest.raises(FileError, match=r"is damaged; remove it"):
        montecarlo(scara(), StudySettings(("wls",), seeds=2), tmp_path)
    damaged.unlink()
    montecarlo(scara(), StudySettings(("wls",), seeds=2), tmp_path)


def test_a_run_that_fails_is_kept_with_its_message(tmp_path, monkeypatch):
    def sometimes(robot, recordings, settings, **others):
        if settings.method == "ols" and "seed 2" in recordings[0].notes[0]:
            raise EstimateError("the filter\ndiverged")
        return fit_arm(robot, recordings, settings, **others)

    monkeypatch.setattr("steelyard.identification.fitting.fit_arm", sometimes)
    study_result = montecarlo(scara(), StudySettings(("wls", "ols"), seeds=4), tmp_path)
    assert study_result.runs[1].failures == ("", "", "the filter diverged", "")
    assert np.isnan(study_result.runs[1].values[:, 2]).all()
    assert [verdict.failures for verdict in study_result.verdicts] == [0, 1]
    content = study_to_json(study_result)
    assert content["cases"][1]["failures"] == [{"seed": 2, "message": "the filter diverged"}]
    assert content["cases"][1]["failure_rate"] == 0.25
    monkeypatch.undo()
    again = montecarlo(scara(), StudySettings(("ols",), seeds=4), tmp_path)
    assert again.runs[0].failures == study_result.runs[1].failures


@pytest.mark.parametrize("experiment", [WHITE, CLOSED_LOOP], ids=["one motion", "motions of their own"])
@pytest.mark.parametrize("method", ["wls", "ekf"])
def test_a_run_is_the_fit_of_its_recording(experiment, method):
    shop = SimulatedExperiments(scara(experiment))
    run = simulate(shop.robot, shop.motion, shop.experiment, [4])
    fitted = fit_arm(shop.robot, [recording_of(run)], replace(shop.settings, method=method)).fit.estimate
    (found,) = shop.run(Job(1.0, (3, 4, 5), (Case(method, 1.0),)))
    np.testing.assert_array_equal(found.values[:, 1], fitted.values)
    np.testing.assert_array_equal(found.half_width[:, 1], fitted.half_width())


def test_filters_run_side_by_side_as_far_as_an_interrupt_can_wait(monkeypatch):
    sizes, calls = [], count()

    def counted(robot, experiments, *settings):
        sizes.append(len(experiments))
        return fit_arms(robot, experiments, *settings)

    monkeypatch.setattr("steelyard.study.experiments.fit_arms", counted)
    monkeypatch.setattr("steelyard.study.experiments._SECONDS_AT_ONCE", 1e6)
    job = Job(1.0, tuple(range(7)), (Case("wls", 1.0), Case("ekf", 1.0), Case("ekf", 1.0, 0.1)))
    whole = SimulatedExperiments(scara()).run(job)
    assert sizes == [1, 1, 1, *[1] * 6, 6, *[1] * 6]  # starts differ from seed to seed
    monkeypatch.setattr("steelyard.study.experiments._SECONDS_AT_ONCE", 0.0)
    sizes.clear()
    stopped = SimulatedExperiments(scara()).run(job, lambda: next(calls) == 4)
    assert sizes == [1] * 3 * 4
    for one, other in zip(stopped, whole, strict=True):
        np.testing.assert_array_equal(one.seeds, range(4))
        np.testing.assert_array_equal(one.values, other.values[:, :4])
        assert (other.seconds > 0).all()


def test_what_is_no_steelyard_error_is_not_caught(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("steelyard.identification.fitting.fit_arm", broken)
    with pytest.raises(ZeroDivisionError):
        montecarlo(scara(), StudySettings(("wls",), seeds=2))


def test_a_task_that_workers_cannot_finish_names_its_seeds(monkeypatch):
    def too_large(*_):
        raise MemoryError

    monkeypatch.setattr(SimulatedExperiments, "run", too_large)
    with pytest.raises(SimulationError, match="seeds 0 to 0: task 1 of 3 needs more memory than its worker may use"):
        montecarlo(scara(), StudySettings(("wls",), seeds=3))


def test_the_truth_is_regrouped_and_the_noise_level_scales_all_noise():
    study_result = montecarlo(scara(), StudySettings(("ols",), seeds=4, noise_levels=(0.1, 1.0)))
    values = dict(zip([one.name for one in study_result.parameters], study_result.true, strict=True))
    assert values["ZZ1R"] == pytest.approx(3.42)
    small, large = (runs.values.std(axis=1) for runs in study_result.runs)
    np.testing.assert_allclose(small / large, 0.1, rtol=1e-6)


def test_times_are_told_apart_from_the_result():
    study_result = montecarlo(scara(), StudySettings(("wls",), seeds=3))
    assert "seconds" not in json.dumps(study_to_json(study_result))
    (times,) = times_to_json(study_result)
    assert times["least"] <= times["median"] <= times["most"]
    assert times["median"] > 0


def test_an_effect_that_the_model_lacks_is_told():
    study_result = montecarlo(scara(identify={"effects": ["inertia", "Fvm"]}), StudySettings(("wls",), seeds=2))
    assert "the simulated arm has Fcm, which the fitted model leaves out: this shows as bias" in study_result.notes


def test_methods_with_a_start_run_once_for_each_start():
    study = StudySettings(("wls", "ekf"), seeds=2, starts=(0.0, 0.2))
    assert study.cases == (Case("wls", 1.0), Case("ekf", 1.0, 0.0), Case("ekf", 1.0, 0.2))
    assert StudySettings(("ekf",), seeds=2).cases == (Case("ekf", 1.0),)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"methods": ("wsl",)}, EstimateError, "method is 'wsl'; allowed: .*; did you mean 'wls'"),
        ({"methods": ()}, SimulationError, "methods: got none"),
        ({"methods": ("wls", "wls")}, SimulationError, "'wls' is given twice"),
        ({"seeds": 0}, SimulationError, "seeds: got 0, needed are at least 2"),
        ({"seeds": 1}, SimulationError, "one run has no spread"),
        ({"first_seed": -1}, SimulationError, "first_seed: got -1"),
        ({"noise_levels": (0.0,)}, SimulationError, "noise_levels is 0.0; allowed: a finite number above 0"),
        ({"noise_levels": (float("nan"),)}, SimulationError, "noise_levels is nan"),
        ({"noise_levels": ()}, SimulationError, "noise_levels: got none"),
        ({"starts": (-0.1,)}, SimulationError, "starts is -0.1"),
    ],
)
def test_a_study_that_cannot_be_is_refused(settings, error, message):
    with pytest.raises(error, match=message) as caught:
        StudySettings(**settings)
    assert "\n" not in str(caught.value)


def test_an_experiment_without_noise_is_refused():
    with pytest.raises(SimulationError, match="no noise, so that every run would be the same"):
        montecarlo(scara(simulate={}), StudySettings(("wls",), seeds=2))
    with pytest.raises(SimulationError, match="processes: got 0"):
        montecarlo(scara(), StudySettings(("wls",), seeds=2), processes=0)
