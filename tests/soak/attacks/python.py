"""All attacks in Python."""

from tests.soak.attacks.python_choices import CHOICES
from tests.soak.attacks.python_common import COMMON
from tests.soak.attacks.python_hidden import HIDDEN
from tests.soak.attacks.python_parts import PARTS
from tests.soak.attacks.python_paths import PATHS
from tests.soak.attacks.python_projects import PROJECTS
from tests.soak.attacks.python_proof import HUNKS, RENAMES, SAME, TESTS_ONLY, WORDS
from tests.soak.attacks.python_runs import ORACLES, SWITCHES

PYTHON = (
    *PATHS,
    *PARTS,
    *HUNKS,
    *SAME,
    *RENAMES,
    *TESTS_ONLY,
    *WORDS,
    *SWITCHES,
    *ORACLES,
    *HIDDEN,
    *PROJECTS,
    *CHOICES,
    *COMMON,
)
