"""Terms of a model, one module an idea; :mod:`steelyard.effects` lists them."""

from .payload import PAYLOAD_NAMES as PAYLOAD_NAMES
from .payload import payload as payload
from .payload import payload_link as payload_link
from .payload import with_known_payload as with_known_payload
from .term import MotionSymbols as MotionSymbols
from .term import Term as Term
