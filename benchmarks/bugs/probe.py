"""`python probe.py MODULE.py PROBES.json`: print what expressions come to in a module, as JSON."""

import copy
import itertools
import json
import runpy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def each(function: Callable[..., Any], *pools: Iterable[Any]) -> list[str]:
    """Return what a function does with every combination of values."""
    return [_outcome(function, values) for values in itertools.product(*pools)]


def _outcome(function: Callable[..., Any], values: tuple[Any, ...]) -> str:
    try:
        return repr(function(*copy.deepcopy(values)))
    except Exception as error:  # noqa: BLE001  # whatever a mended module raises is compared
        return type(error).__name__


def main() -> None:
    names = {**runpy.run_path(sys.argv[1]), "each": each}
    probes = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    print(json.dumps([_outcome(lambda text=text: eval(text, names), ()) for text in probes]))  # noqa: S307


if __name__ == "__main__":
    main()
