"""Sentences that describe patterns in residuals, and the remedy for each."""

from __future__ import annotations

from dataclasses import dataclass

from .bins import BinProfile


@dataclass(frozen=True)
class Units:
    """Units of a revolute or a prismatic joint."""

    prismatic: bool = False

    @property
    def torque(self) -> str:
        """Unit of the residual."""
        return "N" if self.prismatic else "N m"

    def of(self, signal: str) -> str:
        """Unit of a signal."""
        position = "m" if self.prismatic else "rad"
        units = {"position": position, "velocity": f"{position}/s", "acceleration": f"{position}/s^2"}
        return units.get(signal, {"temperature": "deg C", "time": "s"}.get(signal, self.torque))


# How a sentence says that a signal is below, above or between limits.
_COMPARED = {
    "velocity": ("it moves slower than", "it moves faster than", "its speed is between"),
    "temperature": ("it is colder than", "it is warmer than", "its temperature is between"),
    "time": ("the time is before", "the time is after", "the time is between"),
}

# (signal, parity, shape) or (signal, parity): the head of the sentence and the remedy.
_SENTENCES = {
    ("velocity", "odd", "slow"): (
        "friction at low speed on {joint}",
        "add Stribeck friction with --effects +Fs4m (motor torques) or +Fs4l (joint torques), or leave the samples "
        "{where} out with --standstill {limit}; if it is there, try another velocity, +Fs1m to +Fs4m",
    ),
    ("velocity", "odd", "curved"): (
        "friction that is not a straight line in speed on {joint}",
        "add friction that is curved in speed with --effects +Fvvm or +Fvrm (motor torques), +Fvvl or +Fvrl (joint "
        "torques); if one is there, try the other",
    ),
    ("velocity", "odd", "constant"): (
        "Coulomb friction on {joint}",
        "add Fcm (motor torques) or Fcl (joint torques) with --effects; if it is there, it differs between recordings "
        "(warm-up, load)",
    ),
    ("velocity", "odd", "line"): (
        "viscous friction on {joint}",
        "add Fvm (motor torques) or Fvl (joint torques) with --effects; if it is there, it differs between recordings "
        "(warm-up)",
    ),
    ("velocity", "odd"): (
        "friction on {joint}",
        "add Fvm and Fcm (motor torques) or Fvl and Fcl (joint torques) with --effects; if they are there, they differ "
        "between recordings (warm-up)",
    ),
    ("velocity", "even"): (
        "an error that depends on speed but not on direction on {joint}",
        "use Fcam instead of Fcm (Fcal instead of Fcl) in --effects: Coulomb friction of both directions apart",
    ),
    ("load", "odd"): (
        "load-dependent friction on {joint}",
        "add friction in proportion to the load with --effects +Fgm (motor torques) or +Fgl (joint torques); if it is "
        "there, it is not in proportion: check gains and the declared payload",
    ),
    ("load", "even"): (
        "an error that depends on the load on {joint}",
        "check the gain of the current (gain in [[recording.torque]]) and whether each recording declares its payload",
    ),
    ("temperature", "odd"): (
        "friction that changes with temperature on {joint}",
        "add friction by temperature with --effects +FcTm,+FvTm (motor torques) or +FcTl,+FvTl (joint torques), or "
        "warm the arm up before recording; if it is there, identify cold and warm recordings apart",
    ),
    ("temperature", "even"): (
        "temperature drift on {joint}",
        "warm the arm up before recording and re-zero the torque sensor; offsets are one for all recordings: identify "
        "cold and warm ones apart",
    ),
    ("time", "odd"): (
        "friction that changes in time on {joint}",
        "warm the arm up before recording, and record its temperature",
    ),
    ("time", "even"): (
        "drift in time on {joint}",
        "re-zero the torque sensor between recordings; offsets are one for all of them: identify recordings apart that "
        "differ",
    ),
    ("position", "even"): (
        "position-dependent (gear or gravity) error on {joint}",
        "look for cable forces and gear errors that repeat with the angle; if the joint has a spring, name it under "
        "springs in the robot file and add spring with --effects",
    ),
    ("acceleration", "even", "line"): (
        "a delay or wrong inertia, as residuals grow with acceleration, on {joint}",
        "check the delay between torques and positions; add the drive's inertia, Ia, with --effects if it is not there",
    ),
    ("acceleration", "even"): (
        "an error that depends on acceleration on {joint}",
        "check the delay between torques and positions, and try another low-pass with --cutoff",
    ),
}


def mean_text(profile: BinProfile, joint: str, share: float, units: Units) -> tuple[str, str]:
    """Return the sentence and the remedy for means that depend on a signal."""
    shape = "line" if profile.signal == "acceleration" and profile.shape == "straight" else profile.shape
    general = (profile.signal, profile.parity)
    head, remedy = _SENTENCES.get((*general, shape)) or _SENTENCES[general]
    where = _where(profile, units)
    along = " in the direction of motion" if profile.parity == "odd" else ""
    size = f"residuals average {profile.worst_mean:+.2g} {units.torque}{along} while {where}"
    return f"{head.format(joint=joint)}: {size} ({_percent(share)})", remedy.format(
        joint=joint, where=f"in which {where}", limit=_speed(profile)
    )


def spread_text(profile: BinProfile, ratio: float, joint: str, share: float, units: Units) -> tuple[str, str]:
    """Return the sentence and the remedy for a spread that depends on speed."""
    where = _where(profile, units)
    size = f"residuals spread {ratio:.2g} times as far while {where} ({_percent(share)})"
    if profile.shape == "slow":
        limit = _speed(profile)
        remedy = (
            f"add friction that turns over a length with --effects +Fd2m (motor torques) or +Fd2l (joint torques), or "
            f"leave samples slower than {limit} {units.of('velocity')} out with --standstill {limit}; if it is there, "
            "add another length, +Fd1m to +Fd6m"
        )
        return f"sign of velocity uncertain near reversals on {joint}: {size}", remedy
    remedy = "look for vibration or saturation at these speeds; sigmas that allow for it: --covariance sandwich"
    return f"noise that depends on speed on {joint}: {size}", remedy


def constant_text(mean: float, joint: str, share: float, units: Units) -> tuple[str, str]:
    """Return the sentence and the remedy for residuals whose mean is not zero."""
    text = f"constant offset on {joint}: residuals average {mean:+.2g} {units.torque} ({_percent(share)})"
    return text, (
        "add offm (motor torques) or offl (joint torques) with --effects; if it is there, it has changed since the "
        "fit: re-zero the torque sensor"
    )


def _speed(profile: BinProfile) -> str:
    """Return the speed at which the bins of the pattern end."""
    return f"{profile.high[profile.last]:.2g}"


def _where(profile: BinProfile, units: Units) -> str:
    name, unit = profile.signal, units.of(profile.signal)
    below, above, between = _COMPARED.get(name, (f"{name} is below", f"{name} is above", f"{name} is between"))
    low, high = profile.worst_bin
    if profile.first == 0 and profile.last == len(profile.value) - 1:
        return "it moves" if name == "velocity" else f"{between} {low:.3g} and {high:.3g} {unit}"
    if profile.first == 0:
        return f"{below} {high:.3g} {unit}"
    if profile.last == len(profile.value) - 1:
        return f"{above} {low:.3g} {unit}"
    return f"{between} {low:.3g} and {high:.3g} {unit}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} % of the residual's variance"
