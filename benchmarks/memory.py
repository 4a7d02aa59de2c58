"""What memory finds again: planted facts among 200 tasks, asked for in other words; what a search costs."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from agentflow.memory.entry import EntryKind, MemoryEntry
from agentflow.memory.file import MemoryFile
from agentflow.memory.meaning import CODE_BYTES, Meaning, load_static_model
from benchmarks.report import Row, alone, at_least, at_most

TASKS = 200
SIZES = (1_000, 10_000, 100_000)
SEARCHES = 40
FOUND_AMONG = 5
WORDS_MS, FUSED_MS = 10, 30
_CHUNK = 1_000
_KINDS = (EntryKind.TASK, EntryKind.MESSAGE)
"""Half of what is remembered; a message has no code."""
_GOAL = 18
FACTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "amounts are rounded half up to cents before tax is added",
        "how are amounts rounded before tax?",
        "which rounding do we use for prices with tax",
        "a total is off by a penny",
    ),
    (
        "the integration tests need a Redis server on port 6390",
        "what port does Redis need for integration tests?",
        "integration suite cannot connect to redis",
        "tests want a cache daemon running",
    ),
    (
        "dates from the partner feed are in local time of Lisbon, not UTC",
        "are the dates of the partner feed UTC?",
        "timezone of partner data",
        "timestamps imported from the supplier are an hour late",
    ),
    (
        "the login form sends the password field as pwd",
        "what is the password field of the login form called?",
        "sign in posts pwd",
        "authentication fails since a parameter has another name",
    ),
    (
        "uploads above 8 MB are cut by the proxy without an error",
        "why are uploads cut by the proxy?",
        "large upload arrives incomplete",
        "big files are truncated on their way to us",
    ),
    (
        "customer numbers begin at 10000 because smaller ones are test accounts",
        "from which number do customer accounts begin?",
        "customers below 10000",
        "ids of demo users are in the small range",
    ),
    (
        "the nightly export locks the orders table for twenty minutes",
        "what locks the orders table?",
        "nightly job blocks orders",
        "writing a purchase hangs around midnight",
    ),
    (
        "search ignores accents since the index folds them",
        "does search ignore accents?",
        "index and accented letters",
        "finding names with umlauts and diacritics",
    ),
    (
        "the mail templates must keep a blank line after the greeting",
        "blank line in mail templates",
        "what must templates of mails keep after the greeting?",
        "letters to users look wrong without an empty row",
    ),
    (
        "pagination counts from zero in the API and from one on pages",
        "does pagination in the API count from zero?",
        "first page number api",
        "the list skips the first results by one",
    ),
    (
        "the currency table is loaded once and needs a restart to change",
        "when is the currency table loaded?",
        "change of currencies needs restart",
        "new exchange rates are not picked up",
    ),
    (
        "retries of payments use the idempotency key of the first attempt",
        "which idempotency key do payment retries use?",
        "retrying a payment",
        "a customer was charged twice",
    ),
    (
        "the Windows build needs long paths switched on in git",
        "what does the Windows build need in git?",
        "long paths windows",
        "checkout fails as a file name is over the limit",
    ),
    (
        "coupons are applied before shipping and after volume discounts",
        "are coupons applied before shipping?",
        "order of coupon and discount",
        "vouchers reduce the delivery fee by mistake",
    ),
    (
        "the parser treats a tab as eight columns",
        "how many columns is a tab for the parser?",
        "tab width in parser",
        "wrong position of an error in indented input",
    ),
    (
        "session cookies are SameSite strict so the bank redirect loses them",
        "why does the bank redirect lose cookies?",
        "samesite session cookie",
        "people are logged out on return from paying",
    ),
    (
        "images are resized by a queue worker that must be restarted after upgrades",
        "who resizes images?",
        "restart of queue worker after upgrade",
        "thumbnails are missing since the deployment",
    ),
    (
        "the audit log may never be truncated, it is copied to cold storage each month",
        "may the audit log be truncated?",
        "where is the audit log copied",
        "deleting old records of who did what",
    ),
    (
        "config keys are case sensitive except under the legacy section",
        "are config keys case sensitive?",
        "legacy section keys",
        "a setting in capitals has no effect",
    ),
    (
        "floating point weights are compared with a tolerance of 1e-6",
        "what tolerance have weights?",
        "comparing floating point weights",
        "equality of decimals fails by a tiny difference",
    ),
    (
        "the mobile client sends snake case names, the web client camel case",
        "which client sends snake case?",
        "camel case web client names",
        "fields from the phone app are not recognised",
    ),
    (
        "deleted users keep their invoices under the name archived",
        "what happens to invoices of deleted users?",
        "archived invoices",
        "bills of somebody who left must stay",
    ),
    (
        "feature flags are cached for ninety seconds in each process",
        "how long are feature flags cached?",
        "flag cache seconds",
        "turning a toggle off takes a while to show",
    ),
    (
        "the geocoder allows five requests a second",
        "how many requests does the geocoder allow?",
        "geocoder limit",
        "looking up addresses is throttled",
    ),
    (
        "migrations run in a transaction except those that add an index",
        "do migrations run in a transaction?",
        "migration that adds an index",
        "schema change cannot be rolled back",
    ),
    (
        "the stock counter can go negative while a return is booked",
        "can the stock counter go negative?",
        "negative stock on return",
        "inventory below zero when goods come back",
    ),
    (
        "PDF invoices embed the font Carlito because Calibri may not be shipped",
        "which font do PDF invoices embed?",
        "calibri in pdf",
        "text of printed bills looks different",
    ),
    (
        "webhooks are signed with the secret of the shop, not of the account",
        "with which secret are webhooks signed?",
        "webhook signature secret",
        "verification of callbacks fails",
    ),
    (
        "the scheduler skips a job that still runs from the last time",
        "does the scheduler skip running jobs?",
        "job still runs",
        "a periodic task did not start at its time",
    ),
    (
        "unit prices have four decimals, totals two",
        "how many decimals have unit prices?",
        "decimals of totals",
        "precision of a single item's cost",
    ),
    (
        "the CSV import expects a semicolon when the locale is German",
        "what separator does the CSV import expect in German?",
        "csv semicolon",
        "spreadsheet is read as a single column",
    ),
    (
        "health checks must not touch the database",
        "may health checks touch the database?",
        "database in health check",
        "liveness probe makes load on storage",
    ),
    (
        "names of branches with a slash break the preview server",
        "what breaks the preview server?",
        "branch names with slash",
        "staging deployment of a topic fails",
    ),
    (
        "the rate limiter counts per token and not per address",
        "does the rate limiter count per token?",
        "limiter counts addresses",
        "throttling hits all users behind one network",
    ),
    (
        "translations fall back to English only in the web client",
        "where do translations fall back to English?",
        "fallback of translations",
        "missing language strings appear as keys",
    ),
    (
        "the lock file is removed by a trap, which kill -9 does not run",
        "who removes the lock file?",
        "lock file after kill",
        "the program says another instance is running after a crash",
    ),
    (
        "checksums are computed over the compressed bytes",
        "over which bytes are checksums computed?",
        "checksum compressed",
        "digest of an archive does not match its content",
    ),
)
"""What was learnt in a task, and three ways of asking for it: in its words, in some of them, in others."""
_VERBS = ("fix", "add", "rename", "speed up", "document", "refactor", "remove", "log", "validate", "split")
_THINGS = (
    *("the order form", "the tax module", "the import of products", "the login page", "the search index"),
    *("the payment client", "the report writer", "the user table", "the API of carts", "the settings file"),
    *("the mail queue", "the cache of prices", "the worker pool", "the export job", "the shipping rules"),
)
_DETAILS = (
    *("a test failed twice", "the type checker wanted a cast", "the first patch broke two callers"),
    *("only the docs changed", "the linter asked for shorter lines", "a fixture was out of date"),
)


def rows(rounds: int) -> Iterator[Row]:
    """Yield how often a fact is found, then what a search takes and the file holds by its size."""
    with tempfile.TemporaryDirectory() as scratch:
        yield from recall_rows(Path(scratch))
        for size in SIZES:
            yield from _time_searches(Path(scratch), size, rounds)


def recall_rows(folder: Path) -> Iterator[Row]:
    """Yield the share of facts that are among the first five, by words alone and fused."""
    for title, load in (("words", lambda: None), ("words and meaning", load_static_model)):
        if title == "words and meaning" and load() is None:
            continue  # the extra is not installed
        with MemoryFile(folder / f"{title}.sqlite", load) as memory:
            memory.add(plant())
            shares = [_recall(memory, way) for way in (1, 2, 3)]
        for way, share in zip(("in its words", "in some of them", "in others"), shares, strict=True):
            yield alone(_GOAL, f"recall@5 by {title}, asked {way}", [share])
        floor = at_least(0.69 if title == "words" else 0.81)
        yield alone(_GOAL, f"recall@5 by {title}, all", [sum(shares) / len(shares)], floor)


def plant() -> Iterator[MemoryEntry]:
    """Yield the tasks, a fact in each of 37 places among them."""
    chance = random.Random(37)  # noqa: S311  # the same each time
    places = dict(zip(sorted(chance.sample(range(TASKS), len(FACTS))), FACTS, strict=True))
    for number in range(TASKS):
        text = f"{chance.choice(_VERBS)} {chance.choice(_THINGS)}\nended verified: every check passes"
        learnt = places[number][0] if number in places else chance.choice(_DETAILS)
        yield _to_entry(text, learnt, number)


def _to_entry(text: str, gist: str, number: int, kind: EntryKind = EntryKind.TASK) -> MemoryEntry:
    at = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    whole, name = f"{text}\n{gist}", str(number)
    return MemoryEntry(kind=kind, text=whole, gist=gist, at=at, by="you", key=name, task=name)


def _recall(memory: MemoryFile, way: int) -> float:
    found = (
        any(fact[0] in hit.entry.text for hit in memory.search(fact[way], FOUND_AMONG, kind=EntryKind.TASK))
        for fact in FACTS
    )
    return sum(found) / len(FACTS)


def _know_by_chance() -> Meaning:
    """Return a model with codes by chance, as the time of a search does not depend on what they say."""
    chance = random.Random(1)  # noqa: S311  # the same each time

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[chance.choice((1.0, -1.0)) for _ in range(8 * CODE_BYTES)] for _ in texts]

    return Meaning("random", 2 * _CHUNK, embed)


def _time_searches(folder: Path, size: int, rounds: int) -> Iterator[Row]:
    chance = random.Random(size)  # noqa: S311  # the same each time
    path = folder / f"{size}.sqlite"
    made = [f"{chance.choice('bdfgklmnprst')}{number:x}" for number in range(5_000)]
    weights = [1 / (place + 3) for place in range(len(made))]
    choose = partial(chance.choices, (*_VERBS, *_THINGS, *made), [*[0.02] * 25, *weights])
    meaning = _know_by_chance()
    with MemoryFile(path, lambda: meaning) as memory:
        for first in range(0, size, _CHUNK):
            memory.add(
                _to_entry(" ".join(choose(k=10)), " ".join(choose(k=15)), number, _KINDS[number % 2])
                for number in range(first, first + _CHUNK)
            )
            memory.search("codes them")
    texts = [" ".join(choose(k=12)) for _ in range(SEARCHES)]
    for title, load, limit in (("words", lambda: None, WORDS_MS), ("fused", lambda: meaning, FUSED_MS)):
        with MemoryFile(path, load) as memory:
            took = [median(_time(memory, text) for text in texts) for _ in range(rounds)]
        yield alone(_GOAL, f"ms of CPU a search, {title}, {size:,} entries", took, at_most(limit))
    yield alone(_GOAL, f"MB on disk, {size:,} entries", [path.stat().st_size / 1e6])


def _time(memory: MemoryFile, text: str) -> float:
    begin = time.process_time()
    memory.search(text, kind=EntryKind.TASK)
    return 1000 * (time.process_time() - begin)
