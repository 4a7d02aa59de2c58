import subprocess
from pathlib import Path

from agentflow.sandbox.confine import build_mount_words
from agentflow.sandbox.throwaway import make_overlay_view


def test_an_overlay_is_mounted_without_what_takes_long_to_load(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    make_overlay_view(below, tmp_path / "layer")
    python, *words = build_mount_words(str(below), str(tmp_path / "layer"))
    done = subprocess.run(
        [python, "-X", "importtime", *words, "true"], capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ctypes" in loaded
    assert not loaded & {"json", "pathlib", "re", "typing"}


def test_an_overlay_is_mounted_again_by_a_process_of_the_same_number(tmp_path: Path) -> None:
    below, layer = tmp_path / "below", tmp_path / "layer"
    below.mkdir()
    make_overlay_view(below, layer)
    words = build_mount_words(str(below), str(layer))
    script = 'mkdir "$1/work/$$"; shift; exec "$@" echo mounted'
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(layer), *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "mounted\n"), done.stderr
