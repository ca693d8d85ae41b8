"""Convolution of many columns with one kernel, at once or as rows come in.

In place of ``scipy.signal``, whose import takes longer than a command needs to start (see :mod:`.recursive`). Short
kernels are summed tap by tap; long ones go through Fourier transforms of parts of the rows, whose results overlap and
add up, so that memory follows the kernel and not the number of rows.
"""

from __future__ import annotations

import numpy as np

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
