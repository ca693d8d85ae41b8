"""A robot file beside a run: base parameters and torques against sums over the rows themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulated_experiments import scara
from steelyard.errors import EstimateError
from steelyard.export import export_model
from steelyard.identification import Settings, file_reference, identify, save_run, torque_differences
from steelyard.observe import row_source
from steelyard.robot import Link, Robot, load_robot

SCARA = load_robot("scara_2r")


@pytest.fixture(scope="module")
def found():
    return identify(SCARA, [scara(1), scara(2)], scara(3), Settings(bias_repeats=0, method="wls"))


@pytest.fixture(scope="module")
def run(found, tmp_path_factory):
    return save_run(found, tmp_path_factory.mktemp("run"))


def heavier() -> Robot:
    return SCARA.with_parameters({name: 1.2 * value for name, value in SCARA.parameters.items()})


def test_parameters_are_those_of_the_file(run):
    compared = file_reference(run, heavier(), "file").to_compare("file")
    values = {name: one.value for name, one in compared.parameters.items()}
    known = heavier().parameters
    assert values["ZZ1R"] == pytest.approx(known["ZZ1"] + 0.25 * known["M2"])
    assert values["Fcm2"] == pytest.approx(1.2 * SCARA.values["Fcm2"])
    assert all(one.sigma is None for one in compared.parameters.values())
    assert compared.parameters["ZZ1R"].regrouping == "ZZ1R = ZZ1 + 0.25 M2"


def test_torques_are_those_of_the_rows(found, run):
    reference = file_reference(run, heavier(), "file")
    differences = torque_differences(run, run.estimate, reference)
    sources = [
        row_source(log, found.equations, found.resolved, label)
        for log, label in ((scara(1), "first"), (scara(2), "second"))
    ]
    for e, one in enumerate(differences):
        names = found.equations.columns[e]
        rows = np.concatenate([part.rows for source in sources for part in source.runs([e])])
        ours = np.array([dict(zip(run.estimate.columns, run.estimate.values, strict=True)).get(n, 0.0) for n in names])
        theirs = np.array([reference.columns[name] for name in names])
        regressor, measured = rows[:, :-1], rows[:, -1]
        for vector, figure in (
            (measured, one.torque),
            (regressor @ (theirs - ours), one.difference),
            (measured - regressor @ ours, one.run_error),
            (measured - regressor @ theirs, one.file_error),
        ):
            assert np.sqrt(np.mean(vector**2)) == pytest.approx(figure, rel=1e-9)
        assert one.rows == len(rows)
        assert one.unit == "N m"
    assert all(one.file_error > one.run_error for one in differences)


def test_what_the_file_does_not_give_is_named(run):
    reference = file_reference(run, replace(SCARA, values={"Fvm1": 0.07}), "bare.urdf")
    assert reference.notes == ("'bare.urdf' does not give Fvm2, Fcm: they count as zero in its parameters and torques",)
    assert "Fcm1" not in reference.to_compare("bare.urdf").parameters
    assert file_reference(run, SCARA, "whole").notes == ()
    nothing = replace(SCARA, values={}, links=tuple(Link(link.name) for link in SCARA.links))
    with pytest.raises(EstimateError, match="'empty' gives no inertia and no friction"):
        file_reference(run, nothing, "empty")


def test_another_geometry_is_said_and_its_torques_not_compared(run):
    turned = SCARA.with_gravity((0.0, -9.81, 0.0))
    reference = file_reference(run, turned, "turned")
    assert "the geometry of 'turned' is not that of the run's robot" in reference.notes[0]
    assert torque_differences(run, run.estimate, reference) == []


STANDARD = """robot = {{name = "standard", convention = "standard", gravity = {gravity}}}
joint = [
  {{a = 0.5, alpha = 0, d = 0, theta = 0, mass = 9, centre = [-0.2, 0, 0], inertia_at_centre = [0, 0, 0, 0.4, 0, 0.4]}},
  {{a = 0.4, alpha = 0, d = 0, theta = 0, mass = 6, centre = [-0.2, 0, 0], inertia_at_centre = [0, 0, 0, 0.1, 0, 0.1]}},
]
"""


@pytest.mark.parametrize(("form", "gravity"), [("urdf", [0.0, -9.81, 0.0]), ("mjcf", [0.0, 0.0, -9.81])])
def test_the_exported_file_of_a_standard_dh_arm_is_the_arm_of_the_run(tmp_path, form, gravity):
    """Its payload sits at the far end of the last link, and a URDF says nothing of gravity."""
    path = tmp_path / "standard.toml"
    path.write_text(STANDARD.format(gravity=gravity))
    settings = Settings(bias_repeats=0, method="wls", effects=("inertia", "Fvm", "Fcm"))
    run = save_run(identify(load_robot(path), scara(1, 8), settings=settings), tmp_path / "run")
    (file,) = export_model(run, [form], tmp_path / "out", force=True).paths
    reference = file_reference(run, load_robot(file), "file")
    assert reference.same_geometry
    assert not any("geometry" in note for note in reference.notes)
    named = [note for note in reference.notes if "says nothing of gravity" in note]
    assert len(named) == (form == "urdf")
    assert torque_differences(run, run.estimate, reference)


def test_another_robot_is_one_line(run):
    with pytest.raises(EstimateError, match=r"'ur10e' is another robot .* its joints are shoulder_pan_joint.*joint_1"):
        file_reference(run, load_robot("ur10e"), "ur10e")


def test_a_held_joint_is_held_in_the_file_too(tmp_path):
    log = scara(1)
    held = replace(log, q=np.vstack([np.zeros_like(log.time), log.q[1]]))
    settings = Settings(bias_repeats=0, lock={"joint_1": 0.0}, method="wls")
    run = save_run(identify(SCARA, held, settings=settings), tmp_path / "run")
    compared = file_reference(run, SCARA, "file").to_compare("file")
    # The bodies that still move are numbered anew; the friction of joint 2 is that of body 1 now.
    assert compared.parameters["Fcm1"].value == pytest.approx(SCARA.values["Fcm2"])


def without_drive_inertia(tmp_path, **settings):
    chosen = Settings(bias_repeats=0, method="wls", effects=("inertia", "Fvm", "Fcm"), **settings)
    return save_run(identify(SCARA, [scara(1)], scara(3), chosen), tmp_path / "run")


def test_drive_inertia_of_the_file_that_the_model_lacks_counts(tmp_path):
    """On vertical axes a drive inertia of joint 1 is part of ZZ1; that of joint 2 is no combination of the columns."""
    run = without_drive_inertia(tmp_path)
    file = replace(SCARA, values={**SCARA.values, "Ia1": 0.5, "Ia2": 2.0})
    reference = file_reference(run, file, "file")
    plain = file_reference(run, replace(SCARA, values={**SCARA.values, "Ia1": 0.0, "Ia2": 0.0}), "plain")
    assert reference.columns["ZZ1"] == pytest.approx(plain.columns["ZZ1"] + 0.5)
    assert reference.lacking == {"Ia2": 2.0}
    assert any("counted: Ia1 0.5 kg m^2 in ZZ1" in note for note in reference.notes)
    assert any("Ia2 2 kg m^2" in note and "--effects inertia,Ia,Fvm,Fcm" in note for note in reference.notes)
    first, second = torque_differences(run, run.estimate, reference)
    acceleration = SCARA.actuated[1].joint.limits.acceleration
    acceleration = acceleration if np.isfinite(acceleration) else 5.0
    assert first.lacking == 0
    assert second.lacking == pytest.approx(2.0 * acceleration / 3**0.5, rel=0.05)
    assert second.state_difference == pytest.approx(second.lacking, rel=0.2)
    assert torque_differences(run, run.estimate, plain)[1].state_torque is None


def test_a_spring_of_the_file_that_the_model_lacks_counts(tmp_path):
    run = without_drive_inertia(tmp_path)
    reference = file_reference(run, replace(SCARA, springs=("joint_2",), values={**SCARA.values, "Ss2": 40.0}), "file")
    assert reference.lacking["Ss2"] == 40
    assert torque_differences(run, run.estimate, reference)[1].lacking > 10


def test_what_the_reader_of_the_file_left_out_is_said(run):
    file = replace(SCARA, notes=("springs of joint_1 (stiffness) are not read", "angles were taken as right ones"))
    assert file_reference(run, file, "file").notes == ("'file': springs of joint_1 (stiffness) are not read",)
