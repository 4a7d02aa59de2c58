import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import agentflow
from agentflow.core.regex import LateRegex, regex


def test_an_expression_has_the_methods_of_a_compiled_one() -> None:
    word = regex(r"\w+")
    assert word.findall("two words") == word.findall("two words") == ["two", "words"]
    assert word.sub("x", "a b") == "x x"
    assert (word.pattern, regex(rb"\d").search(b"a1") is not None) == (r"\w+", True)


def test_every_expression_of_the_package_compiles() -> None:
    root = Path(agentflow.__file__).parent
    for module in walk_packages([str(root)], "agentflow."):
        if module.name not in {"agentflow.__main__", "agentflow.checks.reading_hook"}:
            import_module(module.name)
    modules = [module for name, module in sys.modules.items() if name.startswith("agentflow.")]
    late = [value for module in modules for value in vars(module).values() if isinstance(value, LateRegex)]
    assert len(late) > 100
    assert all(expression.groups >= 0 for expression in late)
