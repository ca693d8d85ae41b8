"""Batches: shapes, positions, threads, buffers and refusals."""

from __future__ import annotations

import dataclasses
import gc

import casadi
import numpy as np
import pytest

from steelyard.errors import KernelError
from steelyard.kernel import BatchFunction, Target, baseline_target, compile_batch, host_target
from steelyard.kernel.batch import _compile
from steelyard.kernel.batch_driver import batch_driver
from steelyard.kernel.lower import lower, machine_code

COUNTS = [0, 1, 2, 7, 8, 9, 63, 64, 65, 71, 72, 73, 1000, 1001]


@pytest.fixture(scope="module")
def batch(mixed: casadi.Function) -> BatchFunction:
    return compile_batch(mixed)


def samples(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.normal(size=(rows, count)) for rows in (3, 2, 2)]


def reference(function: casadi.Function, inputs: list[np.ndarray]) -> list[np.ndarray]:
    columns = [function(*column) for column in zip(*(array.T for array in inputs), strict=True)]
    return [np.array([column[k].nonzeros() for column in columns]).T for k in range(function.n_out())]


@pytest.mark.parametrize("count", COUNTS[1:])
def test_a_batch_equals_casadi_sample_by_sample(batch: BatchFunction, mixed: casadi.Function, count: int) -> None:
    inputs = samples(count)
    for got, want in zip(batch(*inputs), reference(mixed, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_no_samples_give_empty_results(batch: BatchFunction) -> None:
    assert [result.shape for result in batch(*samples(0))] == [(5, 0), (4, 0)]
    assert batch.dense(*samples(0))[0].shape == (3, 4, 0)


def test_a_result_does_not_depend_on_its_position(batch: BatchFunction) -> None:
    inputs = samples(200)
    whole = batch(*inputs)
    for first, stop in [(0, 1), (3, 10), (5, 90), (199, 200), (70, 143)]:
        part = batch(*[array[:, first:stop] for array in inputs])
        for a, b in zip(part, whole, strict=True):
            np.testing.assert_array_equal(a, b[:, first:stop])


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("count", [1, 65, 1001, 200_003])
def test_a_result_does_not_depend_on_the_number_of_threads(batch: BatchFunction, threads: int, count: int) -> None:
    inputs = samples(count)
    for a, b in zip(batch(*inputs, threads=threads), batch(*inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_results_streamed_past_the_cache_equal_small_ones(batch: BatchFunction) -> None:
    inputs = samples(150_003)
    large = batch(*inputs)
    small = batch(*[array[:, -1000:] for array in inputs])
    for a, b in zip(large, small, strict=True):
        np.testing.assert_array_equal(a[:, -1000:], b)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_cutting_into_chunks_changes_no_bit(mixed: casadi.Function, batch: BatchFunction, size: int) -> None:
    inputs = samples(150)
    for a, b in zip(_compile(mixed, host_target(), size)(*inputs), batch(*inputs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", [host_target(), baseline_target()])
def test_the_quick_code_generator_changes_no_bit(mixed: casadi.Function, target: Target) -> None:
    program = lower(mixed, target)
    slow, quick = (machine_code(program, batch_driver(program), quick=quick) for quick in (False, True))
    assert slow is not quick
    for a, b in zip(*(BatchFunction(mixed, program, code)(*samples(150)) for code in (slow, quick)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("count", [3, 150_003])
def test_the_vector_width_changes_no_bit(mixed: casadi.Function, batch: BatchFunction, lanes: int, count: int) -> None:
    inputs = samples(count)
    target = dataclasses.replace(host_target(), lanes=lanes)
    for a, b in zip(compile_batch(mixed, target=target)(*inputs), batch(*inputs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [1, 9, 73])
def test_the_baseline_processor_equals_the_host_within_rounding(
    mixed: casadi.Function, batch: BatchFunction, count: int
) -> None:
    inputs = samples(count)
    for a, b in zip(compile_batch(mixed, target=baseline_target())(*inputs), batch(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("count", [1, 9, 1001])
def test_a_shared_input_equals_the_same_value_in_every_column(batch: BatchFunction, count: int) -> None:
    x, y, _ = samples(count)
    p = np.array([0.3, -0.7])
    for a, b in zip(batch(x, y, p), batch(x, y, np.repeat(p[:, None], count, axis=1)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_shared_inputs_give_one_sample_or_as_many_as_the_output_has(batch: BatchFunction) -> None:
    shared = [np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5]), np.array([0.6, 0.7])]
    one = batch(*shared)
    assert [result.shape for result in one] == [(5, 1), (4, 1)]
    many = batch(*shared, out=[np.empty((5, 11)), np.empty((4, 11))])
    np.testing.assert_array_equal(many[0], np.repeat(one[0], 11, axis=1))


def test_strided_inputs_give_the_same_as_contiguous_ones(batch: BatchFunction) -> None:
    x, y, p = samples(100)
    want = batch(x, y, p)
    wide = np.full((6, 130), np.nan)
    wide[::2, 17:117] = x
    for strided in (wide[::2, 17:117], np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x[::-1].copy()[::-1]):
        for a, b in zip(batch(strided, y, p), want, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", COUNTS)
def test_nothing_outside_the_output_is_written(batch: BatchFunction, count: int) -> None:
    inputs = samples(count)
    frames = [np.full((rows + 2, count + 20), 7.25) for rows in (5, 4)]
    inside = [frame[1:-1, 10 : 10 + count] for frame in frames]
    results = batch(*inputs, out=inside)
    for frame, result, want in zip(frames, results, batch(*inputs), strict=True):
        np.testing.assert_array_equal(result, want)
        outside = frame.copy()
        outside[1:-1, 10 : 10 + count] = 7.25
        assert np.all(outside == 7.25)


def test_nothing_outside_a_large_streamed_output_is_written(batch: BatchFunction) -> None:
    count = 150_005
    inputs = samples(count)
    wide = batch(*[np.pad(array, ((0, 0), (0, 19))) for array in inputs])
    for array in wide:
        array[:] = 7.25
    results = batch(*inputs, out=[array[:, :count] for array in wide])
    for frame, result, want in zip(wide, results, batch(*inputs), strict=True):
        np.testing.assert_array_equal(result, want)
        assert np.all(frame[:, count:] == 7.25)


def test_given_buffers_are_the_results(batch: BatchFunction) -> None:
    out = [np.empty((5, 50)), np.empty((4, 50))]
    results = batch(*samples(50), out=out)
    assert all(a is b for a, b in zip(results, out, strict=True))


@pytest.mark.parametrize("count", [1, 65, 150_003])
def test_dense_results_are_the_matrices(batch: BatchFunction, count: int) -> None:
    inputs = samples(count)
    values = batch(*inputs)
    for dense, value, sparsity in zip(batch.dense(*inputs), values, batch.output_sparsity, strict=True):
        want = np.zeros((*sparsity.shape, count))
        want[sparsity.rows, sparsity.columns] = value
        np.testing.assert_array_equal(dense, want)


def test_dense_output_buffers_keep_their_structural_zeros(batch: BatchFunction) -> None:
    out = [np.full((3, 4, 20), 7.25), np.full((4, 1, 20), 7.25)]
    batch.dense(*samples(20), out=out)
    assert np.count_nonzero(out[0][:, :, 0] == 7.25) == 12 - 5


def test_the_sparsity_lists_rows_and_columns_in_casadi_order(batch: BatchFunction) -> None:
    sparsity = batch.output_sparsity[0]
    assert sparsity.shape == (3, 4)
    assert list(zip(sparsity.rows.tolist(), sparsity.columns.tolist(), strict=True)) == [
        (0, 0),
        (2, 0),
        (1, 1),
        (0, 3),
        (2, 3),
    ]


def test_bound_buffers_are_computed_range_by_range(batch: BatchFunction) -> None:
    x, y, _ = samples(100)
    p = np.array([0.2, 0.4])
    outputs = [np.full((5, 100), np.nan), np.full((4, 100), np.nan)]
    bound = batch.bind([x, y, p], outputs)
    bound(10, 33)
    want = batch(x, y, p)
    np.testing.assert_array_equal(outputs[0][:, 10:33], want[0][:, 10:33])
    assert np.isnan(outputs[0][:, :10]).all()
    assert np.isnan(outputs[0][:, 33:]).all()
    x += 1.0
    bound()
    np.testing.assert_array_equal(outputs[0], batch(x, y, p)[0])


def test_a_bound_range_beyond_the_buffers_is_refused(batch: BatchFunction) -> None:
    bound = batch.bind(samples(10), [np.empty((5, 10)), np.empty((4, 10))])
    with pytest.raises(KernelError, match=r"function 'mixed': got columns 3 to 11, allowed are 0 to 10"):
        bound(3, 11)


def test_strided_samples_cannot_be_bound(batch: BatchFunction) -> None:
    x, y, p = samples(20)
    with pytest.raises(KernelError, match="allowed is a contiguous last axis"):
        batch.bind([x[:, ::2], y[:, :10], p[:, :10]], [np.empty((5, 10)), np.empty((4, 10))])


def test_a_function_without_inputs_gives_its_constants() -> None:
    constants = compile_batch(casadi.Function("constants", [], [casadi.SX([1.5, -2.0])]))
    assert constants()[0].tolist() == [[1.5], [-2.0]]


def test_code_outlives_the_function_it_came_from() -> None:
    def make() -> BatchFunction:
        x = casadi.SX.sym("x")
        return compile_batch(casadi.Function("f", [x], [casadi.exp(x)]))

    made = [make() for _ in range(20)]
    gc.collect()
    assert all(function(np.zeros((1, 3)))[0].tolist() == [[1.0, 1.0, 1.0]] for function in made)


def test_an_input_without_rows_is_allowed() -> None:
    x, nothing = casadi.SX.sym("x", 2), casadi.SX.sym("nothing", 0)
    double = compile_batch(casadi.Function("double", [x, nothing], [2 * x, casadi.SX(0, 1)]))
    first, second = double(np.ones((2, 3)), np.empty(0))
    assert first.tolist() == [[2.0] * 3] * 2
    assert second.shape == (0, 3)


X, Y, P = samples(10)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((X, Y), r"function 'mixed': got 2 inputs, allowed are 3"),
        ((X[:2], Y, P), r"input 0 'x': got shape \(2, 10\), allowed are \(3, N\) and \(3,\)"),
        ((X, Y[:, :9], P), r"input 1 'y': got 9 samples, allowed are 10 as in the inputs before"),
        ((X, Y, P.astype(np.float32)), r"input 2 'p': got dtype float32, allowed is float64"),
        ((X, Y, [0.0, 1.0]), r"input 2 'p': got list, allowed is a numpy array of float64"),
        ((X[None], Y, P), r"input 0 'x': got shape \(1, 3, 10\)"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_one_line(batch: BatchFunction, inputs: tuple, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        batch(*inputs)
    assert "\n" not in str(caught.value)


READ_ONLY = np.empty((5, 10))
READ_ONLY.setflags(write=False)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([np.empty((5, 10))], r"got 1 output arrays, allowed are 2"),
        ([np.empty((5, 9)), np.empty((4, 10))], r"output 0 'matrix': got shape \(5, 9\), allowed is \(5, 10\)"),
        ([np.empty((5, 10), dtype=int), np.empty((4, 10))], r"got dtype int64, allowed is float64"),
        ([np.empty((5, 20))[:, ::2], np.empty((4, 10))], r"allowed is a contiguous last axis"),
        ([READ_ONLY, np.empty((4, 10))], r"got a read-only"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(batch: BatchFunction, out: list[np.ndarray], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        batch(X, Y, P, out=out)


def test_an_output_in_the_memory_of_an_input_is_refused(batch: BatchFunction) -> None:
    memory = np.zeros((8, 10))
    with pytest.raises(KernelError, match="got memory that an input uses too"):
        batch(memory[:3], Y, P, out=[memory[2:7], np.empty((4, 10))])
    batch(memory[:3], Y, P, out=[memory[3:], np.empty((4, 10))])


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(batch: BatchFunction, threads: int) -> None:
    with pytest.raises(KernelError, match=r"threads: got .*, allowed is a positive integer"):
        batch(X, Y, P, threads=threads)


def test_the_same_function_is_compiled_once(monkeypatch):
    x = casadi.SX.sym("x")
    first = compile_batch(casadi.Function("f", [x], [3.25 * casadi.sin(x)]))
    monkeypatch.setattr("steelyard.kernel.lower._compiled", None)
    again = compile_batch(casadi.Function("f", [x], [3.25 * casadi.sin(x)]))
    at = np.linspace(0, 1, 9)[None]
    np.testing.assert_array_equal(again.dense(at), first.dense(at))
