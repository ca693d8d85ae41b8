"""Observations in files: every bit comes back, damage is reported in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from observe.cases import equations_for, model_of, recording_for
from steelyard.errors import FileError, ObservationError
from steelyard.observe import (
    Preparation,
    load_observations,
    reduce_rows,
    resolve_preparation,
    row_source,
    save_observations,
)


@pytest.fixture(scope="module")
def observations():
    model = model_of("scara_2r", payload="paired")
    recordings = [recording_for(model, 3000), recording_for(model, 3000, seed=1, payload="box")]
    resolved = resolve_preparation(Preparation(cutoff=20.0, decimation=10), recordings)
    return reduce_rows([row_source(r, equations_for(model), resolved, f"{k}") for k, r in enumerate(recordings)])


def test_what_was_saved_comes_back_to_the_last_bit(observations, tmp_path):
    path = tmp_path / "run" / "observations.npz"
    save_observations(path, observations)
    found = load_observations(path)
    assert found.fingerprint == observations.fingerprint
    assert found.recordings == observations.recordings
    for ours, theirs in zip(found.factors, observations.factors, strict=True):
        assert np.array_equal(ours.triangle, theirs.triangle)
        assert not ours.triangle.flags.writeable
        for name in ("recording", "kind", "joint", "block", "columns", "rows"):
            assert getattr(ours, name) == getattr(theirs, name)


def test_the_same_observations_give_the_same_bytes(observations, tmp_path):
    for name in ("a.npz", "b.npz"):
        save_observations(tmp_path / name, observations)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "empty", "array", "other"])
def test_a_damaged_file_is_refused_in_one_line(observations, tmp_path, damage):
    path = tmp_path / "broken.npz"
    save_observations(path, observations)
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0xFF
    changed = {"cut": content[: len(content) // 2], "flip": content, "text": b"not a file of arrays", "empty": b""}
    if damage in changed:
        path.write_bytes(bytes(changed[damage]))
    elif damage == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        np.savez(path, other=np.zeros(3))
    with pytest.raises(ObservationError, match=r"broken\.npz") as caught:
        load_observations(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("edit", ["schema", "fewer numbers", "not finite"])
def test_content_that_does_not_fit_is_refused(observations, tmp_path, edit):
    path = tmp_path / "edited.npz"
    save_observations(path, observations)
    with np.load(path) as file:
        document, numbers = json.loads(str(file["document"])), np.array(file["triangles"])
    if edit == "schema":
        document["schema"] = 99
    elif edit == "fewer numbers":
        numbers = numbers[:-1]
    else:
        numbers[5] = np.nan
    np.savez(path, document=np.array(json.dumps(document)), triangles=numbers)
    with pytest.raises(ObservationError, match="schema 99" if edit == "schema" else "damaged"):
        load_observations(path)


def test_a_missing_file_and_a_place_that_cannot_be_written_are_reported(observations, tmp_path):
    with pytest.raises(ObservationError, match="No such file"):
        load_observations(tmp_path / "nowhere.npz")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        save_observations(Path(tmp_path / "file" / "x.npz"), observations)
