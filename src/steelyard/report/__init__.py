"""Reports: self-contained HTML pages of figures and tables, with a verdict first; the pages' content is the jobs'."""

from .arm import arm_at as arm_at
from .arm import arm_motion as arm_motion
from .page import DataTable as DataTable
from .page import Figure as Figure
from .page import Page as Page
from .page import PageSection as PageSection
from .page import Provenance as Provenance
from .page import is_page as is_page
from .page import page_html as page_html
from .page import sentence as sentence
