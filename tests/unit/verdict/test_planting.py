from agentflow.verdict.planting import plant_names

TEXT = '''import re


def first(items):
    """Say it."""
    return items[0]  # type: ignore


class Page:
    @property
    def number(self):
        @cache
        def inner():
            return 1

        return inner()

    def one(self): return 1


def told():
    """Nothing else."""
'''


def test_each_function_begins_with_a_name_that_is_defined_nowhere() -> None:
    files, planted = plant_names({"a.py": TEXT, "b.txt": "no ( python"}, "kq")

    assert {each.place for each in planted} == {"a.py: first", "a.py: Page.number"}
    lines = (files["a.py"] or "").splitlines()
    assert [line for line in lines if "kq" not in line] == TEXT.splitlines()
    for each in planted:
        (at,) = (at for at, line in enumerate(lines) if line.strip() == each.word)
        assert lines[at + 1].strip() in ("return items[0]  # type: ignore", "@cache")
    assert files["b.txt"] == "no ( python"
