"""Recordings fitted alone against all of them together."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from steelyard.estimate import weighted
from steelyard.judge import repeatability
from steelyard.observe import Factor, Fingerprint, Observations, RecordingInfo

COLUMNS = ("Fv1", "Fc1", "ZZ2", "MX2", "MY2", "ML")
ARM = COLUMNS[:-1]
TRUTH = np.array([1.0, 2.0, 0.5, 0.3, -0.2, 4.0])
SIGMA = 0.5
ROWS = 200


def recording(label, rng, truth=TRUTH, columns=COLUMNS, mix=None):
    """Return two equations of one recording as factors: random regressors, white noise."""
    factors = []
    index = [COLUMNS.index(name) for name in columns]
    for joint in ("j1", "j2"):
        W = rng.standard_normal((ROWS, len(columns)))
        if mix is not None:
            W = mix(W)
        y = W @ truth[index] + SIGMA * rng.standard_normal(ROWS)
        triangle = np.asarray(np.linalg.qr(np.column_stack([W, y]), mode="r"))
        factors.append(Factor(label, "motor", joint, 0, tuple(columns), triangle, ROWS))
    return factors


def observations(*recordings):
    factors = tuple(factor for parts in recordings for factor in parts)
    labels = dict.fromkeys(factor.recording for factor in factors)
    infos = tuple(RecordingInfo(label, (label,), None, ROWS) for label in labels)
    return Observations(Fingerprint(*("alike" for _ in fields(Fingerprint))), factors, infos)


def judged(data):
    result = alone_and_together(data)
    assert result is not None
    return result


def alone_and_together(data):
    deviations = {(f.recording, f.kind, f.joint): SIGMA for f in data.factors}
    estimate = weighted(data, COLUMNS, deviations)
    return repeatability(data, estimate, dict.fromkeys(deviations, 1 / SIGMA))


def test_the_spread_of_consistent_recordings_is_one_on_average():
    rng = np.random.default_rng(0)
    squares, per_recording = [], []
    for _ in range(200):
        result = judged(observations(*(recording(label, rng) for label in "abc")))
        assert dict(result.compared) == dict.fromkeys("abc", len(COLUMNS))
        squares.append(result.spread**2)
        per_recording += [spread**2 for spread in result.recordings.values()]
    # 200 experiments of 12 independent z^2: the mean has a standard deviation of sqrt(2 / 2400).
    assert np.mean(squares) == pytest.approx(1, abs=0.1)
    assert np.mean(per_recording) == pytest.approx(1, abs=0.1)


def test_other_friction_in_one_recording_is_seen_and_named():
    rng = np.random.default_rng(1)
    warm = TRUTH - np.array([0.5, 0, 0, 0, 0, 0])
    result = judged(observations(recording("a", rng), recording("cold", rng), recording("warm", rng, warm)))
    assert result.spread > 4
    assert (result.worst_column, result.worst_recording) == ("Fv1", "warm")
    assert result.worst_z < -10
    assert result.recordings["warm"] == max(result.recordings.values())


def test_columns_that_a_recording_does_not_have_are_not_compared_there():
    rng = np.random.default_rng(2)
    data = observations(recording("free", rng, columns=ARM), recording("loaded", rng), recording("loaded 2", rng))
    result = judged(data)
    assert dict(result.compared) == {"free": 5, "loaded": 6, "loaded 2": 6}


def test_columns_that_a_recording_sees_only_together_are_not_compared_there():
    def payload_and_link_alike(W):
        W[:, -1] = 2 * W[:, 3]
        return W

    rng = np.random.default_rng(3)
    spreads = []
    for _ in range(100):
        data = observations(recording("free", rng, columns=ARM), recording("loaded", rng, mix=payload_and_link_alike))
        result = judged(data)
        # MX2 and ML are one column in the loaded recording, which says nothing of either alone.
        assert dict(result.compared) == {"free": 5, "loaded": 4}
        spreads.append(result.spread**2)
    assert np.mean(spreads) == pytest.approx(1, abs=0.2)


def test_larger_sigmas_make_the_same_differences_smaller():
    rng = np.random.default_rng(4)
    data = observations(recording("a", rng), recording("b", rng))
    deviations = {(f.recording, f.kind, f.joint): SIGMA for f in data.factors}
    weights = dict.fromkeys(deviations, 1 / SIGMA)
    estimate = weighted(data, COLUMNS, deviations)
    wide = type(estimate)(
        estimate.method,
        estimate.system,
        estimate.values,
        4 * estimate.covariance,
        "model",
        estimate.freedom,
        deviations,
    )
    narrow, broad = (repeatability(data, told, weights) for told in (estimate, wide))
    assert narrow is not None
    assert broad is not None
    assert broad.spread == pytest.approx(narrow.spread / 2, rel=1e-12)


def test_one_recording_is_not_judged():
    assert alone_and_together(observations(recording("alone", np.random.default_rng(5)))) is None
