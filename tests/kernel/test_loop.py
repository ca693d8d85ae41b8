"""Loops over time against a plain Python loop around CasADi."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

from steelyard.errors import KernelError
from steelyard.kernel import TimeLoop, baseline_target, compile_loop, host_target
from steelyard.kernel.loop import _compile

STEPS = 60


def pendulum() -> casadi.Function:
    x, u, p = casadi.SX.sym("x", 2), casadi.SX.sym("u", 2), casadi.SX.sym("p", 3)

    def rate(state: casadi.SX) -> casadi.SX:
        torque = u[0] - p[0] * casadi.sin(state[0]) - p[1] * casadi.tanh(20 * state[1]) + u[1] * state[1]
        return casadi.vertcat(state[1], torque / p[2])

    middle = x + 0.005 * rate(x)
    return casadi.Function("pendulum", [x, u, p], [x + 0.01 * rate(middle), casadi.vertcat(x[0], rate(x)[1], u[0])])


@pytest.fixture(scope="module")
def step() -> casadi.Function:
    return pendulum()


@pytest.fixture(scope="module")
def loop(step: casadi.Function) -> TimeLoop:
    return compile_loop(step)


def arrays(columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(columns)
    return rng.normal(size=(2, columns)), rng.normal(size=(STEPS, 2, columns)), rng.uniform(0.5, 2, size=(3, columns))


def reference(
    step: casadi.Function, state: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, hold: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    states, outputs = [], []
    for column in range(state.shape[1]):
        x, ys = state[:, column], []
        for t in range(len(inputs) * hold):
            u = inputs[t // hold] if inputs.ndim == 2 else inputs[t // hold, :, column]
            p = parameters if parameters.ndim == 1 else parameters[:, column]
            x, y = (np.array(value).ravel() for value in step(x, u, p))
            ys.append(y)
        states.append(x)
        outputs.append(ys)
    return np.array(states).T, np.array(outputs).transpose(1, 2, 0)


@pytest.mark.parametrize("columns", [1, 7, 8, 9])
def test_a_loop_equals_a_plain_loop_around_casadi(loop: TimeLoop, step: casadi.Function, columns: int) -> None:
    state, inputs, parameters = arrays(columns)
    for u in (inputs, inputs[:, :, 0].copy()):
        for p in (parameters, parameters[:, 0].copy()):
            final, outputs = loop(state, u, p)
            want_final, want_outputs = reference(step, state, u, p)
            np.testing.assert_allclose(final, want_final, rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(outputs, want_outputs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("columns", [71, 72, 73, 150])
def test_a_column_does_not_depend_on_its_neighbours(loop: TimeLoop, columns: int) -> None:
    state, inputs, parameters = arrays(columns)
    final, outputs = loop(state, inputs, parameters)
    for k in (0, columns // 2, columns - 1):
        alone = slice(k, k + 1)
        one, recorded = loop(state[:, alone], inputs[:, :, alone], parameters[:, alone])
        np.testing.assert_array_equal(one, final[:, alone])
        np.testing.assert_array_equal(recorded, outputs[:, :, alone])


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("columns", [5, 30, 300])
def test_a_loop_does_not_depend_on_the_number_of_threads(loop: TimeLoop, threads: int, columns: int) -> None:
    state, inputs, parameters = arrays(columns)
    want = loop(state, inputs, parameters)
    for a, b in zip(loop(state, inputs, parameters, threads=threads), want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("every", [1, 2, 7, 60, 61])
def test_every_so_many_outputs_are_kept(loop: TimeLoop, every: int) -> None:
    state, inputs, parameters = arrays(10)
    final, outputs = loop(state, inputs, parameters)
    same_final, fewer = loop(state, inputs, parameters, record_every=every)
    np.testing.assert_array_equal(same_final, final)
    np.testing.assert_array_equal(fewer, outputs[::every][: STEPS // every])


@pytest.mark.parametrize("hold", [2, 5])
@pytest.mark.parametrize("own", [False, True])
def test_a_held_input_equals_a_repeated_one(loop: TimeLoop, hold: int, own: bool) -> None:
    state, inputs, parameters = arrays(10)
    given = inputs if own else inputs[:, :, 0].copy()
    held = loop(state, given, parameters, input_hold=hold)
    repeated = loop(state, np.repeat(given, hold, axis=0), parameters)
    for a, b in zip(held, repeated, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("first", [1, 20, 35])
def test_a_loop_in_two_pieces_equals_one(loop: TimeLoop, first: int) -> None:
    state, inputs, parameters = arrays(75)
    final, outputs = loop(state, inputs, parameters)
    middle, before = loop(state, inputs[:first], parameters)
    end, after = loop(middle, inputs[first:], parameters)
    np.testing.assert_array_equal(end, final)
    np.testing.assert_array_equal(np.concatenate([before, after]), outputs)


def test_many_calls_of_machine_code_equal_one(loop: TimeLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    state, inputs, parameters = arrays(75)
    want = loop(state, inputs, parameters, input_hold=3, record_every=4)
    monkeypatch.setattr("steelyard.kernel.loop._OPERATIONS_PER_CALL", 1)
    for a, b in zip(loop(state, inputs, parameters, input_hold=3, record_every=4), want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_cutting_into_chunks_changes_no_bit(step: casadi.Function, loop: TimeLoop) -> None:
    state, inputs, parameters = arrays(20)
    for a, b in zip(
        _compile(step, host_target(), 5)(state, inputs, parameters), loop(state, inputs, parameters), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_the_baseline_processor_equals_the_host_within_rounding(step: casadi.Function, loop: TimeLoop) -> None:
    state, inputs, parameters = arrays(13)
    for a, b in zip(
        compile_loop(step, target=baseline_target())(state, inputs, parameters),
        loop(state, inputs, parameters),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_fewer_steps_than_inputs_can_be_run(loop: TimeLoop) -> None:
    state, inputs, parameters = arrays(4)
    for a, b in zip(loop(state, inputs, parameters, steps=11), loop(state, inputs[:11], parameters), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_initial_state_is_not_changed_and_no_steps_return_it(loop: TimeLoop) -> None:
    state, inputs, parameters = arrays(4)
    before = state.copy()
    loop(state, inputs, parameters)
    np.testing.assert_array_equal(state, before)
    final, outputs = loop(state, inputs, parameters, steps=0)
    np.testing.assert_array_equal(final, before)
    assert outputs.shape == (0, 3, 4)


def test_no_columns_give_empty_results(loop: TimeLoop) -> None:
    final, outputs = loop(np.empty((2, 0)), np.zeros((STEPS, 2)), np.ones(3))
    assert final.shape == (2, 0)
    assert outputs.shape == (STEPS, 3, 0)


def test_strided_inputs_give_the_same_as_contiguous_ones(loop: TimeLoop) -> None:
    state, inputs, parameters = arrays(20)
    want = loop(state, inputs, parameters)
    wide = np.full((STEPS, 4, 50), np.nan)
    wide[:, 1:3, 7:27] = inputs
    for strided in (wide[:, 1:3, 7:27], np.asfortranarray(inputs)):
        for a, b in zip(loop(np.asfortranarray(state), strided, parameters), want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_step_may_have_no_inputs_parameters_and_outputs() -> None:
    x, nothing = casadi.SX.sym("x", 1), casadi.SX.sym("nothing", 0)
    decay = compile_loop(casadi.Function("decay", [x, nothing, nothing], [0.5 * x, casadi.SX(0, 1)]))
    final, outputs = decay(np.array([[1.0, 2.0, 3.0]]), steps=3)
    assert final.tolist() == [[0.125, 0.25, 0.375]]
    assert outputs.shape == (3, 0, 3)


def test_states_that_change_places_do_not_mix() -> None:
    x, nothing = casadi.SX.sym("x", 2), casadi.SX.sym("nothing", 0)
    swap = compile_loop(casadi.Function("swap", [x, nothing, nothing], [casadi.vertcat(x[1], x[0]), x]))
    final, outputs = swap(np.array([[1.0], [2.0]]), steps=3)
    assert final.tolist() == [[2.0], [1.0]]
    assert outputs[:, 0, 0].tolist() == [1.0, 2.0, 1.0]


STATE, INPUTS, PARAMETERS = arrays(4)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((STATE[:1], INPUTS, PARAMETERS), {}, r"state0: got shape \(1, 4\), allowed is \(2, C\)"),
        ((STATE[:, 0], INPUTS, PARAMETERS), {}, r"state0: got shape \(2,\), allowed is \(2, C\)"),
        ((STATE, INPUTS[:, :, :3], PARAMETERS), {}, r"inputs: got shape \(60, 2, 3\), allowed are \(rows, 2\) and"),
        ((STATE, None, PARAMETERS), {}, r"inputs: got NoneType, allowed is a numpy array of float64"),
        ((STATE, INPUTS, PARAMETERS[:2]), {}, r"parameters: got shape \(2, 4\), allowed are \(3,\) and \(3, 4\)"),
        ((STATE, INPUTS), {}, r"parameters: got NoneType"),
        ((STATE.astype(int), INPUTS, PARAMETERS), {}, r"state0: got dtype int64, allowed is float64"),
        ((STATE, INPUTS, PARAMETERS), {"steps": 61}, r"steps: got 61, allowed are 0 to 60"),
        ((STATE, INPUTS, PARAMETERS), {"record_every": 0}, r"record_every: got 0, allowed is a positive integer"),
        ((STATE, INPUTS, PARAMETERS), {"input_hold": 0.5}, r"input_hold: got 0.5, allowed is a positive integer"),
        ((STATE, INPUTS, PARAMETERS), {"threads": 0}, r"threads: got 0, allowed is a positive integer"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_one_line(
    loop: TimeLoop, arguments: tuple, options: dict, message: str
) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        loop(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_a_function_that_is_no_step_is_refused() -> None:
    x, u, p = casadi.SX.sym("x", 2), casadi.SX.sym("u"), casadi.SX.sym("p")
    with pytest.raises(KernelError, match=r"step 'two': got 2 inputs and 1 outputs"):
        compile_loop(casadi.Function("two", [x, u], [x]))
    with pytest.raises(KernelError, match=r"step 'short': got 1 next states, allowed are 2"):
        compile_loop(casadi.Function("short", [x, u, p], [x[0], u]))
    with pytest.raises(KernelError, match=r"output 'o1' is 3x1,1nz, allowed is a dense column"):
        compile_loop(casadi.Function("sparse", [x, u, p], [x, casadi.vertcat(u, casadi.SX(2, 1))]))
