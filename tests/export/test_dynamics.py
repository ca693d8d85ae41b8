"""The functions that exports compute: parts add up, any effect is held, what is left out is said."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from arms import ALL_ARMS, arm, inertias_of, motion_of
from identified_arms import assert_parts_equal, every_effect, identified, parts, states, torques
from steelyard.effects import EFFECTS, Effect
from steelyard.errors import ExportError
from steelyard.export import EXPORTS, IdentifiedArm
from steelyard.export.dynamics import SIGNATURES, TorqueSide, arm_dynamics
from steelyard.export.identified import safe_stem
from steelyard.model import build_model
from steelyard.physics import composite_inertia_matrix, inertia_matrix, inertia_symbols, motion_symbols


def computed(one: IdentifiedArm, state: dict[str, np.ndarray], side: TorqueSide = "motor") -> dict[str, np.ndarray]:
    dynamics, found = arm_dynamics(one, side), {}
    for signature in SIGNATURES:
        function = dynamics.functions[signature.name]
        samples = zip(*(state[name] for name in signature.inputs), strict=True)
        found[signature.name] = np.array([np.array(function(*sample, dynamics.values)) for sample in samples])
    return found


@pytest.mark.parametrize("name", ALL_ARMS)
def test_the_composite_body_method_gives_the_inertia_matrix(name):
    robot = arm(name)
    q, chi = motion_symbols(robot)[0], inertia_symbols(robot)
    both = ca.Function("m", [q, chi], [inertia_matrix(robot, q, chi), composite_inertia_matrix(robot, q, chi)])
    for sample in motion_of(robot, 3)[0].T:
        derivative, composite = (np.array(matrix) for matrix in both(sample, inertias_of(robot)))
        assert np.abs(composite - derivative).max() <= 1e-13 * np.abs(derivative).max()
        assert (composite == composite.T).all()


@pytest.mark.parametrize("name", ["scara_2r", "kuka_ir361", "coupled", "gripper", "sliding_tree"])
def test_every_function_equals_torques_of_the_model(name):
    one = identified(name, every_effect(name), sign_width=0.1 if name == "gripper" else 0.0)
    state = states(one, 4)
    assert_parts_equal(computed(one, state), one, state, to=1e-12)


def test_the_reference_of_these_tests_distinguishes_springs_from_friction():
    one = identified("kuka_ir361", every_effect("kuka_ir361"))
    state = states(one, 3)
    found = parts(one, state)
    rigid = torques(replace(one, model=build_model(one.robot, ["inertia"])), state["q"], 0 * state["q"], 0 * state["q"])
    assert np.abs(found["gravity"] - rigid)[:, 1].min() > 0.01
    assert np.array_equal(found["gravity"][:, 2], rigid[:, 2])


def test_joint_torques_are_without_the_motor_side():
    one = identified("scara_2r", ["inertia", "Ia", "Fvm", "Fcl", "offl"])
    state = states(one, 3)
    dynamics = arm_dynamics(one, "joint")
    assert {parameter.side for parameter in dynamics.parameters} == {"link"}
    got = computed(one, state, "joint")["inverse_dynamics"][..., 0]
    wanted = torques(one, state["q"], state["qd"], state["qdd"], measured="joint")
    assert np.abs(got - wanted).max() <= 1e-12 * np.abs(wanted).max()
    assert any("motor side are left out (Ia1" in note for note in dynamics.notes)
    with pytest.raises(ExportError, match="torque side 'motors'; allowed: motor, joint; did you mean 'motor'"):
        arm_dynamics(one, "motors")  # type: ignore[arg-type]


def test_what_the_functions_do_not_hold_is_said():
    robot = arm("scara_2r")
    one = IdentifiedArm(robot, build_model(robot, ["inertia", "Fvm", "offm"], payload="loaded"))
    assert arm_dynamics(one).notes == (
        "the payload is not included: add its ten parameters to those of the link that carries it",
        "no value is known of offm1, offm2: taken as 0",
        "values of the robot that are not part of the identified model are left out: Fcm1, Fcm2",
    )
    assert arm_dynamics(identified("scara_2r")).notes == ()


def test_an_arm_without_inertias_or_with_nan_is_refused():
    robot = arm("scara_2r")
    bare = replace(robot, links=tuple(replace(link, inertia=None) for link in robot.links))
    model = build_model(robot)
    for export in EXPORTS.values():
        with pytest.raises(ExportError, match="no inertia of link 'link_1'"):
            export.build(IdentifiedArm(bare, model))
    with pytest.raises(ExportError, match="parameter Fvm1 is nan"):
        arm_dynamics(IdentifiedArm(robot.with_parameters({"Fvm1": np.nan}), model))


def test_every_export_is_found_from_its_entry_and_names_its_files():
    one = identified("scara_2r")
    for export in EXPORTS.values():
        files = export.build(
            one,
            **{
                name: {"side": "joint", "parameters": True}[name]
                for name in export.options
                if name in ("side", "parameters")
            },
        )
        patterns = {file.name.replace("scara_2r", "<robot>") for file in files}
        assert patterns == set(export.files.split()) or export.name == "casadi"
        assert all(isinstance(file.content, bytes) and file.content for file in files)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("UR10e (real)", "UR10e_real"), ("../../etc/x", "etc_x"), ("7", "arm_7"), ("\u00e4\u202e", "arm"),
        ("Math", "Math_arm"), ("__init__", "init"), ("a" * 500, "a" * 60),
    ],
)  # fmt: skip
def test_a_robots_name_becomes_a_safe_stem(name, stem):
    assert safe_stem(name) == stem


def test_an_effect_that_bends_with_acceleration_is_refused(monkeypatch):
    from steelyard.model.terms import friction

    def bent(effect, robot, motion):
        term = friction.viscous(effect, robot, motion)
        return type(term)(term.parameters, ca.diag(motion.qdd**2))

    monkeypatch.setattr(friction, "bent", bent, raising=False)
    monkeypatch.setitem(EFFECTS, "Fvm", Effect("Fvm", "bent", "friction.bent", ("Fvm",), "motor"))
    with pytest.raises(ExportError, match="not linear in the accelerations"):
        arm_dynamics(identified("scara_2r"))
