"""Templates to HTML: the one door to Jinja2, where every value is redacted, made visible and escaped."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from agentflow.core.evidence import summarize_evidence
from agentflow.redact import format_count, format_money, make_visible, redact_text
from agentflow.report.summary import describe_survivor
from agentflow.view.words import format_duration, format_local
from agentflow.wording import describe

_PACKAGE = Path(__file__).resolve().parent.parent
_ROOMS = ("pages", "web")


def fill_template(name: str, **values: Any) -> str:
    """Return the text of a template such as `pages/document.html`; no value in it can add markup."""
    return _environment().get_template(name).render(**values)


def to_markup(rendered: str) -> Markup:
    """Return text that `fill_template` made as a value that another template inserts as it is."""
    return Markup(rendered)  # noqa: S704  # each value in it was escaped as it was rendered


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PrefixLoader({room: FileSystemLoader(_PACKAGE / room / "templates") for room in _ROOMS}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = {
        "duration": format_duration,
        "count_of": format_count,
        "ended": summarize_evidence,
        "money": format_money,
        "local": format_local,
        "survivor": describe_survivor,
        "described": describe,
    }
    made.filters.update(filters)
    return made


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    return make_visible(redact_text(str(value)))
