"""Constants on which torques do not depend linearly, and how torques change with them.

A Stribeck velocity, a Dahl length, the width of the smooth sign and a delay of the torques are few, and known only
roughly. Beside the columns W of the linear parameters chi, a column ``d(W chi)/d(constant)`` at known chi makes each of
them one more parameter of a least-squares problem: the step from its present value, with a variance that it shares with
all others. Lengths and velocities are above zero and known by their order of magnitude: their steps are those of the
logarithm. The derivatives are those of the expressions that W itself is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from ..effects import EFFECTS
from .model import Model

NONLINEAR = ("stribeck", "dahl", "sign_width", "delay")
"""Kinds of such constants: velocities of Stribeck friction, lengths of Dahl elements, width of the sign, delay."""


def constants_of(model: Model, kinds: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the constants of some kinds that the torques of a model depend on, each with the effects that have it.

    Example:
        >>> from steelyard.model import constants_of
        >>> constants_of(steelyard.build_model("scara_2r", ["+Fs3m", "+Fd2m"]), ["stribeck", "dahl"])
        {'stribeck3': ('Fs3m',), 'dahl2': ('Fd2m',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for kind in NONLINEAR:
        if kind not in kinds:
            continue
        if kind == "delay":
            found[kind] = ()
        elif kind == "sign_width":
            names = [name for name in model.effects if _has_sign(name)]
            found |= {kind: tuple(names)} if names else {}
        else:
            own = [name for name in model.effects if EFFECTS[name].symbols[0].startswith(_SYMBOLS[kind])]
            for name in sorted(own, key=lambda name: EFFECTS[name].element):
                key = f"{kind}{EFFECTS[name].element + 1}"
                found[key] = (*found.get(key, ()), name)
    return found


_SYMBOLS = {"stribeck": ("Fs1", "Fs2", "Fs3", "Fs4"), "dahl": ("Fd1", "Fd2", "Fd3", "Fd4", "Fd5", "Fd6")}
_SIGNED = ("coulomb", "asymmetric", "square_root", "third_root", "stribeck", "load")


def _has_sign(name: str) -> bool:
    module, function = EFFECTS[name].builder.split(".")
    return name in ("coupling", "FcTm", "FcTl") or (module in ("friction", "gear_coupling") and function in _SIGNED)


def kind_of_constant(name: str) -> str:
    """Return the kind of a constant.

    Example:
        >>> from steelyard.model import kind_of_constant
        >>> kind_of_constant("stribeck3")
        'stribeck'
    """
    return name.rstrip("0123456789")


def constant_value(model: Model, name: str) -> float:
    """Return the value of a constant that a model has: all but the delay.

    Example:
        >>> from steelyard.model import constant_value
        >>> constant_value(steelyard.build_model("scara_2r", ["+Fs3m"]), "stribeck3")
        0.1
    """
    kind = kind_of_constant(name)
    return model.sign_width if kind == "sign_width" else getattr(model.friction, kind)[int(name[len(kind) :]) - 1]


def with_constants(model: Model, values: Mapping[str, Any]) -> Model:
    """Return the model with other constants, numbers or symbols by name; a delay is none of the model's.

    Example:
        >>> from steelyard.model import with_constants
        >>> with_constants(steelyard.build_model("scara_2r", ["+Fs3m"]), {"stribeck3": 0.07}).friction.stribeck
        (0.01, 0.03, 0.07, 0.3)
    """
    friction = model.friction
    for kind in ("stribeck", "dahl"):
        own = list(getattr(friction, kind))
        for name, value in values.items():
            if kind_of_constant(name) == kind:
                own[int(name[len(kind) :]) - 1] = value
        friction = replace(friction, **{kind: tuple(own)})
    width = values.get("sign_width", model.sign_width)
    found = replace(model, friction=friction, sign_width=width)
    motion = replace(model.motion, friction=friction, sign_width=width)
    # Symbols stay, and so do expressions that do not depend on these constants: those of the links are long.
    kinds = {kind_of_constant(name) for name in values} - {"dahl", "delay"}
    changed = {name for own in constants_of(model, tuple(kinds)).values() for name in own}
    terms = tuple(
        EFFECTS[name].term(model.robot, motion).of_joints(model.joints_of.get(name)) if name in changed else term
        for name, term in zip([*model.effects, "payload"], model.terms, strict=False)
    )
    found.__dict__.update(motion=motion, terms=terms)
    return found


def change_inputs(model: Model, constants: Sequence[str]) -> dict[str, ca.SX]:
    """Return the inputs that derivatives by some constants have besides those of the regressor, by name.

    ``memory_change`` is the derivative of the states of Dahl elements by the logarithm of their lengths, ``jerk`` that
    of the accelerations in time.

    Example:
        >>> from steelyard.model import change_inputs
        >>> list(change_inputs(steelyard.build_model("scara_2r"), ["delay"]))
        ['jerk']
    """
    size, found = len(model.robot.actuated), dict[str, ca.SX]()
    if any(kind_of_constant(name) == "dahl" for name in constants):
        found["memory_change"] = ca.SX.sym("memory_change", len(model.friction.dahl) * size)
    if "delay" in constants:
        found["jerk"] = ca.SX.sym("jerk", size)
    return found


def change_columns(
    model: Model,
    constants: Sequence[str],
    chi: Mapping[str, float],
    further: Mapping[str, ca.SX],
    *,
    loaded: bool,
) -> ca.SX:
    """Return how torques change with constants (rows, k), in the symbols of the model's regressor and further ones.

    Args:
        model: The model, with the constants at which derivatives are taken.
        constants: Names of the constants, k of them.
        chi: Values of the linear parameters by name; absent ones are 0.
        further: What :func:`change_inputs` gave for these constants.
        loaded: Whether rows have payload columns.

    Example:
        >>> from steelyard.model import change_columns
        >>> model = steelyard.build_model("scara_2r", ["+Fs3m"])
        >>> change_columns(model, ["stribeck3"], {"Fs3m1": 2.0}, {}, loaded=True).shape
        (2, 1)
    """
    present = {name: constant_value(model, name) for name in constants if kind_of_constant(name) in _OF_GRAPH}
    symbols = {name: ca.SX.sym(name) for name in present}
    symbolic = with_constants(model, symbols)
    known = ca.DM([chi.get(name, 0.0) for name in model.names])
    terms = symbolic.loaded_terms if loaded else symbolic.terms
    torque = ca.mtimes(symbolic.regressor_of(terms, loaded=loaded), known)
    columns = [
        ca.jtimes(torque, symbols[name], symbols[name])
        if name in symbols
        else _delay_column(symbolic, torque, further["jerk"])
        if name == "delay"
        else _length_column(symbolic, torque, name, further["memory_change"])
        for name in constants
    ]
    return ca.substitute(
        [ca.horzcat(*columns)], [symbols[name] for name in present], [ca.SX(value) for value in present.values()]
    )[0]


_OF_GRAPH = ("stribeck", "sign_width")
"""Constants that are symbols of the torques; the others act on signals."""


def _length_column(model: Model, torque: ca.SX, name: str, change: ca.SX) -> ca.SX:
    size, element = len(model.robot.actuated), int(name[len("dahl") :]) - 1
    part = slice(element * size, (element + 1) * size)
    memory = model.motion.memory
    assert memory is not None
    return ca.jtimes(torque, memory[part], change[part])


def _delay_column(model: Model, torque: ca.SX, jerk: ca.SX) -> ca.SX:
    """Return ``-d(torque)/dt``: what a torque that is recorded later shows; the jump of a sign is left out."""
    motion, size = model.motion, len(model.robot.actuated)
    rates = [(motion.q, motion.qd), (motion.qd, motion.qdd), (motion.qdd, jerk)]
    if model.has_memory and motion.memory is not None:
        lengths = ca.DM([length for length in model.friction.dahl for _ in range(size)])
        speed, way = (ca.repmat(f(motion.qd), len(model.friction.dahl), 1) for f in (ca.fabs, ca.sign))
        rates.append((motion.memory, speed * (way - motion.memory) / lengths))
    return -sum((ca.jtimes(torque, one, rate) for one, rate in rates), ca.SX(torque.shape[0], 1))
