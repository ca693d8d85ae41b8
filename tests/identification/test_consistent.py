"""The consistent arm of an identification: which prior it gets, how it predicts, what is said and saved."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from unittest.mock import Mock

import numpy as np
import pytest

from simulated_experiments import short_log
from steelyard.consistency import ConsistencySettings
from steelyard.errors import ConfigError, EstimateError, SteelyardError
from steelyard.identification import Settings, identify, save_run, settings_from_table, settings_to_table
from steelyard.identification.consistent import (
    CostCause,
    consistency_reasons,
    inertia_prior,
    mass_reasons,
    massless_reasons,
)
from steelyard.judge import Pattern
from steelyard.robot import INERTIAL_NAMES, load_robot

ARM = load_robot("kuka_ir361")


def recorded(seed: int):
    return short_log("kuka_ir361", seed, 100)


def identified(robot=ARM, **consistency):
    run, recording = recorded(1)
    chosen = ConsistencySettings(draws=10, **consistency)
    return identify(robot, recording, settings=Settings(effects=run.effects, bias_repeats=0, consistency=chosen))


@pytest.fixture(scope="module")
def usual():
    return identified(replace(ARM, inertia_source="unknown"))


def test_the_consistent_arm_predicts_as_well_as_free_parameters(usual):
    assert usual.standard is not None
    assert usual.standard_error is not None
    assert usual.standard_error.relative_percent < 1.02 * usual.unseen_error_of_all.relative_percent
    assert usual.robot.parameters["ZZ2"] == pytest.approx(usual.standard.values[usual.standard.names.index("ZZ2")])


def test_every_standard_parameter_is_in_the_json_with_its_source(usual):
    content = usual.to_json()
    rows = {row["name"]: row for row in content["standard_parameters"]}
    assert set(rows) == set(usual.equations.model.names)
    assert rows["M1"]["source"] == "reference"
    assert rows["M1"]["sigma"] is None
    assert rows["M1"]["file_value"] == ARM.parameters["M1"]
    assert content["consistency"]["prior"] is None
    assert content["consistency"]["validation"]["relative_error_percent"] == usual.standard_error.relative_percent


@cache
def from_source(source):
    """Return what an arm gives whose inertias have this source, if a deviation of their prior is given."""
    return identified(replace(ARM, inertia_source=source), deviation=0.2)


@pytest.mark.parametrize(
    ("source", "note", "used"),
    [
        ("cad", "prior: link inertias of the robot file (cad)", True),
        pytest.param("vendor", "prior: link inertias of the robot file (vendor)", True, marks=pytest.mark.large),
        ("identified", "no prior: the robot file's inertias were identified", False),
        ("unknown", "no prior: the source of the robot file's inertias is unknown", False),
    ],
)
def test_the_source_of_the_inertias_decides_whether_they_are_a_prior(source, note, used):
    found = from_source(source)
    assert any(one.startswith(note) for one in found.notes)
    assert (found.standard is not None and found.standard.prior is not None) == used


def without_inertia(names, **changes):
    links = [replace(link, inertia=None) if link.name in names else link for link in ARM.links]
    return replace(ARM, links=tuple(links), **changes)


def test_a_note_names_the_links_that_have_no_inertia():
    lacking = without_inertia({"link_2"}, inertia_source="vendor")
    prior, note = inertia_prior(lacking, Settings())
    assert prior is None
    assert note.startswith("no prior: the robot file has no inertia of 'link_2'; give one there (all 0 for a link")
    none = without_inertia({body.link for body in ARM.bodies}, inertia_source="vendor")
    assert inertia_prior(none, Settings())[1].startswith("no prior: the robot file has no link inertias")
    unknown = replace(lacking, inertia_source="unknown")
    assert "is unknown" in inertia_prior(unknown, Settings())[1]


def test_a_link_of_a_urdf_without_inertial_is_one_without_mass():
    prior, note = inertia_prior(without_inertia({"link_2"}, inertia_source="cad", file="arm.urdf"), Settings())
    assert prior is not None
    assert [any(body.inertia or ()) for body in prior.bodies] == [True, False, True]
    assert "which has no <inertial> of 'link_2': without mass" in note


def test_a_prior_can_be_named_or_left_out():
    named = identified(prior="kuka_ir361", deviation=0.2).standard
    assert named is not None
    assert named.prior is not None
    assert named.prior.deviation == 0.2
    without = identified(replace(ARM, inertia_source="cad"), prior="none")
    assert without.standard is not None
    assert without.standard.prior is None
    with pytest.raises(EstimateError, match="the prior has the moving links"):
        identified(prior="scara_2r")


def times_ten(robot, numbers, factor: float = 10.0):
    own = {f"{symbol}{number}" for number in numbers for symbol in INERTIAL_NAMES}
    return robot.with_parameters({name: factor * value for name, value in robot.parameters.items() if name in own})


def test_a_deviation_that_does_not_explain_the_difference_is_kept_if_given_and_called_too_small():
    prior = replace(times_ten(ARM, (2,), 2.5), inertia_source="cad")
    given, chosen = identified(prior, deviation=0.03), identified(prior)
    (reason,) = [one for one in given.verdict.reasons if one.criterion == "prior"]
    assert reason.text.startswith("the prior contradicts the data on 'link_2'")
    assert "with the given deviation of 0.03" in reason.text
    assert "sigmas and intervals are too narrow" in reason.text
    assert given.verdict.grade != "good"
    assert not [one for one in chosen.verdict.reasons if one.criterion == "prior"]
    assert chosen.standard is not None
    assert chosen.standard.prior is not None
    assert chosen.standard.prior.deviation > 0.1


def test_a_common_factor_of_all_links_points_at_the_torques():
    found = identified(replace(times_ten(ARM, (1, 2, 3), 0.5), inertia_source="cad"))
    (reason,) = [one for one in found.verdict.reasons if one.criterion == "prior"]
    assert "on all links alike (about 2 times too light; a scale or unit of the torques may be wrong)" in reason.text
    assert reason.remedy.startswith("check the scale and unit of the torques")


@pytest.mark.parametrize(
    ("numbers", "deviation"),
    [
        ((1, 2, 3), 0.3),
        ((2,), None),
        pytest.param((1, 2, 3), None, marks=pytest.mark.large),
        pytest.param((2,), 0.3, marks=pytest.mark.large),
    ],
)
def test_a_prior_ten_times_too_heavy_is_noticed_and_its_links_named(numbers, deviation):
    found = identified(replace(times_ten(ARM, numbers), inertia_source="cad"), deviation=deviation)
    (reason,) = [one for one in found.verdict.reasons if one.criterion == "prior"]
    for body in ARM.bodies:
        assert (f"'{body.link}' (about" in reason.text) == (body.number in numbers)
    assert "times too heavy" in reason.text
    assert ("sigmas and intervals are too narrow" in reason.text) == (deviation is not None)
    assert "--no-prior" in reason.remedy
    assert "identify with --gravity X, or set gravity = [...] under [identify]" in reason.remedy
    assert found.verdict.grade != "good"
    rows = found.to_json()["consistency"]["prior"]["disagreements"]
    assert [row["link"] for row in rows] == [body.link for body in ARM.bodies if body.number in numbers]
    assert all(0.05 < row["factor"] < 0.2 for row in rows)


def test_a_prior_that_is_right_is_not_doubted():
    found = identified(replace(ARM, inertia_source="cad"))
    assert found.standard is not None
    assert found.standard.prior is not None
    assert found.standard.prior.disagreements == ()


def test_a_link_of_tonnes_is_not_called_good():
    """The spring of the arm is not in this model: link 2 gets thousands of kg, which no torque shows."""
    (_, recording), (_, unseen) = recorded(1), recorded(2)
    chosen = ConsistencySettings(draws=2)
    settings = Settings(effects=("inertia", "Fvm", "Fcm"), bias_repeats=0, consistency=chosen)
    found = identify(ARM, recording, unseen, settings)
    (reason,) = [one for one in found.verdict.reasons if one.criterion == "mass"]
    assert "'link_2'" in reason.text
    assert "spring" in reason.remedy
    assert found.verdict.grade == "fair"
    (row,) = found.to_json()["consistency"]["implausible_masses"]
    assert row["link"] == "link_2"
    assert row["mass"] > row["largest_plausible"] == 350


def test_the_arm_with_a_spring_is_identified_with_it_by_default():
    (_, recording), (_, unseen) = recorded(1), recorded(2)
    found = identify("kuka_ir361", recording, unseen, Settings(bias_repeats=0))
    assert found.standard is not None
    assert found.standard.implausible == {}
    assert found.robot.parameters["M2"] == pytest.approx(ARM.parameters["M2"], rel=0.5)


def consistency_reason(found):
    (reason,) = [one for one in found.verdict.reasons if one.criterion == "consistency"]
    return reason


def test_bounds_that_cost_torque_error_are_named_as_its_cause():
    reason = consistency_reason(identified(mass={"link_3": (40.0, 41.0)}, centre={"link_3": ((0, 0, 0), (0, 0, 0))}))
    assert "by the bounds that you gave (mass of 'link_3' in 40 to 41 kg" in reason.text
    assert "no rigid arm" not in reason.text
    assert "[identify.consistency]" in reason.remedy
    pinned = consistency_reason(identified(times_ten(ARM, (3,)), pinned=("link_3",)))
    assert "link 'link_3' pinned" in pinned.text


def test_a_prior_that_costs_torque_error_is_named_as_its_cause():
    reason = consistency_reason(identified(replace(times_ten(ARM, (3,)), inertia_source="cad"), deviation=1e-3))
    assert ": by the prior; without, it is" in reason.text
    assert "--no-prior" in reason.remedy


def test_bounds_that_make_an_arm_many_times_worse_leave_no_good_verdict(usual):
    def grade(before: float, after: float, cause: CostCause | None):
        free, consistent = (Mock(relative_percent=size) for size in (before, after))
        (reason,) = consistency_reasons(usual.standard, free, consistent, 5.0, cause)
        return reason.grade

    bounds = CostCause("the bounds that you gave (total mass in 1 to 5 kg)", "widen them", 0.471)
    assert grade(0.471, 3.73, bounds) == "fair"
    assert grade(0.471, 3.73, None) is None
    assert grade(0.01, 0.1, bounds) is None
    assert grade(2.0, 4.0, bounds) is None


def test_remedies_of_a_heavy_arm_begin_with_what_the_residuals_show(usual):
    heavy = replace(usual.standard, implausible={"link_2": (2000.0, 350.0)})
    pattern = Pattern("velocity", "spread", 0.1, 0.0, (0.0, 0.1), 0.0, 1.0, "sign", "smooth it with --sign-width 0.1")
    (plain,), (first,) = mass_reasons(heavy), mass_reasons(heavy, [pattern])
    assert plain.text.startswith("the parameters that fit best are those of a far too heavy arm: 'link_2'")
    assert plain.remedy.startswith("add the effect")
    assert "smooth it with --sign-width 0.1. Then add the effect" in first.remedy


def test_a_link_that_the_data_give_a_mass_is_a_caution(usual):
    assert not [*massless_reasons(usual.standard)]
    (reason,) = massless_reasons(replace(usual.standard, released=("link_2",)))
    assert "declares 'link_2' without mass" in reason.text


def test_a_deviation_without_a_prior_is_noted():
    found = from_source("unknown")
    assert any(note.endswith("; its deviation has no effect") for note in found.notes)


def test_plausibility_is_judged_without_the_prior():
    run, recording = recorded(1)
    reversed_torques = tuple(replace(channel, values=-channel.values) for channel in recording.torques)
    chosen = ConsistencySettings(prior="kuka_ir361", deviation=0.05, draws=2)
    settings = Settings(effects=run.effects, bias_repeats=0, consistency=chosen)
    found = identify(ARM, replace(recording, torques=reversed_torques), settings=settings)
    assert found.verdict.grade == "poor"
    assert found.plausibility.impossible


def test_a_model_without_inertias_has_no_arm(usual):
    run, recording = recorded(1)
    found = identify(ARM, recording, settings=Settings(effects=("Fvm", "Fcm", "offm"), bias_repeats=0))
    assert found.standard is None
    with pytest.raises(EstimateError, match="add effect 'inertia'"):
        _ = found.robot
    assert run.effects != usual.settings.effects or found.to_json()["standard_parameters"] is None


def test_bounds_come_from_a_table_and_back():
    table = {
        "consistency": {
            "prior": "none", "mass": {"link_1": [10, 20]}, "total_mass": [5, 900.0], "pinned": ["link_2"],
            "centre": {"link_1": [[-1, -1, -1], [1, 1, 1]]},
        }
    }  # fmt: skip
    settings = settings_from_table(table)
    assert settings.consistency.mass == {"link_1": (10.0, 20.0)}
    assert settings.consistency.centre["link_1"] == ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    assert settings_from_table(settings_to_table(settings)) == settings


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"mas": {}}, "unknown key 'mas'"),
        ({"mass": {"a": 1}}, r"allowed: a table of \[lower, upper\] in kg by link"),
        ({"kind": "flat"}, "flat"),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises((EstimateError, ConfigError, SteelyardError), match=message):
        settings_from_table({"consistency": table})


def test_a_saved_run_holds_the_consistent_arm(usual, tmp_path):
    content = save_run(usual, tmp_path / "run").content
    values = {row["name"]: row["value"] for row in content["standard_parameters"]}
    inertial = [f"{symbol}2" for symbol in INERTIAL_NAMES]
    np.testing.assert_allclose([values[name] for name in inertial], [usual.robot.parameters[name] for name in inertial])
