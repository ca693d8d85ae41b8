"""Sentences that describe patterns in residuals, and the remedy for each."""

from __future__ import annotations

from dataclasses import dataclass

from .bins import BinProfile


@dataclass(frozen=True)
class TestedTorque:
    """The torque that residuals are of: its joint, its units, and where it is measured.

    Attributes:
        joint: What sentences call it.
        kind: Where its torque is measured, one of ``TORQUE_KINDS``: it decides which effects and causes remedies name.
        prismatic: Whether it is a prismatic joint.
    """

    joint: str
    kind: str = "motor"
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

    def remedy(self, text: str, where: str = "", limit: str = "") -> str:
        """Return a remedy for this kind of torques."""
        return text.format(where=where, limit=limit, **_WORDS[self.kind])


_RE_ZERO = "re-zero the torque sensor between recordings"
_GAIN = "(gain in [[recording.torque]])"
_WORDS: dict[str, dict[str, str]] = {
    "motor": {
        "side": "m",
        "drift": "warm the arm up before recording",
        "temperature": "warm the arm up before recording",
        "gain": f"the gain of the motor torques or currents {_GAIN}",
        "inertia": "; add the drive's inertia, Ia, with --effects if it is not there",
        "zero": "look for a cable or load that pulls at the joint, and for an offset of the measured current",
    },
    "joint": {
        "side": "l",
        "drift": _RE_ZERO,
        "temperature": "warm the arm up before recording and re-zero the torque sensor",
        "gain": f"the gain of the torque sensor {_GAIN}",
        "inertia": ", and the gain of the torque sensor",
        "zero": "re-zero the torque sensor",
    },
    "difference": {
        "side": "m",
        "drift": _RE_ZERO,
        "temperature": "warm the arm up before recording and re-zero the torque sensor",
        "gain": f"the gains of the motor torques or currents and of the torque sensor {_GAIN}",
        "inertia": "; add the drive's inertia, Ia, with --effects if it is not there",
        "zero": "re-zero the torque sensor",
    },
}
"""Parts of remedies by the kind of the torques; ``side`` is the letter in which effects on their side of gears end."""
TORQUE_KINDS = tuple(_WORDS)


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
        "add Stribeck friction with --effects +Fs4{side}, or leave the samples {where} out with --standstill {limit}; "
        "if it is there, try another velocity, +Fs1{side} to +Fs4{side}",
    ),
    ("velocity", "odd", "curved"): (
        "friction that is not a straight line in speed on {joint}",
        "add friction that is curved in speed with --effects +Fvv{side} or +Fvr{side}; if one is there, try the other",
    ),
    ("velocity", "odd", "constant"): (
        "Coulomb friction on {joint}",
        "add Fc{side} with --effects; if it is there, it differs between recordings (warm-up, load)",
    ),
    ("velocity", "odd", "line"): (
        "viscous friction on {joint}",
        "add Fv{side} with --effects; if it is there, it differs between recordings (warm-up)",
    ),
    ("velocity", "odd"): (
        "friction on {joint}",
        "add Fv{side} and Fc{side} with --effects; if they are there, they differ between recordings (warm-up)",
    ),
    ("velocity", "even"): (
        "an error that depends on speed but not on direction on {joint}",
        "use Fca{side} instead of Fc{side} in --effects: Coulomb friction of both directions apart",
    ),
    ("load", "odd"): (
        "load-dependent friction on {joint}",
        "add friction in proportion to the load with --effects +Fg{side}; if it is there, it is not in proportion: "
        "check {gain} and the declared payload",
    ),
    ("load", "even"): (
        "an error that depends on the load on {joint}",
        "check {gain} and whether each recording declares its payload",
    ),
    ("temperature", "odd"): (
        "friction that changes with temperature on {joint}",
        "add friction by temperature with --effects +FcT{side},+FvT{side}, or warm the arm up before recording; if it "
        "is there, identify cold and warm recordings apart",
    ),
    ("temperature", "even"): (
        "temperature drift on {joint}",
        "{temperature}; offsets are one for all recordings: identify cold and warm ones apart",
    ),
    ("time", "odd"): (
        "friction that changes in time on {joint}",
        "warm the arm up before recording, and record its temperature",
    ),
    ("time", "even"): (
        "drift in time on {joint}",
        "{drift}; offsets are one for all recordings: identify those apart that differ",
    ),
    ("position", "even"): (
        "position-dependent (gear or gravity) error on {joint}",
        "look for cable forces and gear errors that repeat with the angle; if the joint has a spring, name it under "
        "springs in the robot file and add spring with --effects",
    ),
    ("acceleration", "even", "line"): (
        "a delay or wrong inertia, as residuals grow with acceleration, on {joint}",
        "check the delay between torques and positions{inertia}",
    ),
    ("acceleration", "even"): (
        "an error that depends on acceleration on {joint}",
        "check the delay between torques and positions, and try another low-pass with --cutoff",
    ),
}


def mean_text(profile: BinProfile, share: float, tested: TestedTorque) -> tuple[str, str]:
    """Return the sentence and the remedy for means that depend on a signal."""
    shape = "line" if profile.signal == "acceleration" and profile.shape == "straight" else profile.shape
    general = (profile.signal, profile.parity)
    head, remedy = _SENTENCES.get((*general, shape)) or _SENTENCES[general]
    where = _where(profile, tested)
    along = " in the direction of motion" if profile.parity == "odd" else ""
    size = f"residuals average {profile.worst_mean:+.2g} {tested.torque}{along} while {where}"
    return f"{head.format(joint=tested.joint)}: {size} ({_percent(share)})", tested.remedy(
        remedy, where=f"in which {where}", limit=_speed(profile)
    )


def spread_text(profile: BinProfile, ratio: float, share: float, tested: TestedTorque) -> tuple[str, str]:
    """Return the sentence and the remedy for a spread that depends on speed."""
    where = _where(profile, tested)
    size = f"residuals spread {ratio:.2g} times as far while {where} ({_percent(share)})"
    if profile.shape == "slow":
        remedy = (
            "add friction that turns over a length with --effects +Fd2{side}, or leave samples slower than {limit} "
            f"{tested.of('velocity')} out with --standstill {{limit}}; if it is there, add another length, "
            "+Fd1{side} to +Fd6{side}"
        )
        text = f"sign of velocity uncertain near reversals on {tested.joint}: {size}"
        return text, tested.remedy(remedy, limit=_speed(profile))
    remedy = "look for vibration or saturation at these speeds; sigmas that allow for it: --covariance sandwich"
    return f"noise that depends on speed on {tested.joint}: {size}", remedy


def constant_text(mean: float, share: float, tested: TestedTorque) -> tuple[str, str]:
    """Return the sentence and the remedy for residuals whose mean is not zero."""
    text = f"constant offset on {tested.joint}: residuals average {mean:+.2g} {tested.torque} ({_percent(share)})"
    remedy = "add off{side} with --effects; if it is there, it has changed since the fit: {zero}"
    return text, tested.remedy(remedy)


def _speed(profile: BinProfile) -> str:
    """Return the speed at which the bins of the pattern end."""
    return f"{profile.high[profile.last]:.2g}"


def _where(profile: BinProfile, tested: TestedTorque) -> str:
    name, unit = profile.signal, tested.of(profile.signal)
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
