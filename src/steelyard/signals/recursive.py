"""Recursive filters in NumPy: Butterworth sections, filtering with a state, responses. Named as in ``scipy.signal``.

``scipy.signal`` parses some 800 docstrings while it is imported and loads ``scipy.stats`` and what that needs: more
than half of the start-up time of a command, for a handful of functions.

A recursion sample by sample is slow in Python, so a whole cascade of sections is one state space
``s' = A s + B x, y = C s + d x``, taken L samples at a time: with x, y the samples of a block (L,) and s the state at
its start, ``y = H x + O s`` and ``s_next = A^L s + G x``, H the Toeplitz matrix of the impulse response, row k of O
``C A^k``, column k of G ``A^(L-1-k) B``. All blocks of all rows are one matrix product each; the states at their starts
follow the recursion ``s_next = A^L s + u``, which is solved likewise, K blocks at a time, and so on.

Two things keep this as exact as the sections are. Each section's A is a rotation times a radius (its poles, not its
coefficients), so that rounding is not amplified where poles lie close to 1. And the matrices are computed with 40
digits, in decimal arithmetic, before they are rounded: powers of rounded matrices would belong to other poles.

Convolutions of many columns with one kernel are here too. Short kernels are summed tap by tap; long ones go through
Fourier transforms of parts of the rows, whose results overlap and add up, so that memory follows the kernel and not the
number of rows.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from scipy import linalg

_BLOCK = 32
_BLOCKS = 16
_SAMPLES = _BLOCK * _BLOCKS**2  # at once: what is needed beside them stays in the processor's cache
_DIGITS = 40


def buttap(order: int) -> np.ndarray:
    """Return the poles (order,) of the analogue Butterworth low-pass with its -3 dB point at 1 rad/s."""
    return -np.exp(1j * np.pi * np.arange(1 - order, order, 2) / (2 * order))


def butter(order: int, cutoff: float, fs: float) -> np.ndarray:
    """Return the second-order sections (k, 6) of a digital Butterworth low-pass, as ``scipy.signal.butter`` does.

    The analogue prototype goes through the bilinear transform, with its cut-off moved such that the digital one is as
    stated. The poles nearest to the unit circle come last, the gain is in the first section.

    Args:
        order: Number of poles.
        cutoff: Frequency of -3 dB [Hz].
        fs: Sampling rate [Hz].
    """
    warped = 4 * math.tan(math.pi * cutoff / fs)
    analogue = warped * buttap(order)
    poles = (4 + analogue) / (4 - analogue)
    zeros, sections = [-1.0] * order, []
    if order % 2:
        # Of an odd order one section has a pole at 0; a zero at 0 goes to the section with the pole nearest to it.
        zeros.append(0.0)
        poles[order // 2] = poles[order // 2].real
    for pole in sorted(poles[poles.imag >= 0], key=lambda pole: abs(1 - abs(pole))):
        zeros.sort(key=lambda zero, pole=pole: abs(zero - pole))
        (first, second), zeros = zeros[:2], zeros[2:]
        denominator = (-2 * pole.real, pole.real**2 + pole.imag**2) if pole.imag > 0 else (-pole.real, 0.0)
        sections.insert(0, (1.0, -first - second, first * second, 1.0, *denominator))
    result = np.array(sections)
    result[0, :3] *= warped**order / np.prod(4 - analogue).real
    return result + 0.0  # no -0.0


def sosfilt(sections: np.ndarray, rows: np.ndarray, state: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Filter signals (rows, N) by second-order sections (k, 6), one after the other.

    Args:
        sections: Second-order sections.
        rows: Signals.
        state: State (rows, 2 k) at the start, from :func:`sosfilt_zi` or the call before; at rest by default. Its
            coordinates are those of this module.

    Returns:
        Filtered signals (rows, N) and the state at the end (rows, 2 k).
    """
    cascade = _cascade(np.ascontiguousarray(sections, dtype=float).tobytes())
    if state is None:
        state = np.zeros((len(rows), 2 * len(sections)))
    return cascade.filtered(np.ascontiguousarray(rows, dtype=float), state)


def sosfilt_zi(sections: np.ndarray) -> np.ndarray:
    """Return the state (2 k,) in which a constant signal of 1 has been for ever; multiply by the first sample."""
    return _cascade(np.ascontiguousarray(sections, dtype=float).tobytes()).steady


def sosfiltfilt(sections: np.ndarray, rows: np.ndarray, padlen: int) -> np.ndarray:
    """Filter signals (rows, N) forward and backward, continued by ``padlen`` samples oddly about their ends."""
    before = 2 * rows[:, :1] - rows[:, padlen:0:-1]
    after = 2 * rows[:, -1:] - rows[:, -2 : -padlen - 2 : -1]
    longer, rest = np.concatenate([before, rows, after], axis=1), sosfilt_zi(sections)
    for _ in range(2):
        longer = sosfilt(sections, longer, rest * longer[:, :1])[0][:, ::-1]
    return np.ascontiguousarray(longer[:, padlen : padlen + rows.shape[1]])


def sosfreqz(sections: np.ndarray, frequency: np.ndarray, fs: float) -> np.ndarray:
    """Return the complex response of sections (k, 6) at frequencies [Hz] of any shape; ``fs``: sampling rate [Hz]."""
    delay = np.exp(-2j * np.pi * np.asarray(frequency, dtype=float) / fs)
    powers = np.stack([np.ones_like(delay), delay, delay**2])
    responses = np.tensordot(sections[:, :3], powers, 1) / np.tensordot(sections[:, 3:], powers, 1)
    return np.prod(responses, axis=0)


def autoregression_filter(coefficients: np.ndarray, rows: np.ndarray, past: np.ndarray | None = None) -> np.ndarray:
    """Return ``y[t] = x[t] + a1 y[t-1] + a2 y[t-2] + ...`` for signals x (rows, N).

    Args:
        coefficients: a1, a2, ... (p,).
        rows: Signals.
        past: y[-1], y[-2], ... (rows, p); zeros by default.
    """
    order, block = len(coefficients), max(64, len(coefficients))
    # Answers to a sample at the start (first column) and to each sample of the past (the others).
    answers = np.zeros((order + block, 1 + order))
    answers[:order, 1:] = np.eye(order)[::-1]
    for t in range(order, order + block):
        answers[t] = coefficients @ answers[t - order : t][::-1]
        answers[t, 0] += t == order
    impulse, memory = answers[order:, 0], answers[order:, 1:].T
    toeplitz = linalg.toeplitz(impulse, np.zeros(block)).T
    state = np.zeros((len(rows), order)) if past is None else past
    result = np.empty(rows.shape)
    for first in range(0, rows.shape[1], block):
        part = rows[:, first : first + block]
        size = part.shape[1]
        out = part @ toeplitz[:size, :size] + state @ memory[:, :size]
        result[:, first : first + size] = out
        state = np.concatenate([out[:, ::-1], state], axis=1)[:, :order]
    return result


class _Cascade:
    """The matrices of a cascade of sections, those for long signals made when needed.

    Attributes:
        steady: State for a constant input of 1 (n,).
    """

    def __init__(self, sections: np.ndarray) -> None:
        with localcontext() as context:
            context.prec = _DIGITS
            A, B, C, d, steady = _state_space(sections)
            powers = [_identity(len(A)), *_powers(A, _BLOCK)]
            impulse = [d, *(C.dot(power).dot(B) for power in powers[: _BLOCK - 1])]
            outputs = [C.dot(power) for power in powers[:_BLOCK]]
            inputs = [power.dot(B) for power in powers[_BLOCK - 1 :: -1]]
        self.steady = _floats(steady)
        self._toeplitz = linalg.toeplitz(_floats(impulse), np.zeros(_BLOCK)).T.copy()
        self._outputs = _floats(outputs).T.copy()  # (n, L): from a state to the samples after it
        self._inputs = _floats(inputs)  # (L, n): from samples to the state after them
        self._powers = _floats(powers)
        self._last = powers[-1]  # A^L, A^(L K), ...: the step of the next level
        self._levels: list[tuple[np.ndarray, np.ndarray]] = []

    def filtered(self, rows: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return filtered signals (rows, N) and the state at the end."""
        result = np.empty(rows.shape)
        for first in range(0, rows.shape[1], _SAMPLES):
            result[:, first : first + _SAMPLES], state = self._part(rows[:, first : first + _SAMPLES], state)
        return result, state

    def _part(self, rows: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count, samples = rows.shape
        whole, rest = divmod(samples, _BLOCK)
        result = np.empty((count, samples))
        if whole:
            blocks = rows[:, : whole * _BLOCK].reshape(count, whole, _BLOCK)
            starts, state = self._states(0, blocks @ self._inputs, state)
            result[:, : whole * _BLOCK] = (blocks @ self._toeplitz + starts @ self._outputs).reshape(count, -1)
        if rest:
            part = rows[:, -rest:]
            result[:, -rest:] = part @ self._toeplitz[:rest, :rest] + state @ self._outputs[:, :rest]
            state = state @ self._powers[rest].T + part @ self._inputs[-rest:]
        return result, state

    def _states(self, level: int, inputs: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the states (rows, m, n) before each of m steps ``s_next = P s + u``, and the state after the last."""
        count, steps, size = inputs.shape
        whole, rest = divmod(steps, _BLOCKS)
        from_inputs, from_state = self._level(level)
        after = np.empty((count, steps + 1, size))
        after[:, 0] = state
        if whole:
            width = _BLOCKS * size
            groups = inputs[:, : whole * _BLOCKS].reshape(count, whole, width)
            starts = state[:, None]
            if whole > 1:
                starts = self._states(level + 1, groups @ from_inputs[:, -size:], state)[0]
            found = groups @ from_inputs + starts @ from_state
            state = found[:, -1, -size:]
            after[:, 1 : whole * _BLOCKS + 1] = found.reshape(count, whole * _BLOCKS, size)
        if rest:
            width = rest * size
            part = inputs[:, -rest:].reshape(count, width)
            found = part @ from_inputs[:width, :width] + state @ from_state[:, :width]
            state = found[:, -size:]
            after[:, -rest:] = found.reshape(count, rest, size)
        return after[:, :-1], state

    def _level(self, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrices (K n, K n) from K inputs to the states after each, and (n, K n) from the state before."""
        while len(self._levels) <= level:
            with localcontext() as context:
                context.prec = _DIGITS
                exact = _powers(self._last, _BLOCKS)
            self._last = exact[-1]
            powers = [np.eye(len(self._last)), *(_floats(power) for power in exact)]
            zero = np.zeros_like(powers[0])
            from_inputs = [[powers[j - i].T if j >= i else zero for j in range(_BLOCKS)] for i in range(_BLOCKS)]
            self._levels.append((np.block(from_inputs), np.hstack([power.T for power in powers[1:]])))
        return self._levels[level]


@lru_cache(maxsize=64)
def _cascade(sections: bytes) -> _Cascade:
    return _Cascade(np.frombuffer(sections).reshape(-1, 6))


def _state_space(sections: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Decimal, np.ndarray]:
    """Return A, B, C, d of all sections one after the other, and the state for a constant input of 1, as decimals."""
    size, zero = 2 * len(sections), Decimal(0)
    A, B, C, steady = (np.full(shape, zero, dtype=object) for shape in ((size, size), size, size, size))
    through = constant = Decimal(1)
    for k, section in enumerate(sections):
        own = slice(2 * k, 2 * k + 2)
        b0, matrix, column = _section(section)
        A[own, own], B[own] = matrix, column * through
        A[own, : 2 * k] = np.multiply.outer(column, C[: 2 * k])
        C[: 2 * k] *= b0
        C[2 * k] = Decimal(1)
        through *= b0
        (p, q), (r, s) = _identity(2) - matrix
        steady[own] = s * column[0] - q * column[1], p * column[1] - r * column[0]
        steady[own] *= constant / (p * s - q * r)
        constant = steady[2 * k] + b0 * constant
    return A, B, C, through, steady


def _section(section: np.ndarray) -> tuple[Decimal, np.ndarray, np.ndarray]:
    """Return b0, A (2, 2) and B (2,) of ``y = s[0] + b0 x`` for one section.

    From the transposed direct form with state z: ``s[0] = z[0]``, and s[1] such that A is ``[[c, w], [-w, c]]`` for
    poles ``c +- i w``, or ``[[p, 1], [0, q]]`` for real poles p and q.
    """
    b0, b1, b2, a0, a1, a2 = (Decimal(float(value)) for value in section)
    b0, b1, b2, a1, a2 = b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0
    first, second, middle = b1 - a1 * b0, b2 - a2 * b0, -a1 / 2
    square = a2 - middle * middle
    root = abs(square).sqrt()
    if square > 0:
        matrix, lower = [[middle, root], [-root, middle]], (second + middle * first) / root
    else:
        matrix, lower = [[middle + root, Decimal(1)], [Decimal(0), middle - root]], second + (middle - root) * first
    return b0, np.array(matrix, dtype=object), np.array([first, lower], dtype=object)


def _identity(size: int) -> np.ndarray:
    return np.array([[Decimal(int(i == j)) for j in range(size)] for i in range(size)], dtype=object)


def _powers(matrix: np.ndarray, highest: int) -> list[np.ndarray]:
    """Return the powers 1, 2, ... ``highest`` of a matrix."""
    powers = [matrix]
    while len(powers) < highest:
        powers.append(matrix.dot(powers[-1]))
    return powers


def _floats(values: object) -> np.ndarray:
    return np.array(values, dtype=object).astype(float)


# Longer kernels are convolved by Fourier transforms.
_LONGEST_SUM = 32
# Rows of a sum at once: more leave the processor's cache.
_ROWS = 256


def convolve_rows(rows: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the full convolution (n + k - 1, m) of every column of ``rows`` (n, m) with a kernel (k,)."""
    result = np.zeros((len(rows) + len(kernel) - 1, rows.shape[1]))
    if len(kernel) <= _LONGEST_SUM:
        for first in range(0, len(rows), _ROWS):
            part = rows[first : first + _ROWS]
            for k, tap in enumerate(kernel, first):
                result[k : k + len(part)] += tap * part
        return result
    longest = len(rows) + len(kernel) - 1
    length = 1 << min((8 * len(kernel)).bit_length(), (longest - 1).bit_length())
    step = length - len(kernel) + 1
    response = np.fft.rfft(kernel, length)
    for first in range(0, len(rows), step):
        # Transforms along memory: twice as fast as across it.
        part = np.ascontiguousarray(rows[first : first + step].T)
        last = first + part.shape[1] + len(kernel) - 1
        result[first:last] += np.fft.irfft(np.fft.rfft(part, length) * response, length)[:, : last - first].T
    return result


class RunningConvolution:
    """Convolves rows that come in blocks with a kernel: ``y[t] = sum_k kernel[k] x[t - k]``, every column alike.

    Args:
        kernel: Weights of the row itself, the row before, ... (k,).
    """

    def __init__(self, kernel: np.ndarray) -> None:
        self._kernel = np.asarray(kernel, dtype=float)
        self.restart()

    def restart(self) -> None:
        """Forget the rows so far: before the next row there are zeros."""
        self._before: np.ndarray | None = None

    def push(self, rows: np.ndarray) -> np.ndarray:
        """Take the next rows (n, m) and return them convolved (n, m)."""
        memory = len(self._kernel) - 1
        before = np.zeros((memory, rows.shape[1])) if self._before is None else self._before
        joined = np.concatenate([before, rows])
        self._before = joined[len(joined) - memory :]
        return convolve_rows(joined, self._kernel)[memory : memory + len(rows)]
