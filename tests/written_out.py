"""Rows of a model written out by the independent physics, for motions that may be complex."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import independent
from steelyard.excitation.family import FourierFamily
from steelyard.model import Model
from steelyard.robot import INERTIAL_NAMES, moved_parameters, transform_from_placement

ComplexMotion = tuple[np.ndarray, np.ndarray, np.ndarray]
_PAYLOAD = tuple(f"{symbol}L" for symbol in INERTIAL_NAMES)


def fourier_motion(family: FourierFamily, coefficients: np.ndarray, stretch: complex, time: np.ndarray) -> list:
    """Return positions to jerks (n, N) of coefficients that may be complex, by sines and cosines."""
    units = [
        family.trajectory(np.eye(1, family.size, k).repeat(len(family.joints), axis=0)) for k in range(family.size)
    ]
    mean, sin, cos = (np.array([getattr(unit, what)[0] for unit in units]) for what in ("q0", "sin", "cos"))
    orders = np.arange(1, sin.shape[1] + 1) * (2 * np.pi / family.period)
    parts = []
    for order in range(4):
        turned = orders[:, None] * time + order * np.pi / 2
        rows = (sin * orders**order) @ np.sin(turned) + (cos * orders**order) @ np.cos(turned)
        parts.append(coefficients @ (rows + (mean[:, None] if order == 0 else 0.0)) / stretch**order)
    return parts


def rows_at(model: Model, columns: Sequence[str], motion: ComplexMotion, *, loaded: bool) -> np.ndarray:
    """Return W (E, c, N) of chosen standard parameters, one instant after the other."""
    q, qd, qdd = (part.T for part in motion)
    return np.stack([_rows(model, columns, *instant, loaded) for instant in zip(q, qd, qdd, strict=True)], axis=2)


def _rows(model: Model, columns: Sequence[str], q, qd, qdd, loaded: bool) -> np.ndarray:
    by_name = {parameter.name: parameter for parameter in model.parameters}
    kinds = ("motor", "joint") if model.measured == "both" else (model.measured,)
    nonzero = {"motor": ("link", "motor"), "joint": ("link",), "difference": ("motor",)}
    result = np.zeros((len(kinds), len(qd), len(columns)), dtype=complex)
    for place, name in enumerate(columns):
        column = _column(model, name, q, qd, qdd, loaded)
        for row, kind in enumerate(kinds):
            if by_name[name].side in nonzero[kind]:
                result[row, :, place] = column
    return result.reshape(-1, len(columns))


def _column(model: Model, name: str, q, qd, qdd, loaded: bool) -> np.ndarray:
    robot = model.robot
    if name in _PAYLOAD:
        frame = robot.frame(model.payload_link)
        ten = moved_parameters(np.eye(10)[_PAYLOAD.index(name)], *transform_from_placement(frame.placement))
        return _of_inertia(model, frame.body, ten, q, qd, qdd) * float(loaded)
    symbol, number = name.rstrip("0123456789"), int(name.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
    if symbol in INERTIAL_NAMES:
        return _of_inertia(model, number, np.eye(10)[INERTIAL_NAMES.index(symbol)], q, qd, qdd)
    row = [body.number for body in robot.actuated].index(number)
    column = np.zeros(len(qd), dtype=complex)
    if symbol in ("Iac", "Fvc", "Fcc"):
        coupling = next(one for one in robot.gear_couplings if one.motor == robot.actuated[row].joint.name)
        other, ratio = [b.joint.name for b in robot.actuated].index(coupling.also_turns_with), coupling.ratio
        turning = np.tanh((qd[row] + ratio * qd[other]) / model.sign_width)
        own, on_other = {"Iac": (qdd[other], qdd[row]), "Fvc": (qd[other], qd[row]), "Fcc": (turning / ratio, turning)}[
            symbol
        ]
        column[row], column[other] = ratio * own, ratio * on_other
        return column
    entry = {"Ia": qdd, "Fv": qd, "Fc": np.tanh(qd / model.sign_width), "of": np.ones(len(qd))}[symbol[:2]]
    column[row] = entry[row]
    return column


def _of_inertia(model: Model, number: int, ten: np.ndarray, q, qd, qdd) -> np.ndarray:
    chi = np.zeros(10 * len(model.robot.bodies))
    chi[10 * number - 10 : 10 * number] = ten
    return independent.inverse_dynamics(model.robot, q, qd, qdd, chi)


def information(model: Model, columns: Sequence[str], motion: ComplexMotion, weights: np.ndarray) -> np.ndarray:
    """Return ``W^T W`` (c, c) over all runs of the model, rows times the square roots of weights (E,)."""
    total = np.zeros((len(columns),) * 2, dtype=complex)
    for loaded in {"none": (False,), "loaded": (True,), "paired": (False, True)}[model.payload]:
        rows = rows_at(model, columns, motion, loaded=loaded)
        total += np.einsum("ean,ebn,e->ab", rows, rows, weights)
    return total
