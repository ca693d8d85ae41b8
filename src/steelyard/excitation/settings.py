"""Settings of a design, and their family of motions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

from ..configuration import ROOT, Kind, Section, checked, kind_of, number, record_from, whole_number
from ..errors import DesignError
from ..motion import quintic_profile, trapezoidal_profile
from .criteria import criterion
from .family import FourierFamily, MotionFamily, ViaPointFamily

MotionKind = Literal["fourier", "quintic", "trapezoidal"]
DEFAULT_MOVE = 2.0
"""Duration of a move through via points, if the number of moves is not given [s]."""

SAMPLES_A_HARMONIC = 10.0
"""The fastest harmonic must be sampled at least this often in its period."""


@dataclass(frozen=True)
class DesignSettings:
    """Settings of a design. Defaults suit a first experiment.

    Attributes:
        motion: ``fourier``, or ``quintic`` or ``trapezoidal`` moves through via points.
        duration: Duration of the motion [s]; smallest and largest where it is free.
        harmonics: Harmonics of a Fourier series; smallest and largest where they are free.
        periods: How often a Fourier series is repeated within the duration.
        moves: Moves of a motion through via points; None for moves of 2 s.
        criterion: What is minimised; a name of ``CRITERIA``.
        goals: Goals to attain together instead, by name: a criterion, or ``mean_torque of JOINT``, the mean of what is
            left to that joint's torque limit.
        parameters: Base parameters that count; all if empty.
        noise: Standard deviation of the torque noise, one for all equations or one for each [N m or N]; None for 2 %
            of the torque limits.
        rate: Samples a second of the recording [Hz].
        position_noise: Standard deviation of the position noise of every joint [rad or m]; 0 for exact positions.
        resonance: Lowest resonance of the arm [Hz], which the fastest harmonic must stay below; None if unknown.
        starts: Random motions to start from.
        seed: Of those.
        threads: Starts that run at the same time; the answer does not depend on it.
        scheduler: Address of a Dask scheduler whose workers search instead; the answer does not depend on it.
        sigmas: Standard deviations of a torque that are added to it, where parameters come from a run.

    Example:
        >>> steelyard.DesignSettings(duration=10.0, harmonics=3, criterion="worst_sigma").starts
        24
    """

    motion: MotionKind = "fourier"
    duration: float | tuple[float, float] = 20.0
    harmonics: int | tuple[int, int] = 5
    periods: int = 1
    moves: int | None = None
    criterion: str = "d"
    goals: tuple[tuple[str, float], ...] = ()
    parameters: tuple[str, ...] = ()
    noise: float | tuple[float, ...] | None = None
    rate: float = 100.0
    position_noise: float = 0.0
    resonance: float | None = None
    starts: int = 24
    seed: int = 0
    threads: int = 1
    scheduler: str | None = None
    sigmas: float = 2.0

    def __post_init__(self) -> None:
        checked(self.motion, kind_of(MotionKind), "motion", DesignError)
        criterion(self.criterion)
        shortest, longest = self.durations
        if not 0 < shortest <= longest < float("inf"):
            raise DesignError(
                f"duration {self.duration}: give seconds above 0, or the smallest and the largest where it is free"
            )
        if isinstance(self.harmonics, tuple) and not self.harmonics[0] <= self.harmonics[1]:
            raise DesignError(f"harmonics {self.harmonics}: give the smallest first")
        for what, least in (("periods", 1), ("starts", 1), ("threads", 1), ("seed", 0)):
            checked(getattr(self, what), whole_number(least), what, DesignError)
        for what in ("position_noise", "sigmas"):
            checked(getattr(self, what), number(least=0), what, DesignError)

    @property
    def harmonic_counts(self) -> tuple[int, ...]:
        """Numbers of harmonics to try: at most four, spread over what is allowed."""
        if isinstance(self.harmonics, int):
            return (self.harmonics,)
        fewest, most = self.harmonics
        return tuple(sorted({round(fewest + (most - fewest) * part / 3) for part in range(4)}))

    @property
    def durations(self) -> tuple[float, float]:
        """Smallest and largest duration [s]."""
        return self.duration if isinstance(self.duration, tuple) else (self.duration, self.duration)


def family_of(settings: DesignSettings, joints: tuple[str, ...]) -> MotionFamily:
    """Return the motions to search among: with the most harmonics, at the smallest duration.

    Raises:
        DesignError: If the fastest harmonic comes too near a resonance or the sampling rate.
    """
    shortest = settings.durations[0]
    if settings.motion == "fourier":
        most = settings.harmonic_counts[-1]
        family = FourierFamily(joints, most, shortest / settings.periods, settings.periods)
        _check_fastest(settings, most / family.period)
        return family
    moves = settings.moves if settings.moves is not None else max(2, round(shortest / DEFAULT_MOVE))
    profile = quintic_profile() if settings.motion == "quintic" else trapezoidal_profile()
    family = ViaPointFamily(joints, moves, shortest / moves, profile, settings.motion)
    _check_fastest(settings, 1.0 / family.move)
    return family


def _check_fastest(settings: DesignSettings, fastest: float) -> None:
    if settings.resonance is not None and fastest >= settings.resonance:
        raise DesignError(
            f"the fastest harmonic has {fastest:.3g} Hz, the lowest resonance is {settings.resonance:.3g} Hz; take a "
            "longer duration or fewer harmonics"
        )
    if fastest * SAMPLES_A_HARMONIC > settings.rate:
        raise DesignError(
            f"duration {settings.durations[0]:g} s is too short: the fastest harmonic has {fastest:.3g} Hz, which "
            f"{settings.rate:g} samples a second do not follow ({SAMPLES_A_HARMONIC:g} for each of its periods are "
            "needed); take a longer duration, fewer harmonics, or a higher rate"
        )


SCHEMA: Mapping[str, Any] = {**get_type_hints(DesignSettings), "goals": dict}
"""Keys of ``[design]`` in a configuration file."""


def design_settings(table: Mapping[str, Any]) -> DesignSettings:
    """Return settings from a table as a configuration file has it; keys of other settings are left alone."""
    known = {field.name for field in fields(DesignSettings)}
    chosen = {key: value for key, value in table.items() if key in known and value is not None}
    return record_from(DesignSettings, Section(chosen, ROOT, DesignError), _KINDS)


def _range(annotation: Any, one: str) -> Kind[Any]:
    """Return the kind of one number, or of the smallest and the largest where it is free."""

    def convert(value: Any) -> Any:
        try:
            return kind_of(annotation)(value)
        except ValueError:
            raise ValueError(f"{one}, or the smallest and the largest") from None

    return convert


def _goals(value: Any) -> tuple[tuple[str, float], ...]:
    """Wanted numbers by the name of a goal."""
    return tuple((name, kind_of(float)(wanted)) for name, wanted in kind_of(dict)(value).items())


_KINDS: dict[str, Kind[Any]] = {
    "goals": _goals,
    "duration": _range(float | tuple[float, float], "one number"),
    "harmonics": _range(int | tuple[int, int], "a whole number"),
}
