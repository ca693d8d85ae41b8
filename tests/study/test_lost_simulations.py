"""Seeds whose simulation is lost: failed runs of every case, the same in any company, and no matter to the others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from steelyard.cli.montecarlo import print_study
from steelyard.errors import SimulationError
from steelyard.study import StudySettings, montecarlo, sentences, study_to_json, times_to_json
from study.studies import DISTURBED, scara

CLOSED_LOOP = {"plant": "compiled", "control_rate": 500.0, "plant_rate": 2000.0, **DISTURBED}
# The motors' limits hold most seeds at 500 times P1's disturbance, none at 100 times, and numbers overflow far beyond.
HURLED, DIVERGED = 500.0, 1e6
STUDY = StudySettings(("wls", "gls"), seeds=6, noise_levels=(1.0, HURLED))


@pytest.fixture(scope="module")
def study_result():
    return montecarlo(scara(CLOSED_LOOP), STUDY)


def failed(runs):
    return [int(seed) for seed, text in zip(runs.seeds, runs.failures, strict=True) if text]


def test_a_lost_seed_is_a_failed_run_of_every_case_and_the_others_are_judged(study_result):
    mild, strong = study_result.runs[0], study_result.runs[1]
    lost = failed(strong)
    assert 0 < len(lost) < 6
    assert failed(study_result.runs[3]) == lost
    assert failed(mild) == []
    assert {text for text in strong.failures if text} == {
        "simulation: left its motion by more than 3 times its width; lower the disturbance, or raise gains or limits"
    }
    assert np.isnan(strong.values[:, lost]).all()
    useful = [seed for seed in range(6) if seed not in lost]
    assert np.isfinite(strong.values[:, useful]).all()
    assert study_result.verdicts[1].failures == len(lost)
    assert all(one.runs == len(useful) for one in study_result.verdicts[1].parameters)


def test_lost_seeds_are_told_with_their_reasons_as_failures_of_estimators_are(study_result):
    content, lost = study_to_json(study_result)["cases"][1], failed(study_result.runs[1])
    assert [one["seed"] for one in content["failures"]] == lost
    assert all(one["message"].startswith("simulation: ") for one in content["failures"])
    assert content["failure_rate"] == pytest.approx(len(lost) / 6)
    lines = [line for line in sentences(study_result.verdicts) if "runs failed; most often: simulation: left" in line]
    assert [line.split(":")[0] for line in lines] == ["wls, noise x 500", "gls, noise x 500"]


def test_the_time_of_a_run_is_that_of_estimations_that_were_made(study_result):
    runs, times = study_result.runs[1], times_to_json(study_result)[1]
    assert np.isnan(runs.seconds[failed(runs)]).all()
    assert 0 < times["least"] <= times["median"] <= times["most"]
    json.dumps(times, allow_nan=False)


@pytest.mark.large
def test_a_lost_seed_alone_in_other_company_and_from_a_folder_is_lost_for_the_same_reason(
    study_result, tmp_path, monkeypatch
):
    monkeypatch.setattr("steelyard.study.run.JOBS_A_PROCESS", 1)
    shared = montecarlo(scara(CLOSED_LOOP), STUDY, tmp_path, processes=2)
    assert json.dumps(study_to_json(shared)) == json.dumps(study_to_json(study_result))
    reported = []
    again = montecarlo(scara(CLOSED_LOOP), STUDY, tmp_path, progress=lambda done, total: reported.append(done))
    assert reported == [24]
    assert json.dumps(study_to_json(again)) == json.dumps(study_to_json(study_result))
    few = montecarlo(scara(CLOSED_LOOP), StudySettings(("gls",), seeds=3, first_seed=2, noise_levels=(HURLED,)))
    assert few.runs[0].failures == study_result.runs[3].failures[2:5]
    np.testing.assert_array_equal(few.runs[0].values, study_result.runs[3].values[:, 2:5])


def test_a_noise_level_at_which_all_seeds_are_lost_leaves_the_others_their_figures(capsys):
    study_result = montecarlo(scara(CLOSED_LOOP), StudySettings(("wls",), seeds=3, noise_levels=(1.0, DIVERGED)))
    mild, wild = study_result.verdicts
    assert (mild.failures, wild.failures) == (0, 3)
    assert wild.usual_failure.startswith("simulation: diverged before 2.00 s; lower the gains")
    assert wild.seconds == 0.0
    assert mild.parameters
    assert wild.parameters == ()
    print_study(study_result, {"robot": "scara", "duration": 5.0, **study_to_json(study_result)}, None, False)
    assert "100 %" in capsys.readouterr().out


@pytest.mark.parametrize("level", [1e4, DIVERGED])
def test_a_study_that_cannot_be_simulated_with_any_seed_ends_with_one_line(level, tmp_path):
    study = StudySettings(("wls", "gls"), seeds=3, first_seed=4, noise_levels=(level,))
    for _ in range(2):  # made, and read
        with pytest.raises(SimulationError, match=r"all 3 seeds failed at noise level 1.*; seed 4 ") as caught:
            montecarlo(scara(CLOSED_LOOP), study, tmp_path)
        assert "\n" not in str(caught.value)
        assert "lower the" in str(caught.value)
