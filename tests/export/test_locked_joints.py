"""Runs with locked joints: the payload is in the right frame, and every file says which joints were held where."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from identified_arms import identified
from steelyard import export_model, save_run
from steelyard.cli import main
from steelyard.consistency import ConsistencySettings
from steelyard.export import EXPORTS
from steelyard.export.verify import file_torques
from steelyard.identification import Settings, identify
from steelyard.recording import Recording, TorqueChannel, write_recording
from steelyard.robot import load_robot, read_urdf


def turned(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Return the rotation of a URDF's rpy, from the three matrices."""
    (cr, sr), (cp, sp), (cy, sy) = ((np.cos(angle), np.sin(angle)) for angle in (roll, pitch, yaw))
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    return about_z @ about_y @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])


def link(name: str, mass: float, centre: str, inertia: tuple[float, float, float]) -> str:
    xx, yy, zz = inertia
    return (
        f'<link name="{name}"><inertial><origin xyz="{centre}"/><mass value="{mass}"/><inertia ixx="{xx}" ixy="0" '
        f'ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial></link>'
    )


def joint(name: str, kind: str, parent: str, child: str, xyz: str, rpy: str, axis: str) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><limit lower="-3" upper="3" effort="200" velocity="9"/></joint>'
    )


ARM = (
    '<robot name="wrist"><link name="base"/>'
    + link("a", 5.0, "0.01 0 0.1", (0.03, 0.03, 0.02))
    + link("b", 4.0, "0.15 0 0.02", (0.008, 0.05, 0.05))
    + link("c", 2.0, "0.1 0 0.02", (0.003, 0.02, 0.02))
    + '<link name="tool0"/>'
    + joint("j1", "revolute", "base", "a", "0 0 0.1", "0 0 0", "0 1 0")
    + joint("j2", "revolute", "a", "b", "0 0 0.2", "0 0 0.2", "1 0 0")
    + joint("j3", "revolute", "b", "c", "0.3 0 0.05", "0 1.2 0", "0 0 1")
    + joint("mount", "fixed", "c", "tool0", "0.01 0.02 0.08", "0.3 1.2 -0.4", "0 0 1")
)
MASS, CENTRE, INERTIA = 2.0, np.array([0.05, -0.03, 0.12]), (0.02, 0.03, 0.025)
LOAD = link("load", MASS, " ".join(map(str, CENTRE)), INERTIA) + joint(
    "grip", "fixed", "tool0", "load", "0 0 0", "0 0 0", "0 0 1"
)
SETTINGS = Settings(
    method="wls", reduction="none", bias_repeats=0, effects=("inertia",), consistency=ConsistencySettings(draws=2)
)


def log(text: str, lock: dict[str, float], seed: int, payload: str | None = None) -> Recording:
    """Return five seconds of the arm on a Fourier motion with joints held."""
    robot, time = read_urdf(f"{text}</robot>".encode()), np.arange(500) / 100
    rng, names = np.random.default_rng(seed), robot.joint_names
    angles = np.outer(2 * np.pi / 5 * np.arange(1, 5), time)
    size, speed = rng.normal(size=(2, len(names), 4)) * 0.3, 2 * np.pi / 5 * np.arange(1, 5)
    q = size[0] @ np.sin(angles) + size[1] @ np.cos(angles)
    qd = (size[0] * speed) @ np.cos(angles) - (size[1] * speed) @ np.sin(angles)
    qdd = -(size[0] * speed**2) @ np.sin(angles) - (size[1] * speed**2) @ np.cos(angles)
    for name, position in lock.items():
        row = names.index(name)
        q[row], qd[row], qdd[row] = position, 0, 0
    torques = file_torques(robot, (q, qd, qdd)) + 1e-3 * rng.normal(size=q.shape)
    return Recording(names, time, q, torques=(TorqueChannel("motor_torque", torques),), payload=payload)


@pytest.fixture(scope="module", params=[{"j3": 0.7}, {"j2": -0.4}], ids=["last", "middle"])
def held(request, tmp_path_factory):
    """Joints that are held, a run of identify with arm and payload together, and one of payload."""
    lock, folder = request.param, tmp_path_factory.mktemp("held")
    (folder / "wrist.urdf").write_text(f"{ARM}</robot>")
    robot, settings = load_robot(folder / "wrist.urdf"), Settings(**{**vars(SETTINGS), "lock": lock})
    empty, unseen = log(ARM, lock, 1), log(ARM, lock, 2)
    together = identify(robot, [empty, log(ARM + LOAD, lock, 3, "load")], [unseen], settings)
    save_run(identify(robot, [empty], [unseen], settings), folder / "arm")
    write_recording(log(ARM + LOAD, lock, 3), folder / "loaded.npz")
    main(["payload", str(folder / "arm"), str(folder / "loaded.npz"), "--out", str(folder / "payload"), "--quiet"])
    return lock, save_run(together, folder / "both").folder, folder / "payload"


def written_centre(run, form, tmp_path, **options):
    text = export_model(run, [], tmp_path, payload=form, force=True, **options).paths[0].read_text()
    pattern = r"^LOAD_DATA.*CM {X (.*?),Y (.*?),Z (.*?)," if form == "kuka" else r"^[^#\n]*?\[(\S+), (\S+), (\S+)\]"
    found = re.search(pattern, text, re.MULTILINE)
    assert found
    return np.array([float(word) for word in found.groups()]) / (1000 if form == "kuka" else 1), text


@pytest.mark.parametrize("which", [1, 2], ids=["identify", "payload"])
@pytest.mark.parametrize("form", ["ur", "kuka", "franka", "ros2"])
def test_the_payload_is_in_the_named_frame(held, which, form, tmp_path):
    lock, run = held[0], held[which]
    flange = {"frame": "tool0"} if form in ("franka", "ros2") else {}
    centre, text = written_centre(run, form, tmp_path, **flange)
    assert "In the frame of link 'tool0'" in text
    name, position = next(iter(lock.items()))
    assert f"Identified with locked joints: {name} at {position}.\n" in text
    np.testing.assert_allclose(centre, CENTRE, atol=2e-3)
    # The same body from the transforms of the file alone.
    in_c = turned(0.3, 1.2, -0.4) @ CENTRE + [0.01, 0.02, 0.08]
    np.testing.assert_allclose(written_centre(run, form, tmp_path, frame="c")[0], in_c, atol=2e-3)
    if "j3" in lock:
        about_j3 = turned(0, 0, lock["j3"])
        in_b = turned(0, 1.2, 0) @ about_j3 @ in_c + [0.3, 0, 0.05]
        centre, text = written_centre(run, form, tmp_path, frame="b")
        np.testing.assert_allclose(centre, in_b, atol=2e-3)
        assert "If the payload is mounted behind j3, the numbers are valid with it there only" in text


def test_ros_names_the_link_that_carries_the_payload(held, tmp_path):
    text = export_model(held[2], [], tmp_path, payload="ros2", force=True).paths[0].read_text()
    carrier = "b" if "j3" in held[0] else "c"
    assert f'frame_id: "{carrier}"' in text
    result = json.loads((held[2] / "result.json").read_text())
    assert (result["payload_link"], result["locked_joints"]) == (carrier, held[0])


def test_every_format_says_which_joints_were_held(held, tmp_path):
    note = "identified with locked joints, and valid with them there only: " + ", ".join(
        f"{name} at {position}" for name, position in held[0].items()
    )
    assert note in export_model(held[1], ["c"], tmp_path, force=True).notes
    for form in EXPORTS:
        written = export_model(held[1], [form], tmp_path, force=True)
        assert note in written.files[0].notes
        assert note in written.to_json()["notes"]
        described = written.paths[-1 if form in ("casadi", "c") else 0]
        assert note in re.sub(r"\n[^\w]*", " ", described.read_text()), form
    content = json.loads((tmp_path / "wrist.json").read_text())
    assert content["locked_joints"] == held[0]
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load((tmp_path / "wrist.yaml").read_text()) == content


@pytest.mark.parametrize("form", [form for form in EXPORTS if form not in ("urdf", "mjcf")])
def test_every_format_says_another_gravity(form):
    arm = identified(load_robot("scara_2r").with_gravity((0.0, 4.0, -9.0)))
    files = EXPORTS[form].build(arm)
    note = "identified with gravity 0.0 4.0 -9.0 m/s^2 in the base frame"
    assert note in files[0].notes
    assert note in files[-1 if form in ("casadi", "c") else 0].content.decode()
    usual = EXPORTS[form].build(identified("scara_2r"))
    assert not any("identified with gravity" in note for note in usual[0].notes)
