"""What holds for all tests."""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.toolchains import NOT_RUN, can_build

_FOR_SANDBOXES = "import coverage.cmdline, mcp.server.mcpserver"
"""What programs of tests import where they may not write: there each start of them would compile it."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders where nothing of them stays after the run, and a program before its stand-in."""
    if config.option.basetemp is None:
        folder = tempfile.mkdtemp(prefix="agentflow-tests-")
        config.option.basetemp = f"{folder}/run"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        own = (f"{sys.base_prefix}/bin",) if _is_script(shutil.which("python3")) else ()
        first = (*_make_quick_python(Path(folder, "python")), *own)
        os.environ["PATH"] = os.pathsep.join((*first, os.environ["PATH"]))
    if getattr(config.option, "numprocesses", 0) and config.args_source is config.ArgsSource.TESTPATHS:
        _compile_once(config.rootpath / "tests")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose toolchain cannot build here what the test is about."""
    for name in (str(each) for mark in item.iter_markers("needs") for each in mark.args):
        if not can_build(name):
            pytest.skip(NOT_RUN.format(name))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the levels of the sandbox at which the program was run, and those that this machine lacks."""
    found: dict[str, set[str]] = {"level": set(), "lacking level": set()}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                found.setdefault(name, set()).add(str(value))
    if found["level"]:
        terminalreporter.write_line(f"levels of the sandbox: {', '.join(sorted(found['level']))}")
    for lacking in sorted(found["lacking level"]):
        terminalreporter.write_line(f"WARNING: NOT RUN at a level of the sandbox: {lacking}", yellow=True)


def _compile_once(tests: Path) -> None:
    """Have a fresh clone compiled before the workers begin, which all do it else, at the same time."""
    if sys.dont_write_bytecode or any(tests.glob("unit/**/test_*.pyc")):
        return
    folders = sorted(place.name for place in tests.iterdir() if any(place.glob("**/test_*.py")))
    folders.remove("soak")
    collect = ("-m", "pytest", "--collect-only", "-qq", "-p", "no:randomly")
    others = (f"{tests}/{name}" for name in folders if name != "unit")
    shares = ((*collect, f"{tests}/unit"), (*collect, *others), ("-c", _FOR_SANDBOXES))
    begun = [subprocess.Popen((sys.executable, *share), stdout=subprocess.DEVNULL) for share in shares]
    for process in begun:
        process.wait()


def _make_quick_python(folder: Path) -> tuple[str, str]:
    """Make a Python with pytest and no plugin of ours, since tests start it some thousands of times.

    Return the folders that PATH has to name so that a sandbox shows all of it.
    """
    real = Path(sys.executable).resolve()
    packages = folder / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    for place in (folder / "bin", packages):
        place.mkdir(parents=True)
    for name in ("python3", "python"):
        (folder / "bin" / name).symlink_to(real)
    (folder / "bin/pyvenv.cfg").write_text(f"home = {real.parent}\ninclude-system-site-packages = false\n")
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        _copy_distribution(name, packages)
    subprocess.run(
        (real, "-m", "compileall", "-q", "-x", "pygments", packages), stdout=subprocess.DEVNULL, check=True
    )
    return f"{folder}/bin", str(folder)


def _copy_distribution(name: str, packages: Path) -> None:
    """Copy what is installed under a name, with what tells that it is."""
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or () if not file.parts[0].startswith(".")}:
        place = Path(str(found.locate_file(top)))
        if place.is_dir():
            shutil.copytree(place, packages / top)
        else:
            shutil.copy2(place, packages)


def _is_script(program: str | None) -> bool:
    """Return whether a program is a version manager's stand-in, which starts forty others each time."""
    return program is not None and Path(program).read_bytes().startswith(b"#!")
