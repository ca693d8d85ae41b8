"""Settings of the filter check themselves."""

from __future__ import annotations

import pytest

from steelyard.errors import EstimateError
from steelyard.estimate.kalman import KalmanSettings


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"integrator": "rk45"}, "ekf integrator: got 'rk45', allowed are rk4, euler; did you mean 'rk4'?"),
        ({"observe": "qd"}, "ekf observe: got 'qd'"),
        ({"start": "best"}, "ekf start: got 'best', allowed are auto, first, robot, wls, zero"),
        ({"process": "white"}, "ekf process: got 'white'"),
        ({"torque": "hold"}, "ekf torque: got 'hold', allowed are held, mean; did you mean 'held'?"),
        ({"sign_width": 0.0}, "ekf sign_width: got 0.0, allowed are finite numbers above 0"),
        ({"first": 1.5}, "ekf first: got 1.5, allowed are parts above 0 up to 1"),
        ({"widen": float("nan")}, "ekf widen: got nan"),
        ({"position_noise": (1.0, 0.0)}, "ekf position_noise: got"),
        ({"torque_noise": -1.0}, "ekf torque_noise: got -1.0, allowed are finite numbers of 0 and above"),
        ({"state_noise": ()}, "ekf state_noise: got"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(fields, message):
    with pytest.raises(EstimateError) as caught:
        KalmanSettings(**fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_torque_noise_is_allowed_and_tuples_too():
    assert KalmanSettings(torque_noise=0.0, position_noise=(1e-3, 1e-2)).position_noise == (1e-3, 1e-2)
