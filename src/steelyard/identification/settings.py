"""Settings of an identification and of its methods, from a table of a file or from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..configuration import (
    ROOT,
    Kind,
    Section,
    checked,
    choice,
    kind_of,
    list_of,
    number,
    record_from,
    vector,
    whole_number,
)
from ..configuration import names as names_of
from ..consistency import ConsistencySettings
from ..effects import FrictionConstants
from ..errors import EstimateError, ObservationError, require_type
from ..estimate import NORMS
from ..estimators import ESTIMATORS, methods_on_factors, settings_tables
from ..judge import COVARIANCES, RULES, Thresholds
from ..model import NONLINEAR
from ..observe import Preparation
from ..plain_data import plain
from ..robot import FRICTION_KINDS, gravity_vector, lock_positions
from ..text import short_repr


def with_options(table: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return an ``[identify]`` table with options of its method as given on the command line, ``name=value`` each.

    Args:
        table: The table; options go into that of its method and win over what is there.
        texts: The options; a value is a number, true, false, a list in brackets, or a text.

    Raises:
        EstimateError: If the method has no options, or one has no ``=``.
    """
    if not texts:
        return dict(table)
    method = table.get("method", "gls")
    own = ESTIMATORS[method].table if method in ESTIMATORS else ""
    if not own:
        having = ", ".join(name for name, one in ESTIMATORS.items() if one.table)
        raise EstimateError(
            f"--option {texts[0]}: method '{method}' has no options of its own; those that have: {having}"
        )
    chosen = dict(table.get(own, {}))
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise EstimateError(f"--option {text}: needed is name=value, such as integrator=euler")
        chosen[name.strip().replace("-", "_")] = _value(value.strip())
    return {**table, own: chosen}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


METHODS = tuple(ESTIMATORS)
FACTOR_METHODS = methods_on_factors()
"""Methods that need the factors alone: covariances of other kinds and earlier runs are for them."""


@dataclass(frozen=True)
class Settings:
    """Choices of an identification; the defaults are meant to be right.

    Attributes:
        measured: ``motor``, ``joint``, ``both`` or ``difference``; None: the robot's, as far as the recordings go.
        effects: Effects of the model; None: the robot's own.
        select: Whether effects beyond these are chosen by cross-validation within the training recordings; None: yes,
            unless ``effects`` names all (not ``+Fgm``, one more) or ``method`` is another than the default.
        sign_width: Width of the smooth sign in friction [rad/s or m/s]; 0 for the exact sign.
        friction: Constants of friction that is not linear in them; None: the robot's own.
        nonlinear: Which of these constants are estimated together with the linear parameters: ``stribeck`` (velocities
            of the Stribeck effects in the model), ``dahl`` (lengths of its Dahl elements), ``sign_width``, ``delay``
            (of all torques against the positions); none by default. For ``gls``, ``wls``, ``iterated`` and ``ols``.
        gravity: Acceleration of gravity in the base frame [m/s^2], for an arm mounted otherwise; None: the robot's own.
        lock: Joints that were held, with their positions [rad or m]; they are no part of the model.
        preparation: Filters and decimation.
        method: ``gls``; ``wls`` (P1); ``iterated``; ``ols``; ``rls`` (recursive, P1.8); ``ekf`` (Kalman filter, P1.7);
            ``ml`` (noise on positions too, P4.2); ``iv`` and ``didim`` (simulated regressor).
        covariance: ``model``, ``classical``, ``sandwich``, ``block`` or ``hac``; None: ``model`` for ``gls``, else
            ``classical``. Methods from ``rls`` on bring their own.
        robust: ``huber`` or ``tukey``: rows far from the model count less; None: all rows count in full. Not for
            methods from ``rls`` on.
        reduction: Rule for essential parameters: ``f``, ``stepwise`` (P5.6), ``rsd``, ``bic`` or ``none``.
        protected: Parameters that the reduction may not take away.
        prior: Value and standard deviation of parameters towards which the estimate is drawn.
        consistency: Prior and bounds of the physically consistent parameters.
        hold_out: Last part of every recording that is held out if no validation is given.
        evaluation_cutoff: Low-pass under which torques are compared [Hz]; None: that of the positions, as their motion
            proposes it.
        thresholds: Of the verdict.
        bias_repeats: Refits with noisier positions that estimate the bias; 0 for none.
        seed: Of the noise in them.
        threads: Threads that share the work; the result is the same.
        options: Settings of estimators by the name of their table, ``{"ekf": KalmanSettings(...)}``; defaults for all
            others.

    Example:
        >>> steelyard.Settings(method="wls", preparation=steelyard.Preparation(cutoff=10.0)).reduction
        'f'
    """

    __repr__ = short_repr

    measured: str | None = None
    effects: tuple[str, ...] | None = None
    select: bool | None = None
    sign_width: float = 0.0
    friction: FrictionConstants | None = None
    nonlinear: tuple[str, ...] = ()
    gravity: tuple[float, float, float] | None = None
    lock: Mapping[str, float] = field(default_factory=dict)
    preparation: Preparation = field(default_factory=Preparation)
    method: str = "gls"
    covariance: str | None = None
    robust: str | None = None
    reduction: str = "f"
    protected: tuple[str, ...] = ()
    prior: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    consistency: ConsistencySettings = field(default_factory=ConsistencySettings)
    hold_out: float = 0.25
    evaluation_cutoff: float | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    bias_repeats: int = 4
    seed: int = 0
    threads: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_method(self) -> Any:
        """Choices of the estimator at hand, its defaults where none are given; None if it has none."""
        one = ESTIMATORS[self.method]
        if not one.table:
            return None
        return self.options[one.table] if one.table in self.options else one.load_settings()()

    @property
    def chooses_effects(self) -> bool:
        """Whether further effects are chosen: by default where neither all effects nor a method are given."""
        if self.select is not None:
            return self.select
        return self.method == "gls" and all(name.startswith("+") for name in self.effects or ())

    def __post_init__(self) -> None:
        checked(self.method, choice(*ESTIMATORS), "method", EstimateError)
        checked(self.reduction, choice(*RULES), "reduction", EstimateError)
        checked(self.threads, whole_number(1), "threads", EstimateError)
        if self.covariance is not None:
            checked(self.covariance, choice(*COVARIANCES), "covariance", EstimateError)
            if ESTIMATORS[self.method].data == "rows":
                raise EstimateError(
                    f"covariance '{self.covariance}' with method '{self.method}', which brings its own; leave it out, "
                    f"or choose one of {', '.join(FACTOR_METHODS)}"
                )
        if self.robust is not None:
            checked(self.robust, choice(*NORMS), "robust", EstimateError)
            if ESTIMATORS[self.method].data == "rows":
                raise EstimateError(
                    f"robust '{self.robust}' with method '{self.method}', which works on samples in time; leave it "
                    f"away, or choose one of {', '.join(FACTOR_METHODS)}"
                )
        for kind in self.nonlinear:
            checked(kind, choice(*NONLINEAR), "nonlinear", EstimateError)
        if self.nonlinear and self.method not in FACTOR_METHODS:
            raise EstimateError(
                f"nonlinear parameters ({', '.join(self.nonlinear)}) with method '{self.method}', which has no columns "
                f"for them; leave them away, or choose one of {', '.join(FACTOR_METHODS)}"
            )
        for table, given in self.options.items():
            checked(table, choice(*settings_tables()), "options", EstimateError)
            own = settings_tables()[table].load_settings()
            require_type(given, own, f"options of '{table}'", f"{own.__name__}(...)", EstimateError)
        if not 0 < self.hold_out < 1:
            raise EstimateError(f"hold_out: got {self.hold_out}, allowed is a part between 0 and 1, such as 0.25")


def refuse_nonlinear(settings: Settings, where: str) -> None:
    """Raise an EstimateError if nonlinear parameters are to be estimated where they are not."""
    if settings.nonlinear:
        raise EstimateError(
            f"nonlinear parameters ({', '.join(settings.nonlinear)}) with {where}: they are estimated by identify "
            "alone; give their values instead (friction, sign_width, delay)"
        )


SCHEMA: dict[str, type | tuple[type, ...]] = {
    "torque": str, "effects": list, "select": bool, "payload": str, "sign_width": float, "friction": dict,
    "nonlinear": list,
    "gravity": list, "lock": dict, "method": str, "covariance": str, "robust": str,
    "reduction": str, "protected": list, "prior": dict, "consistency": dict, "hold_out": float,
    "evaluation_cutoff": float,
    "thresholds": dict, "bias_repeats": int, "seed": int, "threads": int, "validate": list,
    "cutoff": float, "order": int, "mode": str, "design": str, "second": str, "velocity": str, "trim": int,
    "decimation": int, "decimation_cutoff": float, "attenuation": float, "ends": str, "standstill": (float, list),
    "stiffness": list, "rate": float, "resampling": str, "max_gap": float, "delay": float,
    "joint_delays": dict,
    **dict.fromkeys(settings_tables(), dict),
}  # fmt: skip
"""Keys of an ``[identify]`` table: those of :class:`Settings` and of its preparation, side by side."""

_OUTSIDE = ("payload", "validate")
_OTHERWISE = ("torque", "consistency", "friction")


def settings_from_table(table: Mapping[str, Any]) -> Settings:
    """Return settings from a flat table, as a configuration file or the command line gives them.

    Args:
        table: Keys of ``SCHEMA``; ``payload`` and ``validate`` are no settings and are left alone.
    """
    section, own = Section(table, ROOT, EstimateError), settings_tables()
    section.check_keys([*SCHEMA, *(name for name in own if name not in SCHEMA)])
    names = {one.name for one in fields(Preparation)}
    prepared = {key: value for key, value in table.items() if key in names}
    others = {
        key: value
        for key, value in table.items()
        if key not in (*names, *own, *_OUTSIDE, "torque", "consistency", "friction")
    }
    if "torque" in table:
        others["measured"] = table["torque"]
    friction = record_from(FrictionConstants, section.section("friction"), FRICTION_KINDS)
    of_methods = {
        name: record_from(one.load_settings(), section.section(name)) for name, one in own.items() if name in table
    }
    return replace(
        record_from(Settings, Section(others, ROOT, EstimateError), _KINDS),
        preparation=record_from(Preparation, Section(prepared, ROOT, ObservationError), {"joint_delays": joint_delays}),
        options=of_methods,
        friction=friction if "friction" in table else None,
        consistency=record_from(ConsistencySettings, section.section("consistency"), _KINDS_OF_CONSISTENCY),
    )


def settings_to_table(settings: Settings) -> dict[str, Any]:
    """Return the flat table of settings that differ from the defaults; ``settings_from_table`` is its inverse.

    The number of threads is left out: it does not change the result.
    """
    usual = Settings()
    own = _differences(settings, usual, without=("preparation", "options", "thresholds", "consistency", "threads"))
    if "measured" in own:
        own["torque"] = own.pop("measured")
    for name in ("thresholds", "consistency"):
        if inner := _differences(getattr(settings, name), getattr(usual, name)):
            own[name] = inner
    prepared = _differences(settings.preparation, usual.preparation)
    return own | prepared | {name: _differences(one, type(one)()) for name, one in settings.options.items()}


def _differences(record: Any, usual: Any, without: Sequence[str] = ()) -> dict[str, Any]:
    names = [one.name for one in fields(record) if one.name not in without]
    return {name: plain(getattr(record, name)) for name in names if getattr(record, name) != getattr(usual, name)}


def _prior(value: Any) -> Mapping[str, tuple[float, float]]:
    """Value and standard deviation by parameter."""
    try:
        return {name: kind_of(tuple[float, float])(pair) for name, pair in kind_of(dict)(value).items()}
    except ValueError:
        raise ValueError("a table of [value, standard deviation] by parameter") from None


def joint_delays(value: Any) -> dict[str, float]:
    """Return delays from a table by joint, or from texts such as ``joint_3=0.008``."""
    if isinstance(value, Mapping):
        return {str(joint): number()(delay) for joint, delay in value.items()}
    found = {}
    for text in value:
        joint, equals, delay = str(text).partition("=")
        try:
            found[joint] = float(delay)
        except ValueError:
            equals = ""
        if not (joint and equals):
            raise EstimateError(f"joint delay '{text}': write JOINT=SECONDS, such as joint_3=0.008")
    return found


def _by_link(kind: Kind[Any], what: str) -> Kind[Mapping[str, Any]]:
    """Return the kind of a table of bounds by link."""

    def convert(value: Any) -> Mapping[str, Any]:
        try:
            return {name: kind(one) for name, one in kind_of(dict)(value).items()}
        except ValueError:
            raise ValueError(f"a table of {what} by link") from None

    return convert


_KINDS_OF_CONSISTENCY: dict[str, Kind[Any]] = {
    "mass": _by_link(kind_of(tuple[float, float]), "[lower, upper] in kg"),
    "centre": _by_link(list_of(vector, 2, "two corners"), "[[x, y, z], [x, y, z]], lower and upper corner in m,"),
    "total_mass": kind_of(tuple[float, float]),
    "centre_in_shape": names_of("links"),
    "pinned": names_of("links"),
}
_KINDS: dict[str, Kind[Any]] = {"gravity": gravity_vector, "lock": lock_positions, "prior": _prior}
