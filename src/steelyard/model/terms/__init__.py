"""The effects a model may contain; a new one is a small file here and a line in ``EFFECTS``."""

from .friction import asymmetric_coulomb, coulomb, offset, viscous
from .gear_coupling import gear_coupling
from .inertia import drive_inertia, link_inertia
from .payload import payload as payload
from .payload import payload_link as payload_link
from .spring import spring
from .term import MotionSymbols as MotionSymbols
from .term import Term as Term
from .term import TermBuilder as TermBuilder

EFFECTS: dict[str, tuple[TermBuilder, str]] = {
    "inertia": (link_inertia, "link inertias, first moments and masses"),
    "Ia": (drive_inertia, "rotor and gear inertia on the joint side"),
    "Fvm": (viscous("motor"), "viscous friction, motor side"),
    "Fcm": (coulomb("motor"), "Coulomb friction, motor side"),
    "Fcam": (asymmetric_coulomb("motor"), "Coulomb friction by direction, motor side"),
    "offm": (offset("motor"), "torque offset, motor side"),
    "coupling": (gear_coupling, "motors that turn with two joints"),
    "spring": (spring, "gravity compensation springs"),
    "Fvl": (viscous("link"), "viscous friction, link side"),
    "Fcl": (coulomb("link"), "Coulomb friction, link side"),
    "Fcal": (asymmetric_coulomb("link"), "Coulomb friction by direction, link side"),
    "offl": (offset("link"), "torque offset, link side"),
}
