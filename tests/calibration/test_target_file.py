"""Files of targets: joints or poses, in declared units, refused where they are unclear."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.spatial.transform import Rotation

from calibrated_stand_in import stand_in
from steelyard.calibration.application.targets import read_targets
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot


@pytest.fixture(scope="module")
def arm():
    return stand_in(load_robot("ur10e"), "ee_link")


@pytest.fixture
def written(tmp_path):
    def write(text: str):
        path = tmp_path / "targets.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_joints_mean_the_pose_of_the_nominal_arm(arm, written):
    names = [body.joint.name for body in arm.robot.actuated]
    path = written("# a comment\nname," + ",".join(names) + "\n\nfirst,10,-90,90,-90,90,0\nsecond,0,-45,60,-30,80,5\n")
    found = read_targets(path, arm, angle="deg")
    q = np.radians([[10, -90, 90, -90, 90, 0], [0, -45, 60, -30, 80, 5]]).T
    assert found.names == ("first", "second")
    assert found.joints is not None
    np.testing.assert_allclose(found.joints, q)
    rotation, position = arm.pose(q, None, np.zeros(len(arm.names)))
    np.testing.assert_allclose(found.wanted.position, position)
    np.testing.assert_allclose(found.wanted.rotation, rotation)
    assert found.wanted.turned.all()


def test_positions_come_in_the_declared_unit_and_may_have_no_orientation(arm, written):
    found = read_targets(written("x;y;z\n500;-200;300\n"), arm, length="mm")
    np.testing.assert_allclose(found.wanted.position, [[0.5, -0.2, 0.3]])
    assert not found.wanted.turned.any()
    assert found.joints is None
    assert found.names == ("1",)


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_other_formats_say_the_same(arm, written, tmp_path, ending):
    same = read_targets(written("name,x,y,z\nfirst,500,-200,300\nsecond,1,2,3\n"), arm, length="mm")
    columns = {"name": ["first", "second"], "x": [500.0, 1.0], "y": [-200.0, 2.0], "z": [300, 3]}
    path = tmp_path / f"targets{ending}"
    np.savez(path, **columns) if ending == ".npz" else pl.DataFrame(columns).write_parquet(path)
    found = read_targets(path, arm, length="mm")
    assert found.names == same.names
    np.testing.assert_array_equal(found.wanted.position, same.wanted.position)


def test_quaternions_and_angles_say_the_same(arm, written):
    turn = Rotation.from_euler("ZYX", [0.3, -0.2, 0.1])
    qx, qy, qz, qw = turn.as_quat()
    one = read_targets(written(f"x,y,z,qw,qx,qy,qz\n0.5,0,0.3,{qw},{qx},{qy},{qz}\n0.5,0,0.3,,,,\n"), arm)
    two = read_targets(written("x,y,z,roll,pitch,yaw\n0.5,0,0.3,0.1,-0.2,0.3\n"), arm)
    np.testing.assert_allclose(one.wanted.rotation[0], turn.as_matrix(), atol=1e-15)
    np.testing.assert_allclose(two.wanted.rotation[0], turn.as_matrix(), atol=1e-15)
    assert one.wanted.turned.tolist() == [True, False]


def test_poses_may_come_with_the_joints_a_controller_would_take(arm, written):
    found = read_targets(written("q1,q2,q3,q4,q5,q6,x,y,z\n1,2,3,4,5,6,0.1,0.2,0.3\n"), arm)
    assert found.joints is not None
    assert found.joints[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert found.wanted.position.tolist() == [[0.1, 0.2, 0.3]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y,z\n", "there are no targets in it"),
        ("", "the file is empty; expected: targets"),
        ("x,y\n1,2\n", "no column 'z' .*needed are the robot's joints, or x, y and z"),
        ("u,v,w\n1,2,3\n", "no column 'x'"),
        ("x,y,z\n1,2\n", "line 2 has 2 cells; 3 are expected .x, y, z"),
        ("x,y,z\n1,2,nan\n", "column 'z' holds 'nan' in line 2"),
        ("x,y,z\n1,2,\n", "column 'z' holds '' in line 2"),
        ("x,y,z\n#\n1,two,3\n", "column 'y' holds 'two' in line 3"),
        ("1,2,3\n", "has no header; name its columns in the first line"),
        ("x,y,x\n1,2,3\n", "two columns are called 'x'"),
        ("q1,q2\n1,2\n", "has a column 'q1' but none 'q3'"),
        ("x,y,z,qw,qx,qy,qz\n0,0,0,2,0,0,0\n", "length 2"),
        ("x,y,z,qw,qx,qy,qz\n0,0,0,1,0,,0\n", "line 2 lacks a number; give all of qw, qx, qy, qz or none"),
    ],
)
def test_what_is_unclear_is_refused_with_its_place(arm, written, text, message):
    with pytest.raises(CalibrationError, match=message):
        read_targets(written(text), arm)


def test_units_and_missing_files_are_named(arm, written, tmp_path):
    with pytest.raises(CalibrationError, match="unit of length is 'mmm'; allowed: m, mm, um, in; did you mean 'mm'"):
        read_targets(written("x,y,z\n1,2,3\n"), arm, length="mmm")
    with pytest.raises(CalibrationError, match="no such file"):
        read_targets(tmp_path / "absent.csv", arm)
    with pytest.raises(CalibrationError, match="is a folder"):
        read_targets(tmp_path, arm)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(CalibrationError, match="there are no targets in it"):
        read_targets(binary, arm)
