"""An arm identified from any format of logs is the arm identified from NPZ."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.io import savemat

from simulated_experiments import scara
from steelyard.identification import Settings, identify
from steelyard.recording import read_recording, setup_from_table, write_recording
from steelyard.robot import load_robot


def arrays():
    recording = scara(1)
    (torque,) = recording.torques
    return {"time": recording.time, "q": recording.q.T, torque.kind: torque.values.T}


def write_hdf5(folder):
    h5py = pytest.importorskip("h5py", reason="HDF5 files are read with h5py, of the extra 'data'")
    with h5py.File(folder / "log.h5", "w") as file:
        for name, values in arrays().items():
            file.create_dataset(name, data=values, chunks=True, compression="gzip")
    return folder / "log.h5", {}


def write_mat(folder):
    savemat(folder / "log.mat", {"run": arrays()}, do_compression=True)
    return folder / "log.mat", {"group": "run"}


def write_lerobot(folder):
    (folder / "meta").mkdir()
    (folder / "data" / "chunk-000").mkdir(parents=True)
    features = {name: {"names": ["joint_1", "joint_2"]} for name in arrays() if name != "time"}
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v3.0", "features": features}))
    columns = {name.replace("time", "timestamp"): values.tolist() for name, values in arrays().items()}
    frame = pl.DataFrame({**columns, "episode_index": [0] * len(columns["timestamp"])})
    frame.write_parquet(folder / "data" / "chunk-000" / "file-000.parquet")
    return folder, {"episode": 0}


def parameters_from(recording):
    found = identify("scara_2r", recording, settings=Settings(bias_repeats=0, select=False))
    return [(row["name"], row["value"]) for row in found.to_json()["parameters"]]


@pytest.mark.parametrize("write", [pytest.param(write_hdf5, marks=pytest.mark.large), write_mat, write_lerobot])
def test_the_same_arm_is_identified(tmp_path, write):
    path, table = write(tmp_path)
    recording = read_recording(load_robot("scara_2r"), setup_from_table(table), files=path)
    reference = read_recording(load_robot("scara_2r"), write_recording(scara(1), tmp_path / "log.npz"))
    np.testing.assert_array_equal(recording.q, reference.q)
    assert parameters_from(recording) == parameters_from(reference)
