"""Kinds of input that are fuzzed: small valid examples of each, and what reads them.

A kind is one entry of ``KINDS``: its examples are folders of files, any of which may be damaged, and ``read`` gets the
folder. To add one, write a function that returns the examples and one that reads a folder.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import casadi as ca
import numpy as np
import polars as pl
from scipy.io import savemat
from scipy.spatial.transform import Rotation

from ros_bags import Controller, Joints, Logged, Wrench, stored_file, write_bag
from steelyard.calibration.chain.problem import measured_problem
from steelyard.calibration.measurement.files import read_measurements
from steelyard.calibration.measurement.measurements import Measurements
from steelyard.calibration.measurement.nominal import nominal_poses
from steelyard.calibration.measurement.setup import CalibrationSetup
from steelyard.calibration.measurement.setup_file import read_setup as read_calibration_setup
from steelyard.calibration.measurement.validation import check_measurements
from steelyard.cli import compare as compare_command
from steelyard.cli import design as design_command
from steelyard.cli import model as model_command
from steelyard.cli import simulate as simulate_command
from steelyard.consistency import ConsistencySettings
from steelyard.errors import SteelyardError
from steelyard.excitation import SCHEMA as DESIGN_KEYS
from steelyard.excitation import design_settings
from steelyard.excitation.limits.design_limits import design_limits
from steelyard.export.exporting import export_model
from steelyard.export.mjcf import edited_mjcf
from steelyard.export.urdf import edited_urdf
from steelyard.fleet import read_manifest
from steelyard.fleet.log_results import LogResult, ResultStore, stored_document
from steelyard.fleet.pipeline import declared_before
from steelyard.identification import SCHEMA as IDENTIFY_SCHEMA
from steelyard.identification import Settings, identify, read_run, save_run
from steelyard.identification.settings import settings_from_table
from steelyard.model import build_model
from steelyard.motion import read_trajectory
from steelyard.recording import check_recording, read_recordings, setup_from_table
from steelyard.robot import Robot, load_robot, read_mjcf, read_urdf
from steelyard.robot.mjcf_files import mjcf_source
from steelyard.run import RunFolder, read_config, write_arrays
from steelyard.run.folder import sealed
from steelyard.simulation import Experiment, experiment_from_settings, recording_of, simulate
from steelyard.study import default_motion
from steelyard.tables import read_columns

Files = Mapping[str, bytes]

URDF = b"""<?xml version="1.0"?>
<robot name="two">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="upper"><inertial><origin xyz="0 0 0.2" rpy="0 0.1 0"/><mass value="3.5"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.02"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
  <link name="fore"><collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision></link>
  <link name="finger"/>
  <link name="tip"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0.3" rpy="0 0 1.5"/><limit lower="-2.5" upper="2.5" velocity="3" effort="50"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
    <origin xyz="0.1 0 0.4"/><limit lower="-2.0" upper="2.0" velocity="3" effort="50"/></joint>
  <joint name="grip" type="prismatic"><parent link="fore"/><child link="finger"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.1" velocity="1" effort="5"/><mimic joint="elbow" multiplier="0.1" offset="0"/></joint>
  <joint name="flange" type="fixed"><parent link="fore"/><child link="tip"/>
    <origin xyz="0.3 0.1 0.05" rpy="0 0.2 0"/></joint>
</robot>
"""
MJCF = b"""<mujoco model="two">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0 0 -9.81"/>
  <default><joint damping="0.5" armature="0.1"/><default class="elbow"><joint frictionloss="0.2"/></default></default>
  <worldbody>
    <body name="upper" pos="0 0 0.3" euler="0 0 90">
      <inertial pos="0 0 0.2" mass="3.5" diaginertia="0.1 0.1 0.02"/>
      <joint name="shoulder" axis="0 0 1" range="-140 140"/>
      <geom type="capsule" size="0.05 0.2" pos="0 0 0.2"/>
      <body name="fore" pos="0.1 0 0.4" quat="0.9 0.1 0 0">
        <joint name="elbow" class="elbow" axis="0 1 0" range="-110 110" actuatorfrcrange="-50 50"/>
        <geom type="box" size="0.05 0.05 0.15" mass="1.2"/>
        <body name="tip" pos="0 0 0.3"><geom type="sphere" size="0.02" density="500"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m1" joint="shoulder" gear="100" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
TABLE = b"""[robot]
name = "two_link"
gravity = [0, 0, -9.81]
source = "a table"
floor = -0.5
springs = ["joint_1"]
torque = "motor_torque"
measured = "motor"
effects = ["inertia", "Fvm"]
payload_link = "link_2"

[[joint]]
alpha_deg = 0
d = 0
theta_deg = 0
r = 0.3
lower_deg = -170
upper_deg = 170
velocity = 3.0
effort = 50
gear_ratio = 100
inertia = [0.1, 0, 0, 0.1, 0, 0.02, 0, 0, 0.3, 4]

[[joint]]
name = "elbow"
type = "revolute"
xyz = [0.4, 0, 0]
rpy_deg = [-90, 0, 0]
axis = [0, 0, 1]
mass = 2.0
centre = [0.1, 0, 0]
inertia_at_centre = [0.1, 0, 0, 0.1, 0, 0.1]

[values]
Ia2 = 0.3
Fvm = [1.5, 0.8]

[payloads]
ball = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1]

[[gear_coupling]]
motor = "elbow"
also_turns_with = "joint_1"
ratio = 0.5
"""
BALANCED_TABLE = TABLE.replace(
    b"[values]",
    b"""[[balancer]]
joint = "joint_1"
position_deg = [-170, -60, 0, 90, 170.0]
torque = [10.0, -3, 5, 8, 1e1]
periodic = true
scale = -1.5
estimate = true

[[balancer]]
joint = "elbow"
on_parent = 0.4
on_link = 0.1
angle_deg = 30
force = "20 + 5 * (length - 0.1) ** 1.3 / sqrt(abs(length) + 1)"

[friction]
dahl = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
stribeck = [0.01, 0.03, 0.1, 0.3]
temperature = 20.5
ripple = [1, 2.5, 6]
ripple_of = "motor"

[values]""",
)
KNOWN_TORQUE_SETUP = b"""[recording]
files = ["log.csv"]
skip_lines = 1
time = "time"
q = ["q[shoulder]", "q[elbow]"]
known_torque = {columns = ["qd[elbow]"], joints = ["elbow"], unit = "Nm", sign = -1, side = "motor"}
gear_ratio = 50
"""
MOTIONS = (
    b"""kind = "quintic"
joints = ["shoulder", "elbow"]
durations = [1.0, 1.5]
via = "smooth"
points_deg = [[0.0, 0.0], [30, -40], [0.0, 0.0]]
""",
    b"""kind = "trapezoidal"
joints = ["shoulder", "elbow"]
durations = 1.2
ramp = 0.2
cruise = 0.1
points = [[0.0, 0.0], [0.5, -1.0]]
""",
    b"""kind = "approach"
joints = ["shoulder", "elbow"]
start_posture = [0.0, 0.0]
duration_in = 2.0
duration_out = 2.0
[core]
kind = "fourier"
period = 10.0
periods = 3
q0 = [0.0, 0.5]
sin = [[0.3, 0.1], [0.2, 0.0]]
cos = [[0.0, 0.1], [0.1, 0.0]]
""",
)
DESCRIPTION = (
    '{"recording": 1, "joints": ["shoulder", "elbow"], "payload": "ball", "torques": {"current": "motor_current"}, '
    '"gain": {"current": [2.0, 1.5]}, "notes": ["warm"]}'
)
COLUMNS = "time,q[shoulder],q[elbow],qd[shoulder],qd[elbow],current[shoulder],current[elbow]"
SAMPLES = 12
SETUPS = (
    b"""[recording]
files = ["log.csv"]
joints = ["shoulder", "elbow"]
rows = "1:11"
seconds = [0.0, 20]
payload = "ball"
notes = ["warm"]
time = {column = "time", unit = "s"}
gear_ratio = [100, 50.0]
coupling = [[1, 0], [0.5, 1]]
separator = ","
header = true
comment = ["#"]
decimal = "."

[recording.q]
columns = ["q[shoulder]", "q[elbow]"]
unit = "rad"
side = "motor"
sign = [1, -1]
offset_deg = {elbow = 90}
unwrap = true

[recording.qd]
columns = "qd*"
unit = "deg/s"

[[recording.torque]]
kind = "motor_current"
columns = "current[{shoulder,elbow}]"
gain = [2.0, 1.5]
unit = "percent"
rating = 5.0
side = "motor"

[[recording.file]]
path = "l*.csv"
skip_lines = 1
""",
    b"""[recording]
rate = 100

[[recording.part]]
path = "log.csv"
skip_lines = 1
q = {columns = "2:3", unit = "count", counts_per_turn = 4096}
qd = "4:5"

[[recording.part]]
path = "log.csv"
torque = {kind = "motor_current", columns = [6, 7], name = "current"}
""",
    b"""[recording]
files = "values.dat"
period = 0.01
header = false
q = "2:3"
qd = [4, 5]
side = "joint"
reshape = 7
""",
)
TEXT_SETUP = b"""[recording]
files = ["log.txt"]
time = "t"
q = {columns = ["q1", "q2"], unit = "deg"}
torque = {kind = "joint_torque", columns = "tau{1..2}"}
"""
CONFIG = b"""[model]
torque = "motor_torque"
payload = "none"
effects = ["inertia", "Fvm", "Fcm"]
gravity = [0, 0, -9.81]
sign_width = 0.01
lock = {joint_2 = 0.5}

[identify]
method = "wls"
validate = ["other.csv"]
cutoff = 10.0

[simulate]
control = "pd"
kp = [100.0, 50.0]
kd = [10.0, 5.0]
control_rate = 1000.0
record_rate = 100.0
encoder_quantum = 1e-5
motor_noise = {kind = "white", std = [0.1, 0.1]}
seed = 1
runs = 2

[design]
harmonics = 5
duration = [5.0, 10.0]
periods = 1
starts = 2
seed = 3
"""
LIMITS = b"""torque_side = "joint"
floor = -0.3

[joints]
position_deg = [[-100, 100], [-90, 90]]
velocity = 1.5
acceleration = {shoulder = 4.0, elbow = 5.0}
jerk = [50.0, 80.0]
torque = [40.0, 30.0]
velocity_scale = 0.8
position_margin = 0.05

[[space]]
name = "table"
link = "fore"
point = [0, 0, 0.1]
kind = "half_space"
normal = [0, 0, 1]
offset = -0.1
margin = 0.02

[[space]]
kind = "cylinder"
radius = 0.01
keep = "out"
upper = 0.1

[[capsule]]
link = "fore"
start = [0, 0, 0]
end = [0, 0, 0.1]
radius = 0.08

[[obstacle]]
name = "pillar"
kind = "sphere"
centre = [3, 0, 0]
radius = 0.1
ignore = ["upper"]

[self_collision]
on = true
margin = 0.01
ignore = [["base", "fore"]]
"""
MANIFESTS = (
    b"""robot,serial,date,files,payload,config
scara_2r,A-07,2026-03-01,a.npz;b.npz,ball,steelyard.toml
scara_2r,A-08,2026-03-01T22:15+02:00,"c.npz",,
""",
    b"""[[log]]
robot = "scara_2r"
serial = 7
date = 2026-03-01T22:15:00Z
files = ["a.npz", "b.npz"]
payload = "ball"

[model.scara_2r]
cutoff = 10.0
effects = ["inertia", "Fvm"]
decimation = 2
""",
)
CALIBRATION_SETUPS = (
    b"""[measurement]
position = "mm"
angle = "deg"
link = "tip"
angles = "measured"
sigma = [10e-6, 10e-6, 20e-6]
load = "heavy"
kind = "position"
columns = {pose = "pose", x = "x"}

[joints]
shoulder = {shoulder = 1, constant_deg = 0}
elbow = "elbow"

[base]
xyz = [0, 0, 0]
rpy_deg = [0, 0, 0]

[markers.nose]
position = [0.1, 0, 0.02]
known = true

[loads.heavy]
mass = 26
point = [0.15, 0, -0.4]

[elastic]
joints = ["elbow"]
nodes_deg = {elbow = [-40, 0, 57]}
between = "linear"
own_weight = "none"

[geometry]
joints = ["elbow"]
""",
    b"""[measurement]
position = "mm"
angle = "deg"
tracker = {station = [0, 0, 0], distance = 10e-6, distance_per_metre = 0.5e-6, angle = 5e-6}
sigma_rotation = 1e-4
link = "tip"

[loads.heavy]
force = [0, 0, -100]
point = "tip"

[tool]
xyz = [0, 0, 0.1]
columns = ["x", "y", "z", "roll", "pitch", "yaw"]

[markers.nose]
columns = ["x", "y", "z"]
""",
)


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        examples: Returns small valid inputs, each the content of a folder by file name.
        damaged: Endings of the file names that are damaged; the others stay valid.
        read: Reads a folder, with the checks that follow the reading.
        share: Part of the cases of other kinds that it gets, for one that takes long.
    """

    examples: Callable[[], Sequence[Files]]
    damaged: tuple[str, ...]
    read: Callable[[Path], object]
    share: float = 1.0


@cache
def arm() -> Robot:
    """Return the arm of the examples."""
    return read_urdf(URDF)


@cache
def samples() -> dict[str, np.ndarray]:
    """Return a smooth motion: time (N,), q, qd and current (2, N)."""
    time = np.arange(SAMPLES) / 100.0
    phase = np.array([[1.3], [2.1]])
    return {
        "time": time, "q": np.sin(phase * time), "qd": phase * np.cos(phase * time),
        "current": 5 * np.cos(3 * phase * time),
    }  # fmt: skip


def _rows(separator: str = ",") -> str:
    table = np.column_stack([values.T for values in samples().values()])
    return "".join(separator.join(f"{value:.6g}" for value in row) + "\n" for row in table)


@cache
def _text_log() -> bytes:
    return f"# steelyard {DESCRIPTION}\n{COLUMNS}\n{_rows()}".encode()


def _values() -> bytes:
    return _rows().replace(",", "\n").encode()


def _archive(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


@cache
def _npz_logs() -> tuple[Files, ...]:
    plain = {
        "time": samples()["time"],
        "q": samples()["q"].T,
        "qd": samples()["qd"],
        "joint_torque": samples()["current"],
    }
    described = _archive(**samples(), steelyard=np.array(DESCRIPTION))
    return {"log.npz": described}, {"log.npz": _archive(**plain)}


@cache
def _parquet_logs() -> tuple[Files, ...]:
    columns = dict(
        zip(
            COLUMNS.replace("current", "joint_torque").split(","),
            np.loadtxt(io.StringIO(_rows()), delimiter=",").T,
            strict=True,
        )
    )
    lists = {"time": samples()["time"], "q": samples()["q"].T.tolist(), "joint_torque": samples()["current"].T.tolist()}
    logs = []
    for content in (columns, lists):
        file = io.BytesIO()
        pl.DataFrame(content).write_parquet(file, compression="uncompressed")
        logs.append({"log.parquet": file.getvalue()})
    return tuple(logs)


BAG_SETUP = b"""[recording]
files = ["LOG"]
topic = "/joint_states"
q = "q[{shoulder,elbow}]"
qd = {columns = "qd", sign = -1}
torque = {kind = "joint_torque", columns = "effort", unit = "Nm"}
"""


def _bag_messages() -> list[Logged]:
    """Return states of the arm, some in another order and some of a gripper, and what else may be in a bag."""
    stamps = [10**9 + 10**7 * k for k in range(SAMPLES)]
    arrays = [samples()[name].T for name in ("q", "qd", "current")]
    found: list[Logged] = []
    for k, stamp in enumerate(stamps):
        turn = -1 if k % 4 == 3 else 1
        found.append(Joints(stamp, ["shoulder", "elbow"][::turn], *(rows[k][::turn] for rows in arrays)))
        if k % 5 == 2:
            found += [Joints(stamp, ["finger"], [0.1]), Wrench(stamp, [1.0, 2, 3, 4, 5, 6])]
    return found


def _controller_messages() -> list[Logged]:
    q, qd = samples()["q"].T, samples()["qd"].T
    return [
        Controller(
            10**9 + 10**7 * k, ["shoulder", "elbow"],
            {"feedback": {"positions": q[k], "velocities": qd[k]}, "actual": {"positions": q[k]},
             "reference": {"positions": q[k]}, "desired": {"positions": q[k]}},
        )
        for k in range(SAMPLES)
    ]  # fmt: skip


def _bag(name: str, messages: list[Logged], packed: str = "", version: str = "noetic") -> Files:
    """Return a bag as the file ``log`` of its kind, or (packed file or message) as the files of its folder."""
    with TemporaryDirectory() as place:
        written = write_bag(Path(place) / name, messages, packed, version)
        if written.is_file():
            return {"log.bag": written.read_bytes()}
        if packed in ("file", "message"):
            return {file.name: file.read_bytes() for file in written.iterdir()}
        file = stored_file(written)
        return {f"log{file.suffix}": file.read_bytes()}


def _declared_bag(files: Files) -> Files:
    (name,) = files
    return {**files, "steelyard.toml": BAG_SETUP.replace(b"LOG", name.encode())}


@cache
def _bag_logs() -> tuple[Files, ...]:
    plain = _bag("log.bag", _bag_messages())
    return (
        plain, _declared_bag(plain), _bag("log.bag", _bag_messages(), "lz4"), _bag("log.bag", _bag_messages(), "bz2"),
        _bag("log.bag", _controller_messages()),
    )  # fmt: skip


@cache
def _db3_logs() -> tuple[Files, ...]:
    plain = _bag("db3", _bag_messages())
    return (
        plain, _declared_bag(plain), _bag("db3", _controller_messages(), version="humble"),
        _bag("db3", _bag_messages(), "message"), _bag("db3", _bag_messages(), "file"),
    )  # fmt: skip


@cache
def _mcap_logs() -> tuple[Files, ...]:
    plain = _bag("mcap", _bag_messages())
    content = plain["log.mcap"]
    return (
        plain, _declared_bag(plain),
        {"log.mcap": _without_chunks(content)}, {"log.mcap": content[: -len(content) // 3]},
        _bag("mcap", _bag_messages(), "storage"), _bag("mcap", _bag_messages(), "file"),
        _bag("mcap", _controller_messages(), version="jazzy"),
    )  # fmt: skip


def _without_chunks(mcap: bytes) -> bytes:
    """Return an MCAP file whose records are in no chunk, so that no checksum hides them from a reader."""
    found, place = [mcap[:8]], 8
    while place < len(mcap) - 8:
        kind, length = mcap[place], int.from_bytes(mcap[place + 1 : place + 9], "little")
        body = mcap[place + 9 : place + 9 + length]
        if kind == 6:  # a chunk: times, size, checksum, no codec, length
            found.append(body[40:])
        elif kind in (1, 15):
            found.append(mcap[place : place + 9] + body)
        place += 9 + length
    return b"".join([*found, b"\x02" + (20).to_bytes(8, "little") + bytes(20), mcap[:8]])


def _read_bag(folder: Path) -> None:
    """Read a bag as a log, and as the columns of measurements."""
    given = next((path for path in folder.glob("log.*")), folder)
    with suppress(SteelyardError):
        read_columns(given)
    if given.is_file():
        _read_log(folder)
    else:
        read_recordings(arm(), given)


@cache
def _hdf5_logs() -> tuple[Files, ...]:
    """Return logs in the oldest and newest form of the format, plain, packed, compound and in a group."""
    import h5py

    logs = []
    plain = {"time": samples()["time"], "q": samples()["q"].T, "joint_torque": samples()["current"]}
    for version in ("earliest", "latest"):
        for packing in ({}, {"chunks": True}, {"chunks": True, "compression": "gzip", "shuffle": True}):
            file = io.BytesIO()
            with h5py.File(file, "w", libver=version) as tree:
                for name, values in plain.items():
                    tree.create_dataset(name, data=values, **packing)
                tree["more/constants"] = np.arange(3.0)
                tree["more/state"] = np.zeros(SAMPLES, [("x", "f8"), ("y", "i4"), ("z", "f4", (2,))])
                tree["more"].attrs["unit"] = "A"
                tree["label"] = np.array([b"moving"] * SAMPLES)
                tree["link"] = h5py.SoftLink("/q")
                tree["more/again"] = tree["more"]
            logs.append({"log.h5": file.getvalue()})
    return tuple(logs)


@cache
def _mat_logs() -> tuple[Files, ...]:
    logs = []
    plain = {"time": samples()["time"][:, None], "q": samples()["q"].T, "joint_torque": samples()["current"].T}
    others = {"label": "moving", "names": np.array(["a", "bc"], dtype=object), "count": np.int16(3)}
    nested = {"more": {"signals": {"values": samples()["qd"].T, "label": "qd"}, "on": samples()["time"] > 0}}
    for packed in (False, True):
        file = io.BytesIO()
        savemat(file, {**plain, **others, **nested}, do_compression=packed)
        logs.append({"log.mat": file.getvalue()})
    return tuple(logs)


@cache
def _mat73_logs() -> tuple[Files, ...]:
    """Return logs as MATLAB writes them with -v7.3: HDF5 behind a header, arrays transposed, structures as groups."""
    import h5py

    with TemporaryDirectory() as place:
        path = Path(place) / "log.mat"
        with h5py.File(path, "w", userblock_size=512) as tree:
            for name in ("time", "q", "joint_torque"):
                values = samples()["current" if name == "joint_torque" else name]
                tree.create_dataset(name, data=np.atleast_2d(values), chunks=True, compression="gzip")
                tree[name].attrs["MATLAB_class"] = np.bytes_("double")
            tree["label"] = np.array([[109], [111]], np.uint16)
            tree["label"].attrs["MATLAB_class"] = np.bytes_("char")
            tree["more/values"] = samples()["qd"]
            tree["#refs#/a"] = np.arange(50.0)
        content = path.read_bytes()
    return ({"log.mat": b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + content[128:]},)


@cache
def _lerobot_sets() -> tuple[Files, ...]:
    names = ["shoulder.pos", "elbow.pos"]
    features = {
        name: {"dtype": "float32", "shape": [2], "names": names if old else {"motors": names}}
        for name, old in (("q", True), ("joint_torque", False))
    }
    info = json.dumps({"codebase_version": "v3.0", "fps": 100, "total_episodes": 2, "features": features}).encode()
    content = {
        "timestamp": samples()["time"], "q": samples()["q"].T.tolist(), "joint_torque": samples()["current"].T.tolist(),
        "episode_index": [0] * SAMPLES, "frame_index": range(SAMPLES),
    }  # fmt: skip
    one = pl.DataFrame(content)
    both = pl.concat([one, one.with_columns(pl.lit(1, pl.Int64).alias("episode_index"))])
    sets = []
    for name, frame in (("episode_000000.parquet", one), ("file-000.parquet", both)):
        file = io.BytesIO()
        frame.write_parquet(file, compression="uncompressed")
        sets.append({"info.json": info, name: file.getvalue()})
    return tuple(sets)


def _read_lerobot(folder: Path) -> None:
    """Read an episode of a data set; files of a case lie in one folder."""
    with TemporaryDirectory() as place:
        for path in folder.iterdir():
            target = Path(place) / ("meta" if path.suffix == ".json" else "data/chunk-000") / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        setup = setup_from_table({"episode": 0})
        for recording in read_recordings(arm(), setup, place):
            check_recording(arm(), recording)


@cache
def _dated_logs() -> tuple[Files, ...]:
    """Return text logs with dates as stamps, decimal points and commas, in UTF-8 and UTF-16."""
    table = np.column_stack([values.T for values in samples().values()])
    head = COLUMNS.replace("current", "joint_torque")
    iso = [f"2024-05-01T12:00:{row[0]:09.6f}Z" for row in table]
    german = [f"31.05.2024 12:00:{row[0]:09.6f}" for row in table]
    logs = []
    for dates, separator, comma in ((iso, ",", False), (german, ";", True), (german, " ", False)):
        rows = [
            separator.join([date, *(f"{v:.6g}".replace(".", "," if comma else ".") for v in row[1:])])
            for date, row in zip(dates, table, strict=True)
        ]
        text = "\n".join([head.replace(",", separator), *rows, ""])
        logs += [{"log.asc": text.encode()}, {"log.asc": b"\xff\xfe" + text.encode("utf-16-le")}]
    return (*logs, {"log.asc": b"\xfe\xff" + text.encode("utf-16-be")})


def _whitespace_log() -> Files:
    header = "t q1 q2 qd1 qd2 tau1 tau2\n"
    return {"log.txt": (header + _rows(" ")).encode(), "steelyard.toml": TEXT_SETUP}


@cache
def _measured() -> dict[str, np.ndarray]:
    """Return joint positions [deg], position [mm] and orientation [deg] of a point on the forearm at 12 places."""
    angles = np.random.default_rng(1).uniform(-60, 60, (12, 2))
    rotation, origin = nominal_poses(arm(), "tip", np.radians(angles.T))
    position = 1e3 * (origin + rotation @ [0.1, 0.0, 0.02])
    turn = Rotation.from_matrix(rotation).as_euler("xyz", degrees=True)
    names = ("shoulder", "elbow", "x", "y", "z", "roll", "pitch", "yaw")
    texts = {"pose": [f"p{k}" for k in range(12)], "marker": ["nose"] * 12, "load": ["heavy"] * 12}
    numbers = dict(zip(names, np.column_stack([angles, position, turn]).T, strict=True))
    return {name: np.array(values) for name, values in {**texts, **numbers}.items()}


@cache
def _measurements() -> bytes:
    lines = [",".join(_measured())]
    for row in zip(*_measured().values(), strict=True):
        lines.append(",".join(cell if isinstance(cell, str) else f"{cell:.7g}" for cell in row))
    return "\n".join([*lines, ""]).encode()


def _read_motion(folder: Path) -> None:
    motion = read_trajectory(folder / "motion.toml", ["shoulder", "elbow"])
    motion.at(np.linspace(0.0, motion.duration, 5))


def _read_balanced(folder: Path) -> None:
    robot = load_robot(folder / "arm.toml")
    model = build_model(robot, measured="motor")
    assert np.isfinite(np.array(ca.DM(ca.Function("known", [model.motion.q], [model.known_torque])(0.3)))).all()


def _read_log(folder: Path) -> None:
    setup = folder / "steelyard.toml"
    given = setup if setup.exists() else next(folder.glob("log.*"))
    for recording in read_recordings(arm(), given):
        check_recording(arm(), recording)


def _simulated(path: Path) -> dict[str, object]:
    return read_config(path, "simulate", simulate_command.SCHEMA)


def _read_config(folder: Path) -> None:
    """Read every table of a configuration; a fault in one does not hide those of the others."""
    path = folder / "steelyard.toml"
    readers = (
        lambda: model_command._robot("scara_2r", read_config(path, "model", model_command.SCHEMA)),
        lambda: settings_from_table(read_config(path, "identify", IDENTIFY_SCHEMA)),
        lambda: experiment_from_settings(
            {key: value for key, value in _simulated(path).items() if key not in ("seed", "runs", "format")}
        ),
        lambda: design_settings(read_config(path, "design", {**DESIGN_KEYS, **design_command.KEYS})),
    )  # fmt: skip
    errors: list[SteelyardError] = []
    for reader in readers:
        try:
            reader()
        except SteelyardError as error:
            errors.append(error)
    if errors:
        raise max(errors, key=lambda error: len(str(error)))


def _read_measured(folder: Path) -> tuple[CalibrationSetup, Measurements]:
    setup = read_calibration_setup(folder / "setup.toml", arm())
    data = next(path for path in folder.iterdir() if path.stem == "points")
    measured = read_measurements(data, arm(), setup)
    check_measurements(arm(), setup, measured)
    return setup, measured


def _with_setups(name: str, content: bytes) -> tuple[Files, ...]:
    return tuple({name: content, "setup.toml": setup} for setup in CALIBRATION_SETUPS)


def _run() -> Files:
    """Return the files of a small run, as ``identify --out`` writes them."""
    columns = np.array(["ZZ1R", "Fvm1"])
    arrays = {
        "columns": columns, "values": np.ones(2), "covariance": np.eye(2), "freedom": np.full(2, 9.0),
        "triangle": np.eye(3), "rows": np.array(12), "essential_columns": columns, "essential_values": np.ones(2),
        "essential_covariance": np.eye(2),
    }  # fmt: skip
    row = {"value": 1.0, "sigma": 0.1, "full_value": 1.0, "full_sigma": 0.1, "unit": "kg m^2", "regrouping": "ZZ1"}
    content = {
        "robot": "two", "method": "wls", "covariance": "classical", "torque": "motor", "payload_model": "none",
        "effects": ["inertia"],
        "parameters": [{"name": str(name), **row} for name in columns],
        "preparation": {}, "fit": {}, "recordings": [],
    }  # fmt: skip
    with TemporaryDirectory() as place:
        with RunFolder(Path(place), "identify") as run:
            run.save(
                {"robot": "two"}, {}, content,
                lambda folder, _: {"files": {"estimate": write_arrays(folder, "estimate", arrays)}},
            )  # fmt: skip
        return {path.name: path.read_bytes() for path in Path(place).iterdir()}


def _read_run(folder: Path) -> None:
    """Read a run as ``payload``, ``design --after`` and ``compare`` do."""
    read_run(folder)
    compare_command._compared_run(str(folder), essential=True)


def _read_sealed_run(folder: Path) -> None:
    """Read a run whose writer has sealed what is damaged in it: the seal alone must not be what refuses it."""
    if _is_sealed_again(folder):
        _read_run(folder)


def _is_sealed_again(folder: Path) -> bool:
    """Seal what is in a folder, and return whether that was possible; if not, the kind 'run' has it."""
    path = folder / "result.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        digests = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.glob("*.npz")}
        content["provenance"]["files"] = digests
        path.write_text(json.dumps(sealed(content)), encoding="utf-8")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    return True


def _read_and_edit_urdf(folder: Path) -> None:
    """Read a URDF and write it with heavier links, as ``export --urdf`` does."""
    robot = load_robot(folder / "arm.urdf")
    edit = edited_urdf((folder / "arm.urdf").read_bytes(), _heavier(robot))
    read_urdf(edit.content)


def _read_and_edit_mjcf(folder: Path) -> None:
    """Read an MJCF file and write it with heavier links, as ``export --mjcf`` does."""
    robot = load_robot(folder / "arm.xml")
    edit = edited_mjcf(mjcf_source(folder / "arm.xml"), _heavier(robot))
    read_mjcf(edit.source.content)


def _heavier(robot: Robot) -> Robot:
    """Return the robot with inertial parameters a fifth larger: a body stays as possible as it was."""
    scaled = {name: 1.2 * value for name, value in robot.parameters.items() if name[:2] not in ("Fv", "Fc", "of")}
    return robot.with_parameters(scaled)


@cache
def _identified_run() -> Files:
    """Return the files of a run with consistent parameters, of a few samples of a small arm."""
    robot = load_robot("scara_2r")
    run = simulate(robot, default_motion(robot, 1), Experiment(plant="ideal", record_rate=50), seeds=[1])
    chosen = Settings(bias_repeats=0, hold_out=0.25, consistency=ConsistencySettings(draws=3))
    found = identify(robot, recording_of(run), settings=chosen)
    with TemporaryDirectory() as place:
        save_run(found, place)
        return {path.name: path.read_bytes() for path in Path(place).iterdir() if path.is_file()}


def _export_sealed_run(folder: Path) -> None:
    """Export a run whose writer has sealed what is damaged in it, in every format that is text."""
    if _is_sealed_again(folder):
        with TemporaryDirectory() as out:
            export_model(folder, ["urdf", "yaml", "latex", "numpy"], out=out, force=True, samples=1)


def _read_manifest(folder: Path) -> None:
    """Read what is left of a fleet's manifest."""
    for path in folder.iterdir():
        read_manifest(path)


@cache
def _stored_results() -> list[Files]:
    """Return what a fleet keeps of a log and of its model."""
    finding: Mapping[str, str] = {"severity": "a", "kind": "a", "joint": "a", "text": "a", "remedy": "a"}
    result = LogResult("", True, ("a", "b"), np.ones((2, 3)), 1.5, 100, 2.0, (20.5, 21.0), (finding,))
    with TemporaryDirectory() as place:
        store = ResultStore(Path(place))
        store.write("key", result)
        model = {"scara_2r": {"table": {"cutoff": 10.0, "decimation": 2}, "measured": "motor"}}
        return [{"result.npz": store.path("key").read_bytes(), "models.json": json.dumps(model).encode()}]


def _read_store(folder: Path) -> None:
    """Read results and models of a fleet's store: what is damaged is not there."""
    with TemporaryDirectory() as place:
        store = ResultStore(Path(place))
        store.path("key").parent.mkdir()
        (folder / "result.npz").rename(store.path("key"))
        found = store.read("key")
    assert found is None or found.reason or found.rows.shape[1] == len(found.columns) + 1
    for entry in stored_document(folder / "models.json").values():
        declared_before("scara_2r", entry)


KINDS: dict[str, Kind] = {
    "edit_urdf": Kind(lambda: [{"arm.urdf": URDF}], ("urdf",), _read_and_edit_urdf, share=0.5),
    "edit_mjcf": Kind(lambda: [{"arm.xml": MJCF}], ("xml",), _read_and_edit_mjcf, share=0.5),
    "export_run": Kind(lambda: [_identified_run()], ("json", "npz"), _export_sealed_run, share=0.1),
    "sealed_run": Kind(lambda: [_run()], ("json", "npz"), _read_sealed_run),
    "run": Kind(lambda: [_run()], ("json", "npz"), _read_run),
    "robot_urdf": Kind(lambda: [{"arm.urdf": URDF}], ("urdf",), lambda folder: load_robot(folder / "arm.urdf")),
    "balanced_table": Kind(lambda: [{"arm.toml": BALANCED_TABLE}], ("toml",), _read_balanced),
    "known_torque": Kind(
        lambda: [{"log.csv": _text_log(), "steelyard.toml": KNOWN_TORQUE_SETUP}], ("toml",), _read_log
    ),
    "robot_table": Kind(lambda: [{"arm.toml": TABLE}], ("toml",), lambda folder: load_robot(folder / "arm.toml")),
    "motion": Kind(lambda: [{"motion.toml": motion} for motion in MOTIONS], ("toml",), _read_motion),
    "log_csv": Kind(lambda: [{"log.csv": _text_log()}], ("csv",), _read_log),
    "log_txt": Kind(lambda: [_whitespace_log()], ("txt",), _read_log),
    "log_npz": Kind(_npz_logs, ("npz",), _read_log),
    "log_parquet": Kind(_parquet_logs, ("parquet",), _read_log),
    "log_bag": Kind(_bag_logs, ("bag", "toml"), _read_bag),
    "log_db3": Kind(_db3_logs, ("db3", "zstd", "yaml", "toml"), _read_bag),
    "log_mcap": Kind(_mcap_logs, ("mcap", "zstd", "yaml", "toml"), _read_bag),
    "log_dates": Kind(_dated_logs, ("asc",), _read_log),
    "log_hdf5": Kind(_hdf5_logs, ("h5",), _read_log),
    "log_mat": Kind(_mat_logs, ("mat",), _read_log),
    "log_mat73": Kind(_mat73_logs, ("mat",), _read_log),
    "log_lerobot": Kind(_lerobot_sets, ("json", "parquet"), _read_lerobot),
    "log_setup": Kind(
        lambda: [
            *({"log.csv": _text_log(), "values.dat": _values(), "steelyard.toml": setup} for setup in SETUPS),
            _whitespace_log(),
        ],
        ("toml",), _read_log,
    ),
    "config": Kind(lambda: [{"steelyard.toml": CONFIG}], ("toml",), _read_config),
    "limits": Kind(
        lambda: [{"limits.toml": LIMITS}], ("toml",), lambda folder: design_limits(arm(), folder / "limits.toml")
    ),
    "calibration_setup": Kind(lambda: _with_setups("points.csv", _measurements()), ("toml",), _read_measured),
    "points_csv": Kind(lambda: _with_setups("points.csv", _measurements()), ("csv",), _read_measured),
    "calibration": Kind(
        lambda: _with_setups("points.csv", _measurements()), ("csv", "toml"),
        lambda folder: measured_problem(arm(), *_read_measured(folder)), share=0.1,
    ),
    "manifest": Kind(
        lambda: [{"fleet.csv": MANIFESTS[0]}, {"fleet.toml": MANIFESTS[1]}], ("csv", "toml"), _read_manifest
    ),
    "fleet_store": Kind(_stored_results, ("npz", "json"), _read_store),
    "points_npz": Kind(lambda: _with_setups("points.npz", _archive(**_measured())), ("npz",), _read_measured),
}  # fmt: skip
"""Every kind by name. Cases are numbered within a kind, so a new kind leaves the cases of the others as they are."""
if find_spec("h5py") is None:
    del KINDS["log_hdf5"], KINDS["log_mat73"]
if find_spec("mujoco") is None:
    del KINDS["edit_mjcf"]  # without it MJCF files are not read
if find_spec("rosbags") is None:
    for _kind in ("log_bag", "log_db3", "log_mcap"):
        del KINDS[_kind]  # without it the examples cannot be written
