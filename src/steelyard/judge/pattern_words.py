"""The sentences for patterns in residuals, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass

from .profile import Profile


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


# Words for what goes up with a signal: below, above.
_COMPARED = {
    "velocity": ("it moves slower than", "it moves faster than", "its speed is between"),
    "temperature": ("it is colder than", "it is warmer than", "its temperature is between"),
    "time": ("the time is before", "the time is after", "the time is between"),
}

# (signal, parity, shape) or (signal, parity): the head of the sentence and the remedy.
_WORDS = {
    ("velocity", "odd", "slow"): (
        "friction at low speed on {joint}",
        "add a friction term for low speed (Stribeck), or leave out the samples {where}",
    ),
    ("velocity", "odd", "curved"): (
        "friction that is not a straight line in speed on {joint}",
        "add a friction term that is curved in speed, or identify at the speeds the arm will run at",
    ),
    ("velocity", "odd", "constant"): (
        "Coulomb friction on {joint}",
        "put Coulomb friction into the model; if it is there, it differs between recordings (warm-up, load)",
    ),
    ("velocity", "odd", "line"): (
        "viscous friction on {joint}",
        "put viscous friction into the model; if it is there, it differs between recordings (warm-up)",
    ),
    ("velocity", "odd"): (
        "friction on {joint}",
        "put Coulomb and viscous friction into the model; if they are there, they differ between recordings (warm-up)",
    ),
    ("velocity", "even"): (
        "an error that depends on speed but not on direction on {joint}",
        "identify Coulomb friction of both directions apart (Fcp, Fcn); check the velocity terms of neighbouring links",
    ),
    ("load", "odd"): (
        "load-dependent friction on {joint}",
        "add a friction term in proportion to the load, or identify with the loads the arm will carry",
    ),
    ("load", "even"): (
        "an error that depends on the load on {joint}",
        "check the gain of the torque or current and the payload",
    ),
    ("temperature", "odd"): (
        "friction that changes with temperature on {joint}",
        "warm the arm up before recording, or identify cold and warm recordings apart",
    ),
    ("temperature", "even"): (
        "temperature drift on {joint}",
        "warm the arm up before recording, and re-zero the torque sensor or add an offset for each recording",
    ),
    ("time", "odd"): (
        "friction that changes in time on {joint}",
        "warm the arm up before recording, and record its temperature",
    ),
    ("time", "even"): (
        "drift in time on {joint}",
        "re-zero the torque sensor between recordings, or add an offset for each recording",
    ),
    ("position", "even"): (
        "position-dependent (gear or gravity) error on {joint}",
        "look for cable forces, springs and gear errors that repeat with the angle; add a spring if the arm has one",
    ),
    ("acceleration", "even", "line"): (
        "a delay or wrong inertia, as residuals grow with acceleration, on {joint}",
        "check the delay between torques and positions, and the drive's inertia (Ia)",
    ),
    ("acceleration", "even"): (
        "an error that depends on acceleration on {joint}",
        "check the delay between torques and positions and the cut-off of the filter",
    ),
}


def mean_words(profile: Profile, joint: str, share: float, units: Units) -> tuple[str, str]:
    """Return the sentence and the remedy for means that depend on a signal."""
    shape = "line" if profile.signal == "acceleration" and profile.shape == "straight" else profile.shape
    general = (profile.signal, profile.parity)
    head, remedy = _WORDS.get((*general, shape)) or _WORDS[general]
    where = _where(profile, units)
    along = " in the direction of motion" if profile.parity == "odd" else ""
    size = f"residuals average {profile.worst_mean:+.2g} {units.torque}{along} while {where}"
    return f"{head.format(joint=joint)}: {size} ({_percent(share)})", remedy.format(where=f"in which {where}")


def spread_words(profile: Profile, ratio: float, joint: str, share: float, units: Units) -> tuple[str, str]:
    """Return the sentence and the remedy for a spread that depends on speed."""
    where = _where(profile, units)
    size = f"residuals spread {ratio:.2g} times as far while {where} ({_percent(share)})"
    if profile.shape == "slow":
        limit = f"{profile.high[profile.last]:.2g} {units.of('velocity')}"
        remedy = f"leave out or down-weight samples slower than {limit}, or smooth the sign of the velocity"
        return f"sign of velocity uncertain near reversals on {joint}: {size}", remedy
    remedy = "weight these samples less, and look for vibration or saturation at these speeds"
    return f"noise that depends on speed on {joint}: {size}", remedy


def constant_words(mean: float, joint: str, share: float, units: Units) -> tuple[str, str]:
    """Return the sentence and the remedy for residuals whose mean is not zero."""
    text = f"constant offset on {joint}: residuals average {mean:+.2g} {units.torque} ({_percent(share)})"
    return text, "put an offset into the model; if it is there, it has changed since the fit: re-zero the torque sensor"


def _where(profile: Profile, units: Units) -> str:
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
