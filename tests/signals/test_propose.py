"""Cut-offs proposed from the data lie between motion and noise, with their evidence."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import SignalError
from steelyard.signals import apply_low_pass, find_quantum, low_pass, propose_cutoff

RATE = 200.0


def motion(samples: int = 12_000, highest: float = 2.0) -> np.ndarray:
    time = np.arange(samples) / RATE
    rng = np.random.default_rng(5)
    lines = np.arange(0.2, highest + 1e-9, 0.2)
    phases = rng.uniform(0, 2 * np.pi, (2, len(lines), 1))
    return np.stack(
        [(np.sin(2 * np.pi * lines[:, None] * time + phase) / lines[:, None]).sum(axis=0) for phase in phases]
    )


@pytest.mark.parametrize("std", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("highest", [2.0, 6.0])
def test_the_band_ends_where_the_motion_ends(std, highest):
    values = motion(highest=highest) + std * np.random.default_rng(0).standard_normal((2, 12_000))
    proposal = propose_cutoff(values, RATE)
    np.testing.assert_allclose(proposal.excitation_band, highest, rtol=0.15)
    np.testing.assert_allclose(proposal.noise_std, std, rtol=0.1)
    assert proposal.cutoff == pytest.approx(1.59 * proposal.excitation_band.max(), rel=0.01)
    assert "10 dB above its noise" in proposal.reason


@pytest.mark.parametrize("order", [2, 4, 6])
def test_the_proposed_filter_changes_the_band_by_one_percent(order):
    proposal = propose_cutoff(motion() + 1e-3 * np.random.default_rng(0).standard_normal((2, 12_000)), RATE, order)
    filter_ = low_pass(RATE, proposal.cutoff, order)
    assert abs(filter_.response(proposal.excitation_band.max())) == pytest.approx(0.99, abs=5e-4)


def test_the_proposed_filter_brings_filtered_positions_nearer_to_the_truth():
    truth = motion()
    noisy = truth + 0.01 * np.random.default_rng(0).standard_normal(truth.shape)
    filter_ = low_pass(RATE, propose_cutoff(noisy, RATE).cutoff)
    inner = slice(filter_.ends()[0], -filter_.ends()[1])
    after = (apply_low_pass(filter_, noisy) - truth)[:, inner].std()
    assert after < 0.4 * 0.01


def test_quantisation_is_found_and_explains_its_noise():
    quantum = 2 * np.pi / 10_000
    proposal = propose_cutoff(np.round(motion() / quantum) * quantum, RATE)
    np.testing.assert_allclose(proposal.quantum, quantum, rtol=1e-6)
    np.testing.assert_allclose(proposal.noise_std, quantum / np.sqrt(12), rtol=0.15)
    assert "steps of 0.000628 explain" in proposal.reason
    assert proposal.excitation_band.max() < 3


def test_values_off_any_grid_have_no_quantum():
    assert find_quantum(np.random.default_rng(0).standard_normal((2, 500))).tolist() == [0.0, 0.0]
    assert find_quantum(np.zeros((1, 50))).tolist() == [0.0]
    repeated = np.tile(np.random.default_rng(0).standard_normal((1, 100)), 16)
    assert find_quantum(repeated).tolist() == [0.0]


def test_a_quantum_is_found_through_offset_and_unit_conversion():
    counts = np.random.default_rng(0).integers(-500, 500, 4000)
    assert find_quantum(np.deg2rad(counts * 0.088)[None] + 1.234)[0] == pytest.approx(np.deg2rad(0.088), rel=1e-6)


def test_fast_motion_is_capped_at_the_highest_cutoff():
    time = np.arange(8000) / RATE
    values = np.sin(2 * np.pi * 80 * time)[None] + 1e-3 * np.random.default_rng(0).standard_normal((1, 8000))
    proposal = propose_cutoff(values, RATE)
    assert proposal.cutoff == pytest.approx(80.0)
    assert "highest allowed" in proposal.reason


def test_signals_without_motion_are_refused():
    with pytest.raises(SignalError, match="no row that stands 10 dB above its noise"):
        propose_cutoff(np.random.default_rng(0).standard_normal((2, 5000)), RATE)
    with pytest.raises(SignalError, match="no row that stands"):
        propose_cutoff(np.ones((2, 5000)), RATE)
    with pytest.raises(SignalError, match="got 10 samples, needed are at least 64"):
        propose_cutoff(np.ones((2, 10)), RATE)
