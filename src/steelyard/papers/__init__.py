"""The papers, each reproduced through the product's own functions: claims and tables with ours beside them."""

from .claim import Claim as Claim
from .claim import PaperResult as PaperResult
from .claim import PaperTable as PaperTable
from .claim import near as near
from .claim import paper_to_json as paper_to_json
from .claim import same as same
from .claim import within as within
from .reproduce import PAPERS as PAPERS
from .reproduce import reproduce as reproduce
