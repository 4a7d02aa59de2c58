import pytest

from agentflow.core.errors import InvalidInput, NotAllowed, ToolError
from agentflow.tools.files import EDIT, READ, WRITE
from agentflow.tools.search import GLOB, GREP
from tests.unit.tools.bench import Bench

TOKEN = "ghp_" + "aB3d" * 9


@pytest.fixture
def writer(bench: Bench) -> Bench:
    bench.write_paths = ("docs/**",)
    return bench


def test_a_writer_writes_only_below_its_paths(writer: Bench) -> None:
    writer.file("src/x.py", "x = 1\n")
    (writer.root / "docs").mkdir()
    (writer.root / "docs/l").symlink_to("../src")
    writer(WRITE, file_path="docs/x.md", content="x")
    assert (writer.root / "docs/x.md").read_text() == "x"
    writer(READ, file_path="src/x.py")
    for path in (
        "src/new.py",
        "docs/../src/new.py",
        "docs/l/new.py",
        str(writer.root / "src/new.py"),
        "x.md",
    ):
        with pytest.raises(NotAllowed, match=r"only docs/\*\*"):
            writer(WRITE, file_path=path, content="y")
    for path in ("src/x.py", "docs/l/x.py"):
        with pytest.raises(NotAllowed):
            writer(EDIT, file_path=path, old_string="1", new_string="2")
    assert (writer.root / "src/x.py").read_text() == "x = 1\n"
    assert not (writer.root / "src/new.py").exists()


def test_a_search_shows_nothing_of_a_file_with_secrets(bench: Bench) -> None:
    bench.file(".env", "KEY=needle\n")
    bench.file("a.txt", "needle\n")
    for mode in ("content", "files_with_matches", "count"):
        assert ".env" not in bench(GREP, pattern="needle", output_mode=mode).content
    assert "needle" not in bench(GLOB, pattern="*").content
    with pytest.raises(ToolError, match="secrets"):
        bench(GREP, pattern="needle", path=".env")


def test_a_secret_in_a_file_is_shown_as_a_mark_which_is_never_written_over_it(bench: Bench) -> None:
    bench.file("settings.ini", f"a = 1\nkey = {TOKEN}\n")
    assert "key = [REDACTED]" in bench(READ, file_path="settings.ini").content
    assert "[REDACTED]" in bench(GREP, pattern="key", output_mode="content").content
    with pytest.raises(InvalidInput, match="use Edit"):
        bench(WRITE, file_path="settings.ini", content="a = 2\nkey = [REDACTED]\n")
    bench(EDIT, file_path="settings.ini", old_string="a = 1", new_string="a = 2")
    assert (bench.root / "settings.ini").read_text() == f"a = 2\nkey = {TOKEN}\n"


def test_a_large_file_is_read_in_pages(bench: Bench) -> None:
    with bench.file("big.log").open("w") as file:
        file.writelines(f"line {number}\n" for number in range(1, 1_000_001))
    page = bench(READ, file_path="big.log", offset=900_000, limit=2).content.splitlines()
    assert page == [
        "900000\tline 900000",
        "900001\tline 900001",
        "[lines 900000 to 900001; go on with offset 900002]",
    ]
    assert bench(READ, file_path="big.log", offset=1_000_000).content.endswith("to 1000000, the last ones]")
    with pytest.raises(InvalidInput, match="fewer lines"):
        bench(READ, file_path="big.log", offset=1_000_001)
