"""Settings of the filter check themselves."""

from __future__ import annotations

import pytest

from steelyard.errors import EstimateError
from steelyard.estimate.kalman import KalmanSettings


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"integrator": "rk45"}, "ekf: integrator is 'rk45'; allowed: euler, rk4; did you mean 'rk4'?"),
        ({"observe": "qd"}, "ekf: observe is 'qd'"),
        ({"start": "best"}, "ekf: start is 'best'; allowed: auto, first, robot, wls, zero"),
        ({"process": "white"}, "ekf: process is 'white'"),
        ({"torque": "hold"}, "ekf: torque is 'hold'; allowed: mean, held; did you mean 'held'?"),
        ({"sign_width": 0.0}, "ekf: sign_width is 0.0; allowed: a finite number above 0"),
        ({"first": 1.5}, "ekf: first is 1.5; allowed: a finite number above 0 and at most 1"),
        ({"widen": float("nan")}, "ekf: widen is nan"),
        ({"position_noise": (1.0, 0.0)}, "ekf: position_noise is (1.0, 0.0)"),
        (
            {"torque_noise": -1.0},
            "ekf: torque_noise is -1.0; allowed: one number or one for each joint",
        ),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(fields, message):
    with pytest.raises(EstimateError) as caught:
        KalmanSettings(**fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_torque_noise_is_allowed_and_tuples_too():
    assert KalmanSettings(torque_noise=0.0, position_noise=(1e-3, 1e-2)).position_noise == (1e-3, 1e-2)
