"""How signals are prepared before they become rows: what the user may choose, and the choices as resolved on data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from ..configuration import Kind, Section, kind_of, list_of, number, whole_number
from ..errors import ObservationError, SteelyardError
from ..signals import MARGIN, DecimationFilter, LowPass
from ..text import short_repr

_KINDS: dict[str, Kind[Any]] = {
    **dict.fromkeys(("cutoff", "decimation_cutoff", "attenuation", "rate", "max_gap"), number(above=0)),
    "order": whole_number(1),
    "trim": whole_number(0),
    "decimation": whole_number(1),
    "standstill": list_of(number(least=0), None, "a speed or a list of speeds", alone=True),
}

LONGEST_DELAY = 1.0
"""Delays beyond this are typing errors, milliseconds as a rule [s]."""


@dataclass(frozen=True)
class Preparation:
    """What the user may choose; None is found from the data by :func:`resolve_preparation`.

    Attributes:
        cutoff: Low-pass of the positions [Hz].
        order: Order of each pass of the low-pass.
        mode: ``zero_phase``, ``forward`` or ``none``.
        design: ``corrected`` or ``per_pass``; see :func:`steelyard.signals.low_pass`.
        second: Second derivative: ``second`` central difference or the first one twice, ``twice_first``.
        velocity: ``differentiated`` from the positions, or ``recorded``: that of the log, low-passed alike, and
            accelerations from its central difference.
        trim: Samples cut at each end of every segment after filtering; None: those that the filter's ends influence.
        decimation: Samples for one row.
        decimation_cutoff: Cut-off of the decimator [Hz]; None: 0.8 of the new Nyquist frequency.
        attenuation: Stop band of the decimator [dB].
        ends: ``drop`` or ``mirror``: where the decimator reaches beyond the data.
        standstill: Speed [rad/s or m/s], one or one a joint, below which a joint's own equations count as
            undetermined; 0 keeps all.
        stiffness: Of every joint [N m/rad or N/m]: positions become ``q - tau_l / k`` (P5.8); needs joint torques.
        rate: Uniform rate [Hz]; None: that of the stamps, the median over recordings.
        resampling: ``linear``, ``cubic`` or ``monotone``, where stamps are uneven.
        max_gap: Intervals longer than this are not bridged [s]; None: three intervals of the slowest recording, or a
            tenth of the cut-off's period if that is longer.
        delay: By how much the torques of every recording are late against its positions [s]; negative if early. They
            are put back by as much before anything else is done.
        joint_delays: By how much the torques of single joints are later than that [s].

    Example:
        >>> steelyard.Preparation(cutoff=10.0, decimation=5).mode
        'zero_phase'
    """

    cutoff: float | None = None
    order: int = 4
    mode: Literal["zero_phase", "forward", "none"] = "zero_phase"
    design: Literal["corrected", "per_pass"] = "corrected"
    second: Literal["second", "twice_first"] = "second"
    velocity: Literal["differentiated", "recorded"] = "differentiated"
    trim: int | None = None
    decimation: int | None = None
    decimation_cutoff: float | None = None
    attenuation: float = 80.0
    ends: Literal["drop", "mirror"] = "drop"
    standstill: float | tuple[float, ...] | None = None
    stiffness: tuple[float, ...] | None = None
    rate: float | None = None
    resampling: Literal["linear", "cubic", "monotone"] = "cubic"
    max_gap: float | None = None
    delay: float = 0.0
    joint_delays: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_fields(self, _KINDS, "preparation", ObservationError)
        for of, delay in (("", self.delay), *((f" of {joint}", one) for joint, one in self.joint_delays.items())):
            if not abs(delay) <= LONGEST_DELAY:
                raise ObservationError(
                    f"preparation delay{of}: got {delay:g} s, allowed are seconds from {-LONGEST_DELAY:g} to "
                    f"{LONGEST_DELAY:g}; 10 ms is 0.010"
                )


def check_fields(record: Any, kinds: Mapping[str, Kind[Any]], where: str, error: type[SteelyardError]) -> None:
    """Check the fields of a record of settings; a field that is None is left alone.

    Args:
        record: The record; fields annotated by ``Literal`` are checked by their annotation.
        kinds: What other fields allow.
        where: What messages call the record.
        error: Class of the errors raised.
    """
    hints = get_type_hints(type(record)).items()
    literal = [
        (name, hint) for name, hint in hints if any(get_origin(one) is Literal for one in (hint, *get_args(hint)))
    ]
    known = {**{name: kind_of(hint) for name, hint in literal}, **kinds}
    Section({name: value for name in known if (value := getattr(record, name)) is not None}, where, error).values(known)


@dataclass(frozen=True, eq=False)
class ResolvedPreparation:
    """A preparation with nothing left to find. Make one with :func:`resolve_preparation`.

    Attributes:
        chosen: What the user had chosen.
        joints: Names of the joints, in the order of every (n,) array here.
        rate: Uniform rate of the samples [Hz].
        max_gap: Longest interval that is bridged [s].
        low_pass: Low-pass of the positions; ``cutoff`` is its cut-off [Hz], None with mode ``none``.
        trim: Samples cut at the start and at the end of every segment after filtering.
        decimation_filter: What y and every column of W go through; no stages where nothing is decimated.
        standstill: Speed of each joint below which its equations are left out (n,) [rad/s or m/s].
        velocity_noise: Standard deviation of the velocity error of each joint (n,) [rad/s or m/s].
        signal_noise: Standard deviation of the noise on each recorded position (n,) [rad or m], followed by those on
            the velocities (2n,) where recorded ones are used.
        proposed_cutoff: Cut-off that the data themselves ask for, whether it was chosen or not [Hz]; None if no joint
            stands above its noise.
        reasons: Why this cut-off, this factor, this standstill speed: a sentence each.
    """

    __repr__ = short_repr

    chosen: Preparation
    joints: tuple[str, ...]
    rate: float
    max_gap: float
    low_pass: LowPass
    trim: tuple[int, int]
    decimation_filter: DecimationFilter
    standstill: np.ndarray
    velocity_noise: np.ndarray
    signal_noise: np.ndarray
    proposed_cutoff: float | None
    reasons: tuple[str, ...]

    @property
    def cutoff(self) -> float | None:
        """Cut-off of the low-pass [Hz]; None if nothing is filtered."""
        return self.low_pass.cutoff

    @property
    def decimation(self) -> int:
        """Samples for one row."""
        return self.decimation_filter.factor

    @property
    def decimates(self) -> bool:
        """Whether there is a decimation filter at all."""
        return bool(self.decimation_filter.stages)

    def at_rate(self, factor: float) -> Preparation:
        """Return what to choose for the same samples at so many times their rate: rows are the same mixture of them."""
        chosen, cutoff = self.chosen, self.chosen.decimation_cutoff
        return replace(
            chosen, rate=self.rate * factor, cutoff=None if self.cutoff is None else self.cutoff * factor,
            decimation=self.decimation, decimation_cutoff=None if cutoff is None else cutoff * factor,
            standstill=tuple((self.standstill * factor).tolist()), max_gap=self.max_gap / factor,
            delay=chosen.delay / factor, joint_delays={name: one / factor for name, one in chosen.joint_delays.items()},
        )  # fmt: skip

    @property
    def margin(self) -> int:
        """Samples that the differences take from each end of a segment."""
        return MARGIN["first" if self.chosen.velocity == "recorded" else self.chosen.second]

    @property
    def filter_text(self) -> str:
        """All that decides what a row means as a mixture of samples; rows of another text do not belong together."""
        low, filter_, chosen = self.low_pass, self.decimation_filter, self.chosen
        low_passed, decimated = "no low-pass", "no decimation"
        if low.cutoff is not None:
            low_passed = f"low-pass {low.cutoff:.6g} Hz order {low.order} {low.mode} {low.design}"
        if self.decimates:
            at = f"{filter_.cutoff:.6g} Hz, {filter_.attenuation:g} dB"
            decimated = f"decimation {filter_.factor} at {at}, ends {chosen.ends}"
        derivatives = "recorded velocity" if chosen.velocity == "recorded" else f"differences {chosen.second}"
        parts = [f"rate {self.rate:.6g} Hz", low_passed, derivatives, decimated]
        if chosen.stiffness is not None:
            parts.append(f"stiffness {', '.join(f'{value:g}' for value in chosen.stiffness)}")
        return "; ".join(parts)
