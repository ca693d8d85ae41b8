"""Measurements from files: long and wide, text, NPZ and Parquet, units, coupled joints, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.spatial.transform import Rotation

from data_folder import data_folder
from steelyard import tables
from steelyard.calibration.measurement.files import read_measurements
from steelyard.calibration.measurement.setup import CalibrationSetup
from steelyard.calibration.measurement.setup_file import read_setup, setup_from_document
from steelyard.errors import CalibrationError
from steelyard.robot import load_robot

JOINTS = [f"joint_{k}" for k in range(1, 7)]
HEADER = ",".join(["pose", "marker", *JOINTS, "x", "y", "z"])
LONG = f"""{HEADER}
# two poses, two markers, the second one measured twice in pose one
p1,a,0,0,0,0,0,0,1,2,3
p1,b,0,0,0,0,0,0,4,,6
p1,b,0,0,0,0,0,0,4,5,6

p2,a,0.5,0,0,0,0,0.25,7,8,9
"""


@pytest.fixture(scope="module")
def robot():
    return load_robot("kuka_kr270")


@pytest.fixture
def read(tmp_path, robot):
    def reader(text, document=None, name="data.csv", of=robot):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_measurements(path, of, setup_from_document(document or {}, of))

    return reader


def test_a_long_file_has_a_row_for_each_marker_and_repeat(read):
    found = read(LONG)
    assert (found.poses, found.markers, found.joints) == (("p1", "p2"), ("a", "b"), tuple(JOINTS))
    np.testing.assert_array_equal(found.pose, [0, 0, 0, 1])
    np.testing.assert_array_equal(found.marker, [0, 1, 1, 0])
    np.testing.assert_array_equal(found.repeat, [0, 0, 1, 0])
    np.testing.assert_array_equal(found.value, [[1, 2, 3], [4, np.nan, 6], [4, 5, 6], [7, 8, 9]])
    np.testing.assert_array_equal(found.q[:, 3], [0.5, 0, 0, 0, 0, 0.25])
    assert found.kind == ("position",) * 4
    assert np.isfinite(found.value).sum() == 11


def test_units_are_turned_into_metres_and_radians(read):
    found = read(LONG, {"measurement": {"position": "in", "angle": "deg"}})
    assert found.value[0, 0] == pytest.approx(0.0254)
    assert found.q[0, 3] == pytest.approx(math.radians(0.5))


@pytest.mark.parametrize("separator", [";", "\t", "  "])
def test_other_separators_and_decimal_commas_say_the_same(read, separator):
    full = LONG.replace("4,,6", "4,5,6")
    text = full.replace(",", separator).replace("0.25", "0,25")
    np.testing.assert_array_equal(read(text).q, read(full).q)
    np.testing.assert_array_equal(read(text).value, read(full).value)


def test_a_file_without_a_header_may_have_decimal_commas(read):
    lines = ["1,5;2;3;4;5;6;10;20;30", "7;8,25;9;10;11;12;-10;40;50"]
    found, same = (read(text, WIDE, "data.txt") for text in ("\n".join(lines), "\n".join(lines).replace(",", ".")))
    np.testing.assert_array_equal(found.value, same.value)
    assert found.value[0, 0] == pytest.approx(1.5e-3)


def test_a_quoted_name_may_hold_the_separator(read):
    assert read(LONG.replace(",a,", ',"left, upper",')).markers == ("left, upper", "b")


def test_names_in_a_set_up_are_those_of_a_file_without_a_header(read):
    lines = [line.split(",", 2)[2] for line in LONG.splitlines()[2:5]]
    document = {"measurement": {"names": [*JOINTS, "x", "y", "z"]}}
    np.testing.assert_array_equal(read("\n".join(lines), document).value, [[1, 2, 3], [4, np.nan, 6], [4, 5, 6]])
    with pytest.raises(CalibrationError, match=r"has 9 columns; 8 are expected \(joint_1,"):
        read("\n".join(lines), {"measurement": {"names": [*JOINTS, "x", "y"]}})


def test_parquet_holds_texts_and_numbers_as_text_does(tmp_path, read, robot):
    lines = [line.split(",") for line in LONG.splitlines() if "," in line and not line.startswith("#")]
    columns = {name: [row[k] or None for row in lines[1:]] for k, name in enumerate(lines[0])}
    frame = pl.DataFrame(columns).with_columns(pl.exclude("pose", "marker").cast(pl.Float64))
    frame = frame.with_columns(pl.col("pose").str.strip_chars("p").cast(pl.Int32))
    frame.with_columns(q=pl.concat_list(JOINTS)).drop(JOINTS).write_parquet(tmp_path / "data.parquet")
    found, same = read_measurements(tmp_path / "data.parquet", robot, CalibrationSetup("tool")), read(LONG)
    assert (found.markers, found.poses) == (same.markers, ("1", "2"))
    for name in ("q", "value", "pose", "marker", "repeat"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same, name))


def test_a_format_that_is_registered_once_serves_measurements_and_logs(tmp_path, robot, monkeypatch):
    def opened(path, options):
        return tables.table_from_arrays({name: [1.0, 2.0] for name in (*JOINTS, "x", "y", "z")}, str(path))

    monkeypatch.setitem(tables.FORMATS, ".toy", tables.Format(opened))
    path = tmp_path / "data.toy"
    path.write_text("any", encoding="utf-8")
    assert tables.open_table(path, tables.TextOptions()).names == (*JOINTS, "x", "y", "z")
    np.testing.assert_array_equal(read_measurements(path, robot, CalibrationSetup("tool")).value[1], [2, 2, 2])


def test_equal_joint_positions_are_one_configuration_without_pose_numbers(read):
    lines = [line.split(",", 1)[1] for line in LONG.splitlines() if "," in line and not line.startswith("#")]
    found = read("\n".join([*lines, "a,0,0,0,0,0,0,1,2,3"]))
    np.testing.assert_array_equal(found.pose, [0, 0, 0, 1, 0])
    np.testing.assert_array_equal(found.repeat, [0, 0, 1, 0, 1])
    assert found.poses == ("1", "2")


WIDE = {
    "measurement": {"position": "mm", "angle": "deg"},
    "joints": {
        "joint_1": "c7", "joint_2": "c8", "joint_3": {"c9": 1, "c8": 1}, "joint_4": {"c7": -2, "constant": 0.5},
        "joint_5": 0.1, "joint_6": 0.2,
    },
    "markers": {"left": {"columns": ["c1", "c2", "c3"]}, "right": {"columns": ["c4", "", "c6"]}},
}  # fmt: skip


def test_a_wide_file_without_header_has_several_markers_in_a_row_and_coupled_joints(read):
    found = read("1 2 3 4 5 6 10 20 30\n7 8 9 10 11 12 -10 40 50\n", WIDE, "data.txt")
    assert found.markers == ("left", "right")
    np.testing.assert_array_equal(found.pose, [0, 0, 1, 1])
    np.testing.assert_array_equal(found.marker, [0, 1, 0, 1])
    np.testing.assert_allclose(found.value, 1e-3 * np.array([[1, 2, 3], [4, np.nan, 6], [7, 8, 9], [10, np.nan, 12]]))
    degree = math.pi / 180
    np.testing.assert_allclose(
        found.q[:, 2], [-10 * degree, 40 * degree, 90 * degree, 20 * degree + 0.5, 0.1, 0.2], atol=1e-15
    )


def test_a_marker_that_was_not_seen_is_left_out_and_said(read):
    document = {**WIDE, "markers": {name: {"columns": list("xyz" if name == "a" else "uvw")} for name in "ab"}}
    document["joints"] = dict(zip(JOINTS, ("q1", "q2", "q3", 0, 0, 0), strict=True))
    found = read("x,y,z,u,v,w,q1,q2,q3\n1,2,3,,,,0,0,0\n1,2,3,4,5,6,1,0,0\n", document)
    np.testing.assert_array_equal(found.marker, [0, 0, 1])
    np.testing.assert_array_equal(found.pose, [0, 1, 1])
    assert "no measured number in 1 row, left out" in found.notes[0]


def test_poses_are_read_from_quaternions_and_from_angles(read):
    turned = Rotation.from_euler("xyz", [[10, -20, 30], [40, 50, 60]], degrees=True)
    quaternions, q = turned.as_quat(scalar_first=True), "0,0,0,0,0,0"
    header = ",".join([*JOINTS, "x,y,z"])
    text = f"{header},qw,qx,qy,qz\n" + "".join(
        f"{q},1,2,3,{','.join(map(repr, row.tolist()))}\n" for row in quaternions
    )
    found = read(text)
    assert found.kind == ("pose", "pose")
    np.testing.assert_array_equal(found.marker, [-1, -1])
    assert found.markers == ()
    np.testing.assert_allclose(found.rotation, turned.as_matrix(), atol=1e-14)
    text = f"{header},roll,pitch,yaw\n{q},1,2,3,10,-20,30\n{q},1,2,3,40,50,60\n"
    np.testing.assert_allclose(read(text, {"measurement": {"angle": "deg"}}).rotation, turned.as_matrix(), atol=1e-14)


def test_distances_and_differences_are_distinguished(read):
    columns = {"kind": "what", "marker": "target"}
    document = {
        "measurement": {"position": "mm", "columns": columns}, "loads": {"w": {"mass": 10, "point": [0, 0, 0]}}
    }  # fmt: skip
    header = ",".join([*JOINTS, "what,target,to,load,x,y,z,distance"])
    q = "0,0,0,0,0,0"
    found = read(f"{header}\n{q},,a,b,,,,,500\n{q},difference,a,,w,1,2,3,\n{q},,b,,none,1,2,3,\n", document)
    assert found.kind == ("distance", "difference", "position")
    assert (found.marker.tolist(), found.other.tolist(), found.load.tolist()) == ([0, 0, 1], [1, -1, -1], [-1, 0, -1])
    np.testing.assert_allclose(found.value[0], [0.5, np.nan, np.nan])
    np.testing.assert_allclose(found.value[1], [1e-3, 2e-3, 3e-3])


def test_npz_says_the_same_as_text(tmp_path, robot, read):
    text = read(LONG)
    path = tmp_path / "data.npz"
    names = np.array(text.markers)[text.marker]
    x, y, z = text.value.T
    np.savez(path, pose=text.pose + 1, marker=names, q=text.q.T, x=x, y=y, z=z)
    found = read_measurements(path, robot, CalibrationSetup("tool"))
    for name in ("q", "pose", "marker", "value", "repeat"):
        np.testing.assert_array_equal(getattr(found, name), getattr(text, name))
    assert found.poses == ("1", "2")


def test_joints_that_do_not_move_the_link_may_be_missing(read):
    panda = load_robot("franka_panda")
    link = panda.bodies[2].link
    names = [body.joint.name for body in panda.actuated]
    text = f"{','.join(names[:3])},x,y,z\n1,2,3,0,0,0\n0,0,0,1,1,1\n"
    found = read(text, {"measurement": {"link": link}}, of=panda)
    np.testing.assert_array_equal(found.q[:, 0], [1, 2, 3, 0, 0, 0, 0])
    with pytest.raises(CalibrationError, match=f"there is no column '{names[3]}'"):
        read(text, {"measurement": {"link": panda.bodies[3].link}}, of=panda)


def row(**changes) -> str:
    cells = {"pose": "p3", "marker": "a", **dict.fromkeys(JOINTS, "1"), "x": "1", "y": "2", "z": "3"} | changes
    return ",".join(cells.values()) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"the file is empty; expected: measurements"),
        ("# nothing\n\n", r"there is no data in it"),
        (HEADER + "\n", r"there are no measurements in it"),
        (LONG.replace("joint_6", "joint6"), r"no column 'joint_6' .*columns: .*did you mean 'joint6'"),
        (LONG.replace(",x,y,z", ",a,b,c"), r"no column x, y, z or distance"),
        (LONG + row(joint_2="nan"), r"column 'joint_2' holds 'nan' in line 8; a finite number is expected"),
        (LONG + row(x="inf"), r"column 'x' holds 'inf' in line 8.*leave it empty"),
        (LONG + row(x="nan"), r"column 'x' holds 'nan'"),
        (LONG + row(y="zwei"), r"column 'y' holds 'zwei' in line 8"),
        (LONG + row(y="1_0"), r"column 'y' holds '1_0'"),
        (LONG + "p3,a,1\n", r"line 8 has 3 cells; 11 are expected"),
        (LONG.replace("marker,", "pose,"), r"two columns are called 'pose'"),
        (LONG + row(pose="p1"), r"pose 'p1' has joint positions 1 rad or m apart"),
        (f"{HEADER}\n" + row(x="", y="", z=""), r"no row holds a measured"),
        (f"load,{HEADER}\nheavy,{row()}", r"line 2 names load 'heavy'; loads of the set-up: none"),
        (f"kind,{HEADER}\nposes,{row()}", r"line 2 measures 'poses'; allowed: .*did you mean 'pose'"),
        (f"kind,{HEADER}\ndistance,{row()}", r"line 2 measures a distance; name the second marker"),
        (f"qw,qx,qy,{HEADER}\n1,0,0,{row()}", r"column 'qz' is missing beside 'qw'"),
        (f"qw,qx,qy,qz,{HEADER}\n1,1,0,0,{row()}", r"quaternion in line 2 has length 1.414; 1 is expected"),
    ],
)
def test_files_that_cannot_be_measurements_are_refused_in_one_line(read, text, said):
    with pytest.raises(CalibrationError, match=said) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_markers_that_the_set_up_does_not_name_are_refused(read):
    with pytest.raises(CalibrationError, match=r"line 4 names marker 'b'; markers of the set-up: a, c"):
        read(LONG, {"markers": {"a": {}, "c": {}}})


def test_declared_columns_must_be_there(read):
    with pytest.raises(CalibrationError, match=r"no column 'confg'"):
        read(LONG, {"measurement": {"columns": {"pose": "confg"}}})


def test_left_handed_matrices_are_refused(tmp_path, robot):
    path = tmp_path / "data.npz"
    turned = np.stack([np.eye(3), np.diag([1.0, 1.0, -1.0])])
    given = {"q": np.zeros((2, 6)), "x": [0, 1], "y": [0, 1], "z": [0, 1]}
    np.savez(path, rotation=turned, **given)
    with pytest.raises(CalibrationError, match=r"orientation of line 2 .* left-handed frame"):
        read_measurements(path, robot, CalibrationSetup("tool"))
    np.savez(path, rotation=1.1 * np.abs(turned), **given)
    with pytest.raises(CalibrationError, match=r"orientation of line 1 .* no rotation"):
        read_measurements(path, robot, CalibrationSetup("tool"))


@pytest.mark.parametrize(
    ("name", "said"),
    [("data.xlsx", "kind of file '.xlsx'"), ("none.csv", "no such file"), ("bad.npz", "is no readable .npz")],
)
def test_files_that_cannot_be_opened_are_refused(tmp_path, robot, name, said):
    for file in ("bad.npz", "data.xlsx"):
        (tmp_path / file).write_text("text", encoding="utf-8")
    with pytest.raises(CalibrationError, match=said):
        read_measurements(tmp_path / name, robot, CalibrationSetup("tool"))


def test_more_rows_than_anyone_measures_are_refused(read, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    with pytest.raises(CalibrationError, match=r"has 4 rows; at most 3 are allowed"):
        read(LONG)


@pytest.mark.data
def test_real_sets_are_read_as_their_makers_describe_them(tmp_path, monkeypatch):
    calibration_data = pytest.importorskip("benchmarks.calibration_data")
    monkeypatch.setenv("STEELYARD_DATA", str(data_folder()))
    sizes = {"fanuc": (36, 3), "kr210": (20, 3), "tiago": (34, 3), "tiago_35": (35, 3), "talos": (61, 1)}
    for name, (poses, markers) in sizes.items():
        case = calibration_data.calibration_case(name, tmp_path / name)
        arm = load_robot(case.robot)
        found = read_measurements(case.measurements, arm, read_setup(case.setup, arm))
        assert (len(found.poses), len(found.markers), found.rows) == (poses, markers, poses * markers)
