"""Observations: factors of recordings, merged late and by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from observe.cases import collected, equations_for, model_of, recording_for
from steelyard.errors import ObservationError
from steelyard.observe import (
    Factor,
    Preparation,
    Whitening,
    equations_of,
    fingerprint_of,
    merge_observations,
    merged_triangle,
    reduce_rows,
    resolve_preparation,
    row_source,
)
from steelyard.observe.factor import TimeBlocks
from steelyard.observe.runs import MIN_SHARE
from steelyard.signals import RowWhitener

GIVEN = Preparation(cutoff=20.0, decimation=10, standstill=0.0)


def sources_of(model, *recordings, preparation=GIVEN, **options):
    resolved = resolve_preparation(preparation, recordings)
    return [row_source(r, equations_for(model), resolved, f"log {k}", **options) for k, r in enumerate(recordings)]


@pytest.fixture(scope="module")
def model():
    return model_of("scara_2r", payload="paired")


@pytest.fixture(scope="module")
def sources(model):
    return sources_of(model, recording_for(model, 9000), recording_for(model, 8000, seed=1, payload="box"))


def gram(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows


def test_the_factors_of_an_equation_give_the_gram_matrix_of_its_rows(sources):
    observations = reduce_rows(sources)
    equations = sources[0].equations
    for source in sources:
        for e, rows in enumerate(collected(source)):
            kind, joint = equations.kinds_joints[e]
            own = [f for f in observations.factors if (f.recording, f.kind, f.joint) == (source.label, kind, joint)]
            assert 20 <= len(own) <= 40
            assert [factor.block for factor in own] == list(range(len(own)))
            triangle, count = merged_triangle(own, equations.columns[e])
            assert count == len(rows)
            np.testing.assert_allclose(gram(triangle), gram(rows), rtol=1e-10, atol=1e-9)
            first = 0
            for factor in own:
                part = rows[first : first + factor.rows]
                nonzero = [equations.columns[e].index(name) for name in factor.columns]
                np.testing.assert_allclose(gram(factor.triangle), gram(part[:, [*nonzero, -1]]), rtol=1e-10, atol=1e-9)
                first += factor.rows


def test_rows_without_and_with_payload_merge_by_name(sources):
    observations = reduce_rows(sources)
    equations = sources[0].equations
    payload = {name for name in equations.names if name.endswith("L")}
    assert payload
    unloaded = {name for f in observations.factors if f.recording == "log 0" for name in f.columns}
    loaded = {name for f in observations.factors if f.recording == "log 1" for name in f.columns}
    assert not payload & unloaded
    assert payload <= loaded
    triangle, count = merged_triangle(observations.factors, equations.names)
    stack = []
    for source in sources:
        for e, rows in enumerate(collected(source)):
            whole = np.zeros((len(rows), len(equations.names) + 1))
            whole[:, [*(equations.names.index(name) for name in equations.columns[e]), -1]] = rows
            stack.append(whole)
    assert count == sum(map(len, stack))
    np.testing.assert_allclose(gram(triangle), gram(np.vstack(stack)), rtol=1e-9, atol=1e-8)


def test_weights_multiply_the_rows_and_unnamed_columns_are_left_out():
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((30, 4)) for _ in range(2)]
    factors = [
        Factor("log", "motor", "a", k, ("u", "v", "w"), np.asarray(np.linalg.qr(part, mode="r")), 30)
        for k, part in enumerate(parts)
    ]
    triangle, count = merged_triangle(factors, ("w", "x", "u"), lambda factor: 1.0 + factor.block)
    whole = np.zeros((60, 4))
    whole[:, [0, 2, 3]] = np.vstack([parts[0], 2 * parts[1]])[:, [2, 0, 3]]
    np.testing.assert_allclose(gram(triangle), gram(whole), atol=1e-12)
    assert not triangle[:, 1].any()
    assert count == 60
    with pytest.raises(ObservationError, match="'u' is named twice"):
        merged_triangle(factors, ("u", "u"))
    with pytest.raises(ObservationError, match="got nan"):
        merged_triangle(factors, ("u",), lambda factor: float("nan"))


@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_threads_does_not_change_a_bit(model, sources, count):
    chosen = sources[:count]
    reported = []
    one = reduce_rows(chosen, progress=lambda done, total: reported.append((done, total)))
    two = reduce_rows(chosen, threads=2)
    assert all(np.array_equal(a.triangle, b.triangle) for a, b in zip(one.factors, two.factors, strict=True))
    assert reported[-1] == (count, count)


class Differences(RowWhitener):
    """A whitener that subtracts the row before: one row less in every run."""

    def __init__(self) -> None:
        self.starts = 0
        self.last: np.ndarray | None = None

    def restart(self) -> None:
        self.starts += 1
        self.last = None

    def push(self, rows: np.ndarray) -> np.ndarray:
        joined = rows if self.last is None else np.vstack([self.last, rows])
        self.last = rows[-1:]
        return np.diff(joined, axis=0)


def test_whitening_sees_every_run_from_its_start_across_blocks(model):
    recording = recording_for(model, 30_000)
    (source,) = sources_of(model, recording, preparation=replace(GIVEN, standstill=0.4))
    blocks = list(source)
    assert len(blocks) > 1
    made: dict[tuple[str, str], Differences] = {}

    class DifferenceWhitening(Whitening):
        def whitener(self, equation):
            return made.setdefault(equation, Differences())

    observations = reduce_rows([source], DifferenceWhitening(np.ones(1)))
    for e, (kind, joint) in enumerate(source.equations.kinds_joints):
        rows = np.vstack([block.rows[e] for block in blocks])
        usable = np.concatenate([block.share[e] for block in blocks]) >= 0.5
        both = usable[1:] & usable[:-1]
        wanted = np.diff(rows, axis=0)[both]
        triangle, count = merged_triangle(
            [f for f in observations.factors if f.joint == joint], source.equations.columns[e]
        )
        assert count == both.sum()
        np.testing.assert_allclose(gram(triangle), gram(wanted), rtol=1e-9, atol=1e-9)
        assert made[kind, joint].starts == (np.diff(usable.astype(int)) == 1).sum() + usable[0]


def test_observations_merge_factor_by_factor(sources):
    together = reduce_rows(sources)
    apart = merge_observations(*(reduce_rows([source]) for source in sources))
    assert apart.fingerprint == together.fingerprint
    assert apart.recordings == together.recordings
    assert all(np.array_equal(a.triangle, b.triangle) for a, b in zip(apart.factors, together.factors, strict=True))


def test_an_unloaded_model_and_one_of_both_kinds_have_the_same_unknowns(model):
    resolved = resolve_preparation(GIVEN, [recording_for(model)])
    assert fingerprint_of(equations_for(model), resolved) == fingerprint_of(
        equations_for(model_of("scara_2r")), resolved
    )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"gravity": (0.0, 0.0, -1.62)}, "geometry"),
        ({"payload": "loaded"}, "unknowns"),
        ({"effects": ("inertia", "Fvm", "Fcm", "offm")}, "unknowns"),
        ({"cutoff": 19.0}, "filter"),
        ({"decimation": 20}, "filter"),
        ({"measured": "joint", "effects": ("inertia", "Fvm", "Fcm")}, "unknowns"),
    ],
)
def test_other_geometry_unknowns_or_filter_are_refused(model, change, word):
    first = reduce_rows(sources_of(model, recording_for(model, 4000)))
    preparation = replace(GIVEN, **{k: v for k, v in change.items() if k in ("cutoff", "decimation")})
    choices = {k: v for k, v in change.items() if k in ("payload", "effects", "measured")}
    other = model_of("scara_2r", **{"payload": "paired", **choices})
    if "gravity" in change:
        other = replace(other, robot=other.robot.with_gravity(change["gravity"]))
    recording = recording_for(other, 4000, seed=4, payload="box")
    source = row_source(recording, equations_of(other), resolve_preparation(preparation, [recording]), "other")
    with pytest.raises(ObservationError, match=f"observations of different {word} cannot be merged") as caught:
        merge_observations(first, reduce_rows([source]))
    assert "\n" not in str(caught.value)


def test_the_same_recording_twice_is_refused(model, sources):
    once = reduce_rows(sources[:1])
    with pytest.raises(ObservationError, match="'log 0' and 'log 0' are the same data"):
        merge_observations(once, once)
    recording = recording_for(model, 4000)
    resolved = resolve_preparation(GIVEN, [recording])
    twice = [row_source(recording, equations_for(model), resolved, label) for label in ("a", "b")]
    with pytest.raises(ObservationError, match="'a' and 'b' are the same data"):
        reduce_rows(twice)
    other = row_source(recording_for(model, 4000, seed=9), equations_for(model), resolved, "a")
    with pytest.raises(ObservationError, match="label 'a'"):
        reduce_rows([twice[0], other])


def test_nothing_to_reduce_is_refused(sources):
    with pytest.raises(ObservationError, match="no recording is left"):
        reduce_rows([])
    with pytest.raises(ObservationError, match="no observations"):
        merge_observations()
    with pytest.raises(ObservationError, match="blocks: got 0"):
        reduce_rows(sources, blocks=0)


def test_blocks_end_at_the_same_times_whatever_rows_are_left_out(model):
    """Every sample counts for the time of a block, usable or not: blocks of all equations are of the same motion."""
    (source,) = sources_of(model, recording_for(model, 9000), preparation=replace(GIVEN, standstill=0.4))
    observations = reduce_rows([source], blocks=20)
    for e, (kind, joint) in enumerate(source.equations.kinds_joints):
        blocks = TimeBlocks(1, 20)
        for block in source:
            usable = np.flatnonzero(block.share[e] >= MIN_SHARE)
            assert 0 < len(usable) < len(block.time)
            for place in range(len(block.time)):
                if place in usable:
                    blocks.add(np.ones((1, 1)))
                blocks.elapse(1)
        counts = [count for _, count in blocks.finish() if count]
        assert [
            factor.rows for factor in observations.factors if (factor.kind, factor.joint) == (kind, joint)
        ] == counts
