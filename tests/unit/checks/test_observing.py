import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.checks.observing import install_hook, keep_hook, watch_folders
from agentflow.core.evidence import Reads

CODE = {
    "shop/__init__.py": "from shop.cart import total\n",
    "shop/cart.py": (
        "import pathlib\nRATES = pathlib.Path(__file__).with_name('rates.json').read_bytes()\n"
        "def total(): return 1\n"
    ),
    "shop/rates.json": "{}",
    "want.txt": "1",
    "given.txt": "1",
    "check.py": (
        "import os\nfrom shop import total\nassert total() == int(open('want.txt').read())\n"
        "os.system('cat given.txt')\n"
    ),
}


def repository(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(tmp_path: Path, files: dict[str, str], command: str, path: str = "") -> tuple[Reads, str]:
    root = repository(tmp_path / "r", files)
    (tmp_path / "scratch").mkdir()
    observer = install_hook(tmp_path / "scratch", [root], path)
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **observer.env}
    with watch_folders(observer, [root]):
        argv = ("bash", "-c", keep_hook(command, observer))
        said = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, check=False)
    return observer.collect_reads(), said.stdout + said.stderr


def test_each_file_is_told_with_the_file_whose_code_reads_it(tmp_path: Path) -> None:
    reads, said = run(tmp_path, CODE, f"{sys.executable} check.py")

    assert said == "1"
    assert {
        ("shop/cart.py", "shop/__init__.py"),
        ("shop/rates.json", "shop/cart.py"),
        ("want.txt", "check.py"),
    } <= reads.by_code
    assert "given.txt" not in {path for path, _ in reads.by_code}
    assert "given.txt" in reads.opened
    assert reads.gap == ""


@pytest.mark.parametrize("start", ["", "PYTHONPATH=. ", "cd shop && PYTHONPATH=.. "])
def test_a_command_with_an_import_path_of_its_own_is_observed(tmp_path: Path, start: str) -> None:
    reads, _ = run(tmp_path, CODE, f"{start}{sys.executable} -c 'import shop.cart'")

    assert ("shop/rates.json", "shop/cart.py") in reads.by_code


def test_the_next_sitecustomize_is_loaded(tmp_path: Path) -> None:
    files = {"more/sitecustomize.py": "import sys\nsys.said = 'loaded'\n"}
    command = f"{sys.executable} -c 'import sys, sitecustomize; print(sys.said, sitecustomize.__file__)'"

    _, said = run(tmp_path, files, command, str(tmp_path / "r/more"))

    assert said.split() == ["loaded", str(tmp_path / "r/more/sitecustomize.py")]


def test_without_another_one_nothing_is_missing(tmp_path: Path) -> None:
    code = 'import sys; print([place for place in sys.path if place.endswith("observer")])'
    command = f"{sys.executable} -c '{code}'"

    _, said = run(tmp_path, {"a": ""}, command)

    assert said == "[]\n"


def test_what_cannot_be_written_down_disturbs_nobody(tmp_path: Path) -> None:
    command = f"mkdir {tmp_path}/scratch/observer/reads; {sys.executable} check.py"

    reads, said = run(tmp_path, CODE, command)

    assert said == "1"
    assert reads.by_code == frozenset()
    assert "shop/rates.json" in reads.opened


def test_folders_that_are_no_product_of_the_repository_are_left_out(tmp_path: Path) -> None:
    files = {"node_modules/a/b.js": "", ".git/config": "", "c/d.txt": ""}

    reads, _ = run(tmp_path, files, "cat node_modules/a/b.js .git/config c/d.txt")

    assert reads.opened == {"c/d.txt"}
