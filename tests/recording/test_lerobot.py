"""LeRobot data sets of versions 2 and 3, written as their programs lay them out."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from steelyard.errors import TableError
from steelyard.recording import read_recording, setup_from_table
from steelyard.tables import TextOptions, open_table, read_columns

NAMES = ["elbow.pos", "shoulder.pos"]
SETUP = {"q": "observation.state", "torque": {"kind": "joint_torque", "columns": "observation.effort"}}


def frame_of(motion, episode, last=None):
    rows = slice(0, last)
    q, tau = motion.q[::-1, rows].T, motion.tau[::-1, rows].T
    count = len(q)
    columns = {
        "observation.state": pl.Series(q.tolist(), dtype=pl.List(pl.Float64)),
        "observation.effort": pl.Series(tau.tolist(), dtype=pl.Array(pl.Float64, 2)),
        "timestamp": motion.time[rows],
        "frame_index": range(count),
        "episode_index": [episode] * count,
        "index": range(count),
        "image": [{"bytes": b"x", "path": "a.png"}] * count,
    }
    return pl.DataFrame(columns)


def write_set(folder, motion, episodes, version):
    names = NAMES if version == 3 else {"motors": NAMES}
    features = {
        name: {"dtype": "float32", "shape": [2], "names": names} for name in ("observation.state", "observation.effort")
    }
    info = {"codebase_version": f"v{version}.0", "fps": 200, "total_episodes": episodes, "features": features}
    chunk = folder / "data" / "chunk-000"
    chunk.mkdir(parents=True)
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    frames = [frame_of(motion, number, 2000 - 100 * number) for number in range(episodes)]
    if version == 2:
        for number, frame in enumerate(frames):
            frame.write_parquet(chunk / f"episode_{number:06d}.parquet")
    else:
        for number in range(0, episodes, 2):
            pl.concat(frames[number : number + 2]).write_parquet(chunk / f"file-{number // 2:03d}.parquet")
    return folder


@pytest.mark.parametrize("version", [2, 3])
def test_an_episode_of_a_folder_is_chosen(robot, motion, tmp_path, version):
    folder = write_set(tmp_path / "set", motion, 5, version)
    with pytest.raises(TableError, match=r"is a data set of 5 episodes \(0 to 4\); choose one with episode = 0"):
        read_recording(robot, setup_from_table(SETUP), files=folder)
    for episode in (0, 3, 4):
        recording = read_recording(robot, setup_from_table({**SETUP, "episode": episode}), files=folder)
        last = 2000 - 100 * episode
        np.testing.assert_array_equal(recording.q, motion.q[:, :last])
        np.testing.assert_array_equal(recording.torque().values, motion.tau[:, :last])
        np.testing.assert_array_equal(recording.time, motion.time[:last])
        assert f"episode {episode}" in recording.notes
    with pytest.raises(TableError, match="has no episode 7"):
        read_recording(robot, setup_from_table({**SETUP, "episode": 7}), files=folder)


def test_the_only_episode_needs_no_choice(robot, motion, tmp_path):
    recording = read_recording(robot, setup_from_table(SETUP), files=write_set(tmp_path / "set", motion, 1, 3))
    np.testing.assert_array_equal(recording.q, motion.q)


def test_a_file_of_a_data_set_has_its_names(robot, motion, tmp_path):
    folder = write_set(tmp_path / "set", motion, 2, 3)
    path = folder / "data" / "chunk-000" / "file-000.parquet"
    assert "observation.state[shoulder.pos]" in open_table(path, TextOptions()).names
    recording = read_recording(robot, setup_from_table({**SETUP, "episode": 1}), files=path)
    np.testing.assert_array_equal(recording.q, motion.q[:, :1900])
    assert "observation.effort[elbow.pos]" in read_columns(path).cells


@pytest.mark.parametrize(
    "info", ["[", "[]", "{}", '{"features": 5}', '{"features": {"observation.state": {"names": [1]}}}']
)
def test_damaged_descriptions_are_refused_or_without_names(motion, tmp_path, info):
    folder = write_set(tmp_path / "set", motion, 1, 3)
    (folder / "meta" / "info.json").write_text(info)
    if info == "[":
        with pytest.raises(TableError, match="is no JSON"):
            open_table(folder, TextOptions())
    else:
        assert "observation.state[1]" in open_table(folder, TextOptions()).names
    (path,) = folder.glob("data/*/*.parquet")
    assert "observation.state[1]" in open_table(path, TextOptions()).names


def test_what_has_no_episodes_is_refused(motion, tmp_path):
    pl.DataFrame({"time": motion.time}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(TableError, match="has no column 'episode_index'; leave episode out"):
        open_table(tmp_path / "log.parquet", TextOptions(episode=0))
    folder = write_set(tmp_path / "set", motion, 1, 2)
    next(folder.glob("data/*/*.parquet")).unlink()
    with pytest.raises(TableError, match="download the data set, not its description alone"):
        open_table(folder, TextOptions())
