"""Settings of a design, and every way in which they are refused: one line that says what to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.errors import DesignError, SteelyardError
from steelyard.excitation import (
    Capsule,
    CapsulePair,
    DesignLimits,
    DesignSettings,
    FourierFamily,
    ViaPointFamily,
    design,
    design_limits,
    design_settings,
)
from steelyard.excitation.settings import SCHEMA, family_of
from steelyard.robot import Robot, load_robot

SCARA = load_robot("scara_2r")
LIMITS = design_limits(SCARA)
QUICK = DesignSettings(starts=1, harmonics=3, duration=8.0)
JOINTS = ("joint_1", "joint_2")


def test_a_table_gives_settings():
    settings = design_settings(
        {"duration": [10, 20], "noise": [0.5, 0.1], "parameters": ["ZZ2"], "goals": {"condition": 30}, "starts": None}
    )
    assert settings.durations == (10, 20)
    assert settings.noise == (0.5, 0.1)
    assert settings.parameters == ("ZZ2",)
    assert settings.goals == (("condition", 30.0),)
    assert settings.starts == DesignSettings().starts
    assert set(SCHEMA) == set(DesignSettings.__dataclass_fields__)


def test_families_are_made_at_the_smallest_duration():
    family = family_of(DesignSettings(duration=(12.0, 30.0), harmonics=4, periods=2), JOINTS)
    assert family == FourierFamily(JOINTS, 4, 6.0, 2)
    for motion in ("quintic", "trapezoidal"):
        family = family_of(DesignSettings(motion=motion, duration=12.0), JOINTS)
        assert isinstance(family, ViaPointFamily)
        assert (family.moves, family.move, family.kind) == (6, 2.0, motion)
        assert family_of(DesignSettings(motion=motion, moves=3, duration=12.0), JOINTS).size == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"motion": "furier"}, "motion is 'furier'; allowed: fourier, quintic, trapezoidal.*'fourier'"),
        ({"criterion": "D"}, "criterion is 'D'; allowed: condition"),
        ({"duration": 0.0}, "duration 0.0: give seconds above 0"),
        ({"duration": float("nan")}, "duration nan"),
        ({"duration": (20.0, 10.0)}, r"duration \(20.0, 10.0\)"),
        ({"duration": float("inf")}, "duration inf"),
        ({"starts": 0}, "starts is 0; allowed: a whole number from 1"),
        ({"periods": 0}, "periods is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"position_noise": -1.0}, "position_noise is -1.0; allowed: a finite number of 0 or more"),
        ({"sigmas": float("nan")}, "sigmas is nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, message):
    with pytest.raises(DesignError, match=message) as error:
        DesignSettings(**given)
    assert "\n" not in str(error.value)


def test_a_list_of_three_durations_is_refused():
    with pytest.raises(
        DesignError, match=r"duration is \[1, 2, 3\]; allowed: one number, or the smallest and the largest"
    ):
        design_settings({"duration": [1, 2, 3]})


def around_the_base() -> DesignLimits:
    hand = Capsule("link_2", (0, 0, 0), (0.3, 0, 0), 0.05)
    return replace(LIMITS, rules=(CapsulePair("cage", hand, Capsule(None, (0, 0, -1), (0, 0, 1), 2.0)),))


BAD = {
    "zero harmonics": ({"settings": replace(QUICK, harmonics=0)}, "0 harmonics; at least 2 are needed for a motion"),
    "one harmonic": ({"settings": replace(QUICK, harmonics=1)}, "1 harmonics; at least 2"),
    "too short for the rate": (
        {"settings": replace(QUICK, duration=0.2)},
        "duration 0.2 s is too short: the fastest harmonic has 15 Hz, which 100 samples a second do not follow.* take "
        "a longer duration, fewer harmonics, or a higher rate",
    ),
    "too short for the limits": (
        {"settings": replace(QUICK, duration=0.05, rate=1e4, harmonics=10)},
        "duration 0.05 s is too short: limits of speed and acceleration leave at most .* take a longer duration or",
    ),
    "a resonance": (
        {"settings": replace(QUICK, resonance=0.3)},
        "the fastest harmonic has 0.375 Hz, the lowest resonance is 0.3 Hz; take a longer duration or fewer harmonics",
    ),
    "a start outside": (
        {"start": [0.0, 9.0]},
        "start posture: joint_2 at 9 is outside its limits -2.487 to 2.487; start inside them, or widen them",
    ),
    "half a start": ({"start": [0.0]}, "start posture has 1 numbers; allowed are 2 finite ones"),
    "a start that is no number": ({"start": [0.0, np.nan]}, "start posture has 2 numbers; allowed are 2 finite ones"),
    "an obstacle around the base": (
        {"limits": around_the_base()}, "no motion was found that keeps 'cage'.*off by .*change what stands in its way"
    ),
    "noise of three joints": (
        {"settings": replace(QUICK, noise=(1.0, 1.0, 1.0))},
        "noise has 3 numbers; allowed is 1, one for each of the 2 joints",
    ),
    "noise below zero": ({"settings": replace(QUICK, noise=-1.0)}, "noise: got .* one positive standard deviation"),
    "a rate of zero": ({"settings": replace(QUICK, rate=0.0)}, "rate 0.0: give the samples a second|too short"),
    "a parameter that is not there": (
        {"settings": replace(QUICK, parameters=("ZZ7",))}, "'ZZ7' is no base parameter of this model; it has"
    ),
    "a goal that is not there": (
        {"settings": replace(QUICK, goals=(("mean_torque of joint_9", 1.0),))},
        "unknown goal 'mean_torque of joint_9'; allowed: condition",
    ),
    "a goal of nothing": (
        {"settings": replace(QUICK, goals=(("condition", 0.0),))}, "goal 'condition': 0.0 is wanted; allowed is"
    ),
    "a determinant as a goal": (
        {"settings": replace(QUICK, goals=(("d", 1.0),))}, "goal 'd': the log of a determinant has no natural size"
    ),
    "a torque goal without a limit": (
        {
            "settings": replace(QUICK, goals=(("mean_torque of joint_1", 1.0),)),
            "limits": replace(LIMITS, torque=np.full(2, np.inf)),
        },
        "goal 'mean_torque of joint_1' needs that joint's torques and their limit",
    ),
    "noise of positions and rows as they are": (
        {"settings": replace(QUICK, position_noise=1e-4, criterion="condition")},
        "criterion 'condition' does not weight rows by their noise, .*; choose d",
    ),
    "a payload that nobody knows": ({"payload": "loaded", "carries": "brick"}, "knows no payload 'brick'"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_designed_is_refused_in_one_line(given, message):
    with pytest.raises(DesignError, match=message) as error:
        design(SCARA, **({"settings": QUICK, "limits": LIMITS} | given))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) > 30


def without_inertias() -> Robot:
    return replace(SCARA, values={}, links=tuple(replace(link, inertia=None) for link in SCARA.links))


@pytest.mark.parametrize("name", ["worst_sigma", "condition_prior"])
def test_a_criterion_that_needs_a_prior_says_where_to_get_one(name):
    with pytest.raises(DesignError, match=f"criterion '{name}' .* none are known; give a robot with values, or a run"):
        design(without_inertias(), replace(QUICK, criterion=name), limits=LIMITS)


def test_noise_of_positions_needs_parameters():
    with pytest.raises(DesignError, match="position noise counts by the torques it brings about, and no parameters"):
        design(without_inertias(), replace(QUICK, position_noise=1e-4), limits=LIMITS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[joints]\nvelocity = 0", "velocity of joint 'joint_1' is 0; allowed: a number above 0"),
        ("[joints]\nlower = [1, 1]\nupper = [0, 2]", "joint 'joint_1' may move from 1 to 0; allowed is lower < upper"),
        ("[joints]\nvelocity = [inf, inf]", "no velocity limit is known for any joint; write velocity"),
        ("[joints]\nvelocty = 1", "velocty.*velocity"),
    ],
)
def test_limits_that_are_missing_or_contradict_each_other_are_refused(tmp_path, text, message):
    file = tmp_path / "limits.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SteelyardError, match=message) as error:
        design(SCARA, QUICK, limits=file)
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)
