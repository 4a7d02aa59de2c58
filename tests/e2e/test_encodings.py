"""A change of a file that is not plain UTF-8 is judged like any other."""

import pytest

from tests.support import play
from tests.support.repo import NewRepo

HEAD = "# -*- coding: latin-1 -*-\nNAME = 'Stra\xdfe'\n"


@pytest.mark.parametrize(
    ("head", "encoding", "turns"),
    [
        ("\ufeffimport math\n", "utf-8", play.edit("calc.py", "import math\n", "import math  # sums\n")),
        (HEAD, "latin-1", play.edit("calc.py", "'Stra\xdfe'", "'Stra\xdfe'  # \xd6")),
        ("\ufeffimport math\r\n", "utf-8", []),
    ],
)
def test_a_right_change_is_verified(
    new_repo: NewRepo, head: str, encoding: str, turns: list[dict[str, object]]
) -> None:
    repo = new_repo(play.CALC)
    end = "\r\n" if "\r" in head else "\n"
    before = (head + play.CALC["calc.py"].replace("\n", end)).encode(encoding)
    (repo.root / "calc.py").write_bytes(before)
    repo.commit()
    done = repo.task(script=play.mending(*turns))
    assert done.code == 0, done.err
    after = before.replace(b"a - b", b"a + b")
    for old, new in ((b"import math\n", b"import math  # sums\n"), (b"'Stra\xdfe'", b"'Stra\xdfe'  # \xd6")):
        after = after.replace(old, new) if turns else after
    assert (repo.root / "calc.py").read_bytes() == after


def test_a_mark_alone_is_no_change_without_effect(new_repo: NewRepo) -> None:
    """`json` refuses a byte order mark: only the tests can say what one does."""
    test = "import json\n\n\ndef test_it():\n    assert json.load(open('a.json')) == {}\n"
    repo = new_repo({"a.json": "{}\n", "tests/test_a.py": test, **play.GREEN})
    script = play.crew(
        play.turn(play.call("Read", file_path="a.json")),
        play.turn(play.call("Bash", command="printf '\\357\\273\\277{}\\n' > a.json")),
        play.submit("a.json"),
    )
    assert repo.task("let a.json begin with a byte order mark", script=script).code != 0
