"""The papers, each reproduced through the product's own functions: claims and tables with ours beside them."""

from .claim import Claim as Claim
from .claim import near as near
from .claim import same as same
from .claim import within as within
from .reproduce import PAPERS as PAPERS
from .reproduce import reproduce as reproduce
from .result import PaperResult as PaperResult
from .result import Table as Table
from .result import content as content
