from pathlib import Path

import pytest

from agentflow.repair.policy import Repair
from tests.unit.repair.bugs import BUGS, Bug, module_tests
from tests.unit.repair.stage import UNITTEST, Stage


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_mended(bug: Bug, tmp_path: Path) -> None:
    assert bug.right in bug.code
    buggy = bug.code.replace(bug.right, bug.wrong)
    files = {
        "shop/__init__.py": "",
        "shop/core.py": buggy,
        "tests/test_core.py": module_tests("shop.core", bug.tests),
    }
    stage = Stage(tmp_path, files, UNITTEST)
    print(stage.mend(Repair(tmp_path)))
    assert set(stage.changed()) == {"shop/core.py"}
