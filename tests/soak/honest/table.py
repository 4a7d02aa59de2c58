"""The whole table."""

from tests.soak.honest.additions import ADDITIONS
from tests.soak.honest.around import AROUND
from tests.soak.honest.common import COMMON
from tests.soak.honest.entries import Entry
from tests.soak.honest.everyday import EVERYDAY
from tests.soak.honest.projects import PROJECTS
from tests.soak.honest.rearranged import REARRANGED, TESTS_ONLY
from tests.soak.honest.styles import STYLES
from tests.soak.honest.texts import TEXTS

ENTRIES: tuple[Entry, ...] = (
    *TEXTS,
    *ADDITIONS,
    *TESTS_ONLY,
    *REARRANGED,
    *AROUND,
    *EVERYDAY,
    *PROJECTS,
    *STYLES,
    *COMMON,
)
