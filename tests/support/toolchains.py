"""The toolchains of other languages: one counts where it builds what tests are about."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

NOT_RUN = "NOT RUN: {} is not here, is too old, or has no toolchain behind it"
_CRATE = '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n'
_SAMPLES: dict[str, tuple[dict[str, str], str]] = {
    "go": ({"a.go": "package main\n\nfunc main() { println(min(1, 2)) }\n"}, "go run a.go"),
    "cargo": ({"Cargo.toml": _CRATE, "src/lib.rs": "pub fn f() {}\n"}, "cargo test --offline --no-run"),
    "rustc": ({"a.rs": "fn main() {}\n"}, "rustc --edition 2021 -o a a.rs"),
    "cc": ({"a.c": "int main(void) { return 0; }\n"}, "cc -o a a.c"),
    "node": ({"a.js": "0\n"}, "node a.js"),
    "npm": ({}, "npm --version"),
}
"""A program that an old version, or a stand-in without a toolchain behind it, cannot build."""


@cache
def can_build(program: str) -> bool:
    """Return whether a program is here and does its work."""
    files, command = _SAMPLES.get(program, ({}, ""))
    if shutil.which(program) is None or not command:
        return shutil.which(program) is not None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            place = Path(folder, name)
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        return subprocess.run(command.split(), cwd=folder, capture_output=True, check=False).returncode == 0
