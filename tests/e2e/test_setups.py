"""Repositories as the tools' own `init` writes them: the tests are found, run, counted, and prove a fix."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from agentflow.core.record import Record
from tests.support import play
from tests.support.repo import NewRepo


class Setup(Record):
    """A repository with one failing and one passing test, and what mends it."""

    name: str
    programs: tuple[str, ...]
    files: dict[str, str]
    command: str
    edit: tuple[str, str, str]
    failing: str
    """The id of the test that fails; empty where its runner gives numbers only."""
    answers: str = ""
    """A shell script that stands for the last program: it prints what the real one was seen to print."""
    chance: tuple[str, ...] = ()
    """Caveats that are right here."""


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>acme</groupId>
  <artifactId>pages</artifactId>
  <version>1</version>
</project>
"""
JAVA = """package acme;

public class Pages {
    public static int pages(int n, int size) {
        return n / size + 1;
    }
}
"""
JAVA_MENDED = ("n / size + 1", "(n + size - 1) / size")
SUREFIRE = """mkdir -p {folder}
begin='<?xml version="1.0" encoding="UTF-8"?><testsuite name="acme.PagesTest" tests="2">'
full='<testcase name="full" classname="acme.PagesTest" time="0.01">'
part='<testcase name="part" classname="acme.PagesTest" time="0"/></testsuite>'
grep -q 'size + 1' {file} && failure='<failure message="expected:&lt;2&gt; but was:&lt;3&gt;"/>'
echo "$begin$full$failure</testcase>$part" > {folder}/TEST-acme.PagesTest.xml
[ -z "$failure" ]
"""
TELLS = "if grep -q 'size + 1' {0}; then {1}; exit 1; else {2}; fi\n"
SCRIPT = "export const pages = (n{0}, size{0}) => Math.floor(n / size) + 1;\n"
TYPED = SCRIPT.format(": number")
MENDED = ("Math.floor(n / size) + 1", "Math.ceil(n / size)")
BUN_TEST = """import { expect, test } from "bun:test";
import { pages } from "./pages";

test("full", () => { expect(pages(4, 2)).toBe(2); });
test("part", () => { expect(pages(3, 2)).toBe(2); });
"""
DENO_TEST = """import { pages } from "./pages.ts";

function same(a: number, b: number) {
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

Deno.test("full", () => same(pages(4, 2), 2));
Deno.test("part", () => same(pages(3, 2), 2));
"""
PHP = {
    "src/pages.php": "<?php\nfunction pages($n, $size) {\n    return intdiv($n, $size) + 1;\n}\n",
    "phpunit.xml": '<?xml version="1.0"?>\n<phpunit bootstrap="src/pages.php">\n'
    '  <testsuites><testsuite name="all">'
    "<directory>tests</directory></testsuite></testsuites>\n</phpunit>\n",
    "tests/PagesTest.php": """<?php
use PHPUnit\\Framework\\TestCase;

final class PagesTest extends TestCase
{
    public function testFull(): void { $this->assertSame(2, pages(4, 2)); }
    public function testPart(): void { $this->assertSame(2, pages(3, 2)); }
}
""",
}
PHP_MENDED = ("src/pages.php", "intdiv($n, $size) + 1", "intdiv($n + $size - 1, $size)")
RUBY = "def pages(n, size)\n  n / size + 1\nend\n"
RUBY_MENDED = ("lib/pages.rb", "n / size + 1", "(n + size - 1) / size")
MINITEST = """require "minitest/autorun"
require "pages"

class PagesTest < Minitest::Test
  def test_full
    assert_equal 2, pages(4, 2)
  end

  def test_part
    assert_equal 2, pages(3, 2)
  end
end
"""
RAKEFILE = """require "rake/testtask"

Rake::TestTask.new(:test) do |t|
  t.libs << "test"
  t.libs << "lib"
  t.test_files = FileList["test/**/*_test.rb"]
end

task default: :test
"""
SPEC = """require "pages"

RSpec.describe "pages" do
  it("counts full pages") { expect(pages(4, 2)).to eq 2 }
  it("counts a part") { expect(pages(3, 2)).to eq 2 }
end
"""
MESON = """project('pages', 'c')
foreach name : ['full', 'part']
  test(name, executable(name, 'tests' / name + '.c', 'pages.c'))
endforeach
"""
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(pages C)
enable_testing()
add_library(pages pages.c)
foreach(name full part)
  add_executable(${name} tests/${name}.c)
  target_link_libraries(${name} pages)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
"""
C_TEST = "int pages(int, int);\n\nint main(void) { return pages(%d, 2) == 2 ? 0 : 1; }\n"
SETUPS = [
    Setup(
        name="bun without a script",
        programs=("bun",),
        files={"package.json": '{"name": "pages", "type": "module"}\n', "bun.lock": "", "pages.ts": TYPED}
        | {"pages.test.ts": BUN_TEST},
        command="bun test",
        edit=("pages.ts", *MENDED),
        failing="pages.test.ts::full",
    ),
    Setup(
        name="bun with a script",
        programs=("bun",),
        files={"package.json": '{"name": "pages", "scripts": {"test": "bun test"}}\n', "bun.lock": ""}
        | {"pages.ts": TYPED, "pages.test.ts": BUN_TEST},
        command="bun run test",
        edit=("pages.ts", *MENDED),
        failing="pages.test.ts::full",
    ),
    Setup(
        name="deno init",
        programs=("deno",),
        files={
            "deno.json": '{\n  "tasks": {"dev": "deno run --watch main.ts"}, // dev\n}\n',
            "pages.ts": TYPED,
        }
        | {"pages_test.ts": DENO_TEST},
        command="deno test",
        edit=("pages.ts", *MENDED),
        failing="pages_test.ts::full",
    ),
    Setup(
        name="a task of deno",
        programs=("deno",),
        files={"deno.json": '{"tasks": {"test": "deno test --parallel"}}\n', "pages.ts": TYPED}
        | {"pages_test.ts": DENO_TEST},
        command="deno task test",
        edit=("pages.ts", *MENDED),
        failing="pages_test.ts::full",
    ),
    Setup(
        name="PHPUnit",
        programs=("php", "phpunit"),
        files=PHP,
        command="phpunit",
        edit=PHP_MENDED,
        failing="tests/PagesTest.php::PagesTest > testFull",
    ),
    Setup(
        name="a script of composer",
        programs=("php", "composer", "phpunit"),
        files=PHP | {"composer.json": '{"name": "acme/pages", "scripts": {"test": "phpunit"}}\n'},
        command="composer test",
        edit=PHP_MENDED,
        failing="tests/PagesTest.php::PagesTest > testFull",
    ),
    Setup(
        name="minitest",
        programs=("ruby", "rake"),
        files={"Rakefile": RAKEFILE, "lib/pages.rb": RUBY, "test/pages_test.rb": MINITEST},
        command="rake test",
        edit=RUBY_MENDED,
        failing="test/pages_test.rb::PagesTest > test_full",
    ),
    Setup(
        name="RSpec",
        programs=("ruby", "rspec"),
        files={".rspec": "--require spec_helper\n", "spec/spec_helper.rb": '$:.unshift "lib"\n'}
        | {"lib/pages.rb": RUBY, "spec/pages_spec.rb": SPEC},
        command="rspec",
        edit=RUBY_MENDED,
        failing="spec/pages_spec.rb::pages counts full pages",
    ),
    Setup(
        name="CMake",
        programs=("cmake", "cc"),
        files={"CMakeLists.txt": CMAKE, "tests/full.c": C_TEST % 4, "tests/part.c": C_TEST % 3}
        | {"pages.c": "int pages(int n, int size) {\n    return n / size + 1;\n}\n"},
        command="cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure",
        edit=("pages.c", "n / size + 1", "(n + size - 1) / size"),
        failing="full",
    ),
    Setup(
        name="Meson",
        programs=("meson", "ninja", "cc"),
        files={"meson.build": MESON, "tests/full.c": C_TEST % 4, "tests/part.c": C_TEST % 3}
        | {"pages.c": "int pages(int n, int size) {\n    return n / size + 1;\n}\n"},
        command="meson setup build && meson test -C build",
        edit=("pages.c", "n / size + 1", "(n + size - 1) / size"),
        failing="pages::pages:full",
    ),
    Setup(
        name="Maven",
        programs=("mvn",),
        files={"pom.xml": POM, "src/main/java/acme/Pages.java": JAVA}
        | {"src/test/java/acme/PagesTest.java": "package acme;\n\nclass PagesTest {}\n"},
        command="mvn -B test",
        edit=("src/main/java/acme/Pages.java", *JAVA_MENDED),
        failing="acme.PagesTest::full",
        answers=SUREFIRE.format(folder="target/surefire-reports", file="src/main/java/acme/Pages.java"),
    ),
    Setup(
        name="Gradle as its init lays it",
        programs=("java",),
        files={"settings.gradle.kts": 'rootProject.name = "pages"\ninclude("app")\n'}
        | {"app/build.gradle.kts": "plugins { java }\n", "app/src/main/java/acme/Pages.java": JAVA}
        | {"app/src/test/java/acme/PagesTest.java": "package acme;\n\nclass PagesTest {}\n"}
        | {"gradlew": "#!/bin/sh\nexec java\n"},
        command="./gradlew --no-daemon test",
        edit=("app/src/main/java/acme/Pages.java", *JAVA_MENDED),
        failing="acme.PagesTest::full",
        answers=SUREFIRE.format(
            folder="app/build/test-results/test", file="app/src/main/java/acme/Pages.java"
        ),
    ),
    Setup(
        name=".NET",
        programs=("dotnet",),
        files={"Pages.sln": "\n", "Pages/Pages.cs": JAVA.replace("package acme;\n\n", "")}
        | {"Pages.Tests/Pages.Tests.csproj": '<Project Sdk="Microsoft.NET.Sdk"/>\n'}
        | {"Pages.Tests/PagesTests.cs": "class PagesTests {}\n"},
        command="dotnet test",
        edit=("Pages/Pages.cs", *JAVA_MENDED),
        failing="",
        answers=TELLS.format(
            "Pages/Pages.cs",
            "echo 'Failed!  - Failed:     1, Passed:     1, Skipped:     0, Total:     2, Duration: 41 ms'",
            "echo 'Passed!  - Failed:     0, Passed:     2, Skipped:     0, Total:     2, Duration: 39 ms'",
        ),
    ),
    Setup(
        name="mix",
        programs=("mix",),
        files={"mix.exs": "defmodule Pages.MixProject do\nend\n", "test/pages_test.exs": "\n"}
        | {"lib/pages.ex": "defmodule Pages do\n  def pages(n, size), do: div(n, size + 1)\nend\n"},
        command="mix test",
        edit=("lib/pages.ex", "div(n, size + 1)", "div(n + size - 1, size)"),
        failing="",
        answers=TELLS.format(
            "lib/pages.ex", "echo '2 tests, 1 failure'", "echo '1 doctest, 1 test, 0 failures'"
        ),
    ),
    Setup(
        name="Swift",
        programs=("swift",),
        files={"Package.swift": "// swift-tools-version: 5.9\n", "Tests/PagesTests/PagesTests.swift": "\n"}
        | {"Sources/Pages/Pages.swift": "func pages(n: Int, size: Int) -> Int {\n  n / size + 1\n}\n"},
        command="swift test",
        edit=("Sources/Pages/Pages.swift", *JAVA_MENDED),
        failing="",
        answers=TELLS.format(
            "Sources/Pages/Pages.swift",
            "printf '\\t Executed 2 tests, with 1 failure (0 unexpected) in 0.002 (0.002) seconds\\n'",
            "printf '\\t Executed 2 tests, with 0 failures (0 unexpected) in 0.002 (0.002) seconds\\n'",
        ),
    ),
    *(
        Setup(
            name=f"a recipe of {program}",
            programs=(program,),
            files={name: recipe, "pages.sh": "pages() {\n  echo $(($1 / $2 + 1)) # size + 1\n}\n"},
            command=f"{program} test",
            edit=("pages.sh", "$1 / $2 + 1)) # size + 1", "($1 + $2 - 1) / $2))"),
            failing="full",
            answers=TELLS.format(
                "pages.sh",
                "printf '1..2\\nnot ok 1 - full\\nok 2 - part\\n'",
                "printf '1..2\\nok 1 - full\\nok 2 - part\\n'",
            ),
        )
        for program, name, recipe in (
            ("just", "justfile", "default: test\n\ntest:\n    bats tests\n"),
            ("task", "Taskfile.yml", "version: '3'\n\ntasks:\n  test:\n    cmds:\n      - bats tests\n"),
        )
    ),
]


def provide(setup: Setup, place: Path) -> dict[str, str]:
    """Return the variables under which the programs of a set-up are found; skip where one is missing."""
    if setup.answers:
        place.mkdir()
        program = place / setup.programs[-1]
        program.write_text(f"#!/bin/sh\n{setup.answers}")
        program.chmod(0o755)
        return {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    if lacking := [name for name in setup.programs if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    return {}


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_a_right_fix_passes_by_tests_that_are_counted(
    setup: Setup, new_repo: NewRepo, tmp_path: Path
) -> None:
    env = provide(setup, tmp_path / "programs")
    repo = new_repo(setup.files)
    for name in {"gradlew"} & setup.files.keys():
        (repo.root / name).chmod(0o755)
        repo.commit()
    assert f"  {setup.command}\n" in repo.run("verify", "--dry-run", env=env).out
    turns = (*play.edit(*setup.edit), play.submit(setup.edit[0]))
    script = [play.role("implementer", *turns), play.verified("ev-0002")]
    done = repo.task(play.TEXT, "--json", script=script, env=env)
    left = {*done.json["caveats"]} - {"unproved", "not_all_tried"}  # two tests leave much open
    assert (done.code in (0, 4), left) == (True, {*setup.chance}), done.err + done.out
    red, green, *_ = repo.evidence()
    assert (red["tests"]["passed"], red["tests"]["failed"], green["tests"]["passed"]) == (1, 1, 2)
    assert done.json["proof"][0]["tests"] == [setup.failing or "tests"]


DJANGO = {
    "manage.py": """import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site1.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
""",
    "site1/__init__.py": "",
    "site1/settings.py": """SECRET_KEY = "x" * 50
INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
""",
    "shop/__init__.py": "",
    "shop/pages.py": "def pages(n, size):\n    return n // size + 1\n",
}
DJANGO_TESTS = """from django.test import SimpleTestCase

from shop.pages import pages


class PagesTest(SimpleTestCase):
    def test_full(self):
        self.assertEqual(pages(4, 2), 2)

    def test_part(self):
        self.assertEqual(pages(3, 2), 2)
"""


@pytest.mark.parametrize(
    ("place", "files", "module"),
    [
        ("", {"shop/tests.py": DJANGO_TESTS}, "shop.tests"),
        (
            "backend/",
            {"shop/tests/__init__.py": "", "shop/tests/test_pages.py": DJANGO_TESTS},
            "shop.tests.test_pages",
        ),
    ],
    ids=["a module", "a package in a folder below"],
)
def test_the_tests_of_django_run_by_its_own_settings(
    new_repo: NewRepo, place: str, files: dict[str, str], module: str
) -> None:
    pytest.importorskip("django")
    repo = new_repo({f"{place}{name}": text for name, text in (DJANGO | files).items()})
    script = repo.root / ".venv/bin/python"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    repo.write({".gitignore": ".venv/\n"}).commit()
    path = f"{place}shop/pages.py"
    turns = (*play.edit(path, "n // size + 1", "-(-n // size)"), play.submit(path))
    script_of_all = [play.role("implementer", *turns), play.verified("ev-0002")]
    done = repo.task(play.TEXT, "--json", script=script_of_all)
    assert (done.code, done.json["caveats"]) == (0, []), done.err + done.out
    assert done.json["proof"][0]["tests"] == [f"{module}.PagesTest.test_full"]
