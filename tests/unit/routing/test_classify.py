from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentflow.core.errors import ConfigError
from agentflow.core.routing import ROLE_OF, Action, Requirement, RiskRule, Routing
from agentflow.core.task import Complexity, Phase
from agentflow.routing.classify import RANK, choose_higher, classify, classify_size, find_named_files
from agentflow.routing.clauses import load_table

TABLE = load_table(Routing())
STEPS = {
    "question": "explorer",
    "exploratory": "explorer",
    "research": "explorer",
    "audit": "explorer reviewer",
    "single_file": "implementer",
    "several_files": "implementer verifier",
    "default": "implementer verifier",
    "performance": "implementer verifier",
    "bug_hunt": "implementer verifier",
    "migration": "planner implementer reviewer verifier",
    "security": "planner implementer reviewer verifier",
    "refactor": "implementer reviewer verifier",
    "full": "explorer planner implementer reviewer verifier",
}
TRIVIAL, EXPLORATORY, IMPLEMENTATION, COMPLEX, RESEARCH = (
    Complexity.TRIVIAL, Complexity.EXPLORATORY, Complexity.IMPLEMENTATION, Complexity.COMPLEX,
    Complexity.RESEARCH,
)  # fmt: skip
TASKS = [
    # questions
    ("where is discount defined?", EXPLORATORY, "question", "exploratory: where"),
    ("Where is the payment gateway configured?", EXPLORATORY, "question", "exploratory: where"),
    ("why is the test suite so slow?", EXPLORATORY, "question", "exploratory: why"),
    ("explain how authentication works", EXPLORATORY, "question", "exploratory: how"),
    ("could you tell me where the config is read?", EXPLORATORY, "question", "exploratory: where"),
    ("how do I add a new command?", EXPLORATORY, "question", "implementation: add"),
    ("is the cache thread-safe?", EXPLORATORY, "question", "question: changes nothing"),
    ("Do we validate emails anywhere?", EXPLORATORY, "question", "question: changes nothing"),
    ("show me the retry logic", EXPLORATORY, "question", "question: changes nothing"),
    ("don't change anything, just explain the parser", EXPLORATORY, "question", "exploratory: explain"),
    ("any idea what breaks the build?", EXPLORATORY, "question", "exploratory: what"),
    # exploration
    ("find where the discount is computed", EXPLORATORY, "exploratory", "exploratory: find"),
    ("trace how a request reaches the handler", EXPLORATORY, "exploratory", "exploratory: trace"),
    ("list all endpoints", EXPLORATORY, "exploratory", "exploratory: changes nothing"),
    ("investigate why the build is flaky", EXPLORATORY, "exploratory", "exploratory: why"),
    ("write a report about the test coverage", EXPLORATORY, "exploratory", "exploratory: changes nothing"),
    # research
    (
        "what are the best practices for retrying HTTP requests?",
        RESEARCH,
        "research",
        "research: best practices",
    ),
    ("research best practices for rate limiting", RESEARCH, "research", "research: research"),
    ("compare httpx and aiohttp for our use case", RESEARCH, "research", "research: compare"),
    ("which library should we use for parsing TOML?", RESEARCH, "research", "research: which library"),
    # audits
    ("audit the error handling", EXPLORATORY, "audit", "audit: changes nothing"),
    ("review the error handling in src/parser.py", EXPLORATORY, "audit", "audit: changes nothing"),
    ("Can you review src/auth.py for problems?", EXPLORATORY, "audit", "audit: changes nothing"),
    ("do a security audit of the upload code", EXPLORATORY, "audit", "audit: changes nothing"),
    # failing checks
    ("fix all failing tests", IMPLEMENTATION, "default", "implementation: fix"),
    ("make the failing tests pass", IMPLEMENTATION, "default", "file count unknown"),
    ("tests/test_calc.py::CalcTest::test_add fails, fix it", IMPLEMENTATION, "default", "file count unknown"),
    # one file
    ("fix off-by-one in src/pager.py", TRIVIAL, "single_file", "names 1 file: src/pager.py"),
    ("fix calc.py so that tests/test_calc.py passes", TRIVIAL, "single_file", "names 1 file: calc.py"),
    ("add tests for pager.py", TRIVIAL, "single_file", "implementation: add"),
    ("add retry to client.py without changing authentication", TRIVIAL, "single_file", "implementation: add"),
    (
        "When the cart is empty, checkout fails. Fix it in src/cart.py. Do not touch authentication.",
        TRIVIAL,
        "single_file",
        "names 1 file: src/cart.py",
    ),
    (
        "Is it possible to cache the result? If so, do it in calc.py",
        TRIVIAL,
        "single_file",
        "names 1 file: calc.py",
    ),
    # documentation only
    ("fix a typo in the README", TRIVIAL, "single_file", "names 1 file: README"),
    ("fix the typo in src/auth/login.py", TRIVIAL, "single_file", "names 1 file: src/auth/login.py"),
    ("document the payment module", IMPLEMENTATION, "default", "file count unknown"),
    # several files, unknown number
    ("change the timeout in a.py and b.py", IMPLEMENTATION, "several_files", "names 2 files: a.py, b.py"),
    (
        "please add a --verbose flag to cli.py and document it in README.md",
        IMPLEMENTATION,
        "several_files",
        "names 2 files: cli.py, README.md",
    ),
    ("fix the pagination bug", IMPLEMENTATION, "default", "implementation: fix"),
    ("add a clamp() function with tests", IMPLEMENTATION, "default", "file count unknown"),
    ("add an endpoint that returns all orders", IMPLEMENTATION, "default", "implementation: add"),
    ("show the error message to the user when saving fails", IMPLEMENTATION, "default", "file count unknown"),
    (
        "Search results are wrong when the query has accents.",
        IMPLEMENTATION,
        "default",
        "exploratory: search",
    ),
    (
        "The pager skips the last page. It should show all items.",
        IMPLEMENTATION,
        "default",
        "file count unknown",
    ),
    ("fix the bug that the audit log is empty", IMPLEMENTATION, "default", "implementation: fix"),
    ("make it better", IMPLEMENTATION, "default", "ambiguity: vague outcome"),
    # performance and bug hunts
    ("speed up load() in src/db.py", IMPLEMENTATION, "performance", "performance"),
    ("the test suite is slow, make it faster", IMPLEMENTATION, "performance", "performance"),
    ("debug the intermittent crash in the worker", IMPLEMENTATION, "bug_hunt", "bug_hunt"),
    ("why does the export crash? fix it", IMPLEMENTATION, "bug_hunt", "exploratory: why"),
    ("I want you to look at the logs and fix what is wrong", IMPLEMENTATION, "bug_hunt", "bug_hunt"),
    # high risk
    ("rename column users.email", COMPLEX, "migration", "migration"),
    ("migrate the users table to the new schema", COMPLEX, "migration", "migration"),
    ("add a column to the orders table", COMPLEX, "migration", "migration"),
    ("add refund support to the payment service", COMPLEX, "full", "payment"),
    ("add a comment endpoint to the payment API", COMPLEX, "full", "payment"),
    ("fix the rounding in src/paymentGateway.py", COMPLEX, "full", "payment"),
    ("implement OAuth login", COMPLEX, "security", "authentication"),
    ("encrypt the tokens before they are stored", COMPLEX, "security", "encryption"),
    ("fix the SQL injection in search.py", COMPLEX, "security", "security"),
    ("remove the deprecated endpoint /v1/users", COMPLEX, "full", "breaking API"),
    ("propagate the trace id across all three services", COMPLEX, "full", "several services"),
    ("migrate the payment table", COMPLEX, "full", "payment"),
    # wide
    ("refactor the parser module", IMPLEMENTATION, "refactor", "refactor"),
    ("refactor src/parser.py to use dataclasses", IMPLEMENTATION, "refactor", "names 1 file: src/parser.py"),
    ("rewrite the whole application in Rust", COMPLEX, "full", "complex: whole application"),
    ("update all call sites of load_config", IMPLEMENTATION, "default", "implementation: update"),
    ("rename Cart to Basket across the codebase", IMPLEMENTATION, "default", "file count unknown"),
    (
        "set the timeout in a.py, b.py, c.py, d.py, e.py and f.py",
        COMPLEX,
        "full",
        "names 6 files: a.py, b.py, c.py, d.py, e.py, f.py",
    ),
]
ORDERS = """
compare the versions numerically instead of as strings
compare passwords in constant time
compare file hashes before copying
compare strings ignoring case
look up the user by email
look up the user by email instead of by name
look up translations in the cache before hitting the database
look up the hostname only once
log every request
log in users automatically after signup
log of deleted users should be kept
check that the token is not expired before using it
check for None before calling .strip()
check the return value of fork
verify the checksum after download
check for a boolean value before the boolean cast
confirm before deleting a project
find the user by id instead of by name
identify users by uuid instead of email
count words case-insensitively
count retries separately
count only business days
describe the config options in docs/config.md
list the supported formats in the README
explain in the README how to install
survey form loses answers
lookup table has wrong entries
check constraints are not enforced
find command ignores the --type flag
could you add a --verbose flag?
there is bug when user click two times on save, please repair
users complain that search is too slow
never retry on 4xx
corrige el error en login.py
list users sorted by name
list the newest posts first on the index page
list only open invoices by default
list at most 20 results per page
list the remaining items in the tooltip, not only the number
list view for archived orders
trace id in every log line
search bar on the home page
look up config in XDG_CONFIG_HOME before the home directory
look for the config file in the parent folders too
find the nearest store by postal code
identify duplicate uploads by their hash
determine the locale from the Accept-Language header
count failed logins and lock the account after five
describe each option in --help
describe the new flag in the man page
tell the user when the disk is full
when I pass an empty list to average() I get ZeroDivisionError, should return None
could we have shorter commit hashes in the changelog?
would you mind renaming `foo` to `bar` in utils.py?
how about a --dry-run flag for the sync command?
can we get coloured output?
check whether the cache is stale and refresh it if so
"""
READS = """
research|compare redis and memcached
research|compare our approach with what django does
research|compare X and Y before I choose one
research|look up how the oauth device flow works
research|look up the current best practice for password hashing
research|best practices for structured logging in python
research|pros and cons of using an ORM
question|where is the log of failed requests written?
question|what is the log of the last run?
question|I don't understand how the scheduler picks jobs
question|could you explain me how the cache works
question|warum schlägt der Test fehl?
question|pourquoi le test échoue ?
question|explain the example in the README
exploratory|find where the timeout is set before the retry
exploratory|find all callers of save_order before renaming it
exploratory|find memory leaks in the importer
exploratory|check whether the token is verified before use
exploratory|verify that the docs match the code
exploratory|log of what happens at startup
exploratory|list the open TODOs
exploratory|list functions sorted by length
exploratory|analyze the performance of the import and write down your findings
question|show the usages of parse_date
question|show the call graph of main
question|I wonder whether we still need the shim for Python 2
question|can we get an overview of the endpoints?
question|help me understand the importer
question|give me a list of all feature flags
question|how about the tests, do they pass?
audit|check src/auth.py for vulnerabilities
"""


@pytest.mark.parametrize(
    ("text", "complexity", "route", "reason"), TASKS, ids=[task[0][:40] for task in TASKS]
)
def test_the_words_of_a_task_give_its_class_and_route(
    text: str, complexity: Complexity, route: str, reason: str
) -> None:
    found = classify(text, TABLE)
    assert (found.complexity, found.route) == (complexity, route)
    assert reason in found.reasons
    assert [ROLE_OF[phase] for phase in found.steps] == STEPS[route].split()


@pytest.mark.parametrize(
    ("route", "text"),
    [
        ("question", "I wonder why the tests are slow"),
        ("question", "wher is the retry logic"),
        ("question", "tell me about the project structure"),
        ("question", "do the tests pass?"),
        ("question", "anything weird in the parser?"),
        ("default", "Kannst du bitte den Fehler in der Suche beheben?"),
        ("default", "Peux-tu corriger le test?"),
        ("default", "ValueError: list index out of range when I call top([])"),
        ("default", "when I run the command in an empty folder it crashes"),
        ("exploratory", "scan the repository for licence headers"),
        ("audit", "security audit of the upload handler"),
        ("audit", "check my code for bugs"),
        ("performance", "startup takes forever, please speed it up"),
        ("refactor", "split utils.py into two modules"),
        ("security", "hash passwords with argon2"),
        ("security", "store passwords with argon2 instead of md5"),
        ("security", "add two-factor login"),
        ("security", "allow admins to impersonate users"),
        ("migration", "move the database from sqlite to postgres"),
        ("migration", "switch the database from MySQL to PostgreSQL"),
        ("full", "accept PayPal as well"),
        ("single_file", "write a docstring for each public function in api.py"),
        ("single_file", "update all callers of the functions in api.py"),
        ("default", "log how long each request takes"),
        ("single_file", "fix the off by one in dates.py, don't touch api.py"),
        ("single_file", "change the port in config.py but leave server.py alone"),
        ("single_file", "make calc.py round up without changing money.py"),
        ("default", "fix this:\n```\n  File a.py, line 1\n  File b.py, line 2\n```\n"),
    ],
)
def test_everyday_words_take_the_route_that_a_person_expects(route: str, text: str) -> None:
    assert classify(text, TABLE).route == route


@pytest.mark.parametrize("filler", [", ", "? ", "fix a.py. "], ids=repr)
def test_a_long_text_is_classified_by_its_beginning_and_its_end_and_at_once(filler: str) -> None:
    """Of two texts that are longer than what is read of them, the longer one takes no longer."""
    long, longer = (filler * (size // len(filler)) for size in (16_000, 100_000))
    began = process_time()
    assert classify(f"rename a column\n{long}", TABLE).route == "migration"
    once, began, pasted = process_time() - began, process_time(), longer
    assert classify(f"rename a column\n{pasted}", TABLE).route == "migration"
    assert classify(f"{pasted}\nrename a column", TABLE).route == "migration"
    assert classify(f"```\n{pasted}\n```\nfix a.py", TABLE).route == "single_file"
    assert process_time() - began < 9 * once + 0.5


@pytest.mark.parametrize("word", ["and ", "ok ", "pls ", "so ", "a, ", "why? ", "and then "])
def test_a_text_of_a_thousand_beginnings_is_classified_at_once(word: str) -> None:
    took = []
    for _ in range(3):
        began = process_time()
        classify(word * (8_000 // len(word)), TABLE)
        took.append(process_time() - began)
    assert min(took) < 0.3  # a tenth on a quiet machine


@pytest.mark.parametrize(
    ("text", "complexity", "route"),
    [
        ("rename load to read_all everywhere", IMPLEMENTATION, "default"),
        ("replace all calls of foo() by bar()", IMPLEMENTATION, "default"),
        ("rewrite the greeting", IMPLEMENTATION, "refactor"),
        ("rewrite all functions in calc.py", IMPLEMENTATION, "refactor"),
        ("rewrite all modules on asyncio", COMPLEX, "full"),
        ("write the parser from scratch", COMPLEX, "full"),
        (
            "in a.py, mention it in README.md, CHANGELOG.md, docs/a.md, docs/b.md and tests/test_a.py",
            IMPLEMENTATION,
            "several_files",
        ),
    ],
)
def test_one_word_of_width_makes_nothing_complex_and_only_product_files_count(
    text: str, complexity: Complexity, route: str
) -> None:
    found = classify(text, TABLE)
    assert (found.complexity, found.route) == (complexity, route)
    assert (Requirement.REVIEW in found.requires) == (Phase.REVIEW in found.steps)


def test_every_shipped_route_is_taken_by_some_task() -> None:
    assert {route for _, _, route, _ in TASKS} == set(TABLE.routing.routes) == set(STEPS)


@pytest.mark.parametrize(
    ("files", "product", "complexity"),
    [
        (0, 0, TRIVIAL),
        (1, 1, TRIVIAL),
        (2, 1, IMPLEMENTATION),
        (9, 5, IMPLEMENTATION),
        (6, 6, COMPLEX),
        (60, 60, COMPLEX),
    ],
)
def test_the_number_of_files_gives_the_class(files: int, product: int, complexity: Complexity) -> None:
    assert classify_size(files, product) is complexity


def test_of_two_classes_the_higher_counts() -> None:
    for place, low in enumerate(RANK):
        for high in RANK[place:]:
            assert choose_higher(low, high) is choose_higher(high, low) is high


@pytest.mark.parametrize("rule", TABLE.routing.complex_when, ids=lambda rule: rule.reason)
def test_every_rule_of_high_risk_forces_the_class_for_one_file_and_gives_its_reason(rule: RiskRule) -> None:
    for phrase in rule.words:
        spelled = " ".join(part.split("|")[0].rstrip("*") for part in phrase.replace(" ... ", " ").split())
        found = classify(f"change this in a.py: {spelled}", TABLE)
        assert (found.complexity, found.forced) == (COMPLEX, True), phrase
        assert rule.reason in found.reasons
        assert Requirement.REVIEW in found.requires


def test_what_must_not_be_touched_is_no_risk() -> None:
    for limit in ("Do not change the payment code", "Never touch encryption", "Avoid a migration"):
        assert not classify(f"Fix the title in page.py. {limit}.", TABLE).forced


def test_a_risk_beside_a_comment_is_still_one() -> None:
    assert classify("fix the typo in docs and change the password hashing", TABLE).forced


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("in ./src/a.py and src/a.py:12", ("src/a.py",)),
        ("see https://example.org/x.html and `lib/b.ts`", ("lib/b.ts",)),
        ("version 3.11, e.g. node.js, users.email, response.json()", ()),
        ("README, Makefile and docs/README.md", ("docs/README.md", "README", "Makefile")),
        ("test_a.py fails because of a.py", ("a.py",)),
        ("extend test_a.py", ("test_a.py",)),
    ],
)
def test_files_are_recognised_in_a_text(text: str, files: tuple[str, ...]) -> None:
    assert find_named_files(text, TABLE) == files


AMBIGUITY = [
    ("make it better", 6, Action.ASK),
    ("fix off-by-one in src/pager.py", 0, Action.PROCEED),
    ("fix all failing tests", 0, Action.PROCEED),
    ("make the failing tests pass", 0, Action.PROCEED),
    ("fix this", 4, Action.ASSUME),
    ("fix it", 4, Action.ASSUME),
    ("do it", 4, Action.ASSUME),
    ("fix the bug", 3, Action.ASSUME),
    ("fix the build", 0, Action.PROCEED),
    ("add tests", 3, Action.ASSUME),
    ("improve performance", 5, Action.ASK),
    ("clean up the code", 5, Action.ASK),
    ("fix everything", 5, Action.ASK),
    ("improve everything", 7, Action.SPLIT),
    ("make everything better and fix it", 10, Action.SPLIT),
    ("make the app work properly, as usual", 6, Action.ASK),
    ("improve the error message in parser.py", 2, Action.PROCEED),
    ("improve `parse` or something like that, and clean up everything", 9, Action.ASK),
    ("rename parse_config to read_config", 0, Action.PROCEED),
    ("fix the pagination bug", 0, Action.PROCEED),
    ("add a CSV export", 0, Action.PROCEED),
    ("add a QZX export", 1, Action.PROCEED),
    ("add a retry to the client and test the timeout", 2, Action.PROCEED),
    ("turn it into a daemon or something like that", 4, Action.ASSUME),
    ("use either a queue or a cache in worker.py", 3, Action.PROCEED),
    ("the login page should look nicer", 2, Action.PROCEED),
    ("handle errors like before in api.py", 1, Action.PROCEED),
    ("where is discount defined?", 0, Action.PROCEED),
    ("explain this", 4, Action.ASSUME),
    ("make the whole thing more robust somehow", 10, Action.SPLIT),
    ("update them", 4, Action.ASSUME),
]


@pytest.mark.parametrize(("text", "score", "action"), AMBIGUITY, ids=[row[0] for row in AMBIGUITY])
def test_the_ambiguity_of_a_text_is_its_score(text: str, score: int, action: Action) -> None:
    found = classify(text, TABLE)
    assert (found.score, found.action) == (score, action), found.reasons


def test_settings_add_rules_and_replace_a_route_by_name() -> None:
    own = Routing(
        complex_when=(RiskRule(words=("ledger",), reason="payment"),),
        keywords={COMPLEX: ("kernel",)},
        requires={IMPLEMENTATION: (Requirement.REVIEW,)},
        routes={"audit": (Phase.REVIEW,)},
    )
    table = load_table(own)
    assert classify("fix the ledger in a.py", table).reasons[0] == "payment"
    assert classify("fix the payment in a.py", table).forced
    assert classify("change the kernel", table).complexity is COMPLEX
    assert Phase.REVIEW in classify("fix the pagination bug", table).steps
    assert classify("audit the parser", table).steps == (Phase.REVIEW,)
    assert classify("fix a.py", table).steps == (Phase.IMPLEMENTATION,)


def test_settings_cannot_take_a_requirement_away() -> None:
    own = Routing(requires={COMPLEX: ()}, routes={"full": (Phase.IMPLEMENTATION,)})
    found = classify("add refunds to the payment service", load_table(own))
    assert found.steps == (Phase.IMPLEMENTATION, Phase.REVIEW)


def test_a_rule_names_a_route_that_exists() -> None:
    own = Routing(complex_when=(RiskRule(words=("x",), reason="r", route="nowhere"),))
    with pytest.raises(ConfigError, match="there is no route nowhere"):
        load_table(own)


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_has_a_class_and_the_same_one_each_time(text: str) -> None:
    found = classify(text, TABLE)
    assert found == classify(text, TABLE)
    assert found.steps == TABLE.list_steps(found.route, found.complexity) != ()
    reads = found.complexity in (EXPLORATORY, RESEARCH)
    assert (Phase.IMPLEMENTATION in found.steps) is not reads


@pytest.mark.parametrize("text", ORDERS.strip().splitlines())
def test_a_verb_of_reading_that_says_what_code_does_orders_a_change(text: str) -> None:
    found = classify(text, TABLE)
    assert Phase.IMPLEMENTATION in found.steps, found


@pytest.mark.parametrize("line", READS.strip().splitlines())
def test_the_same_verbs_ask_where_they_name_no_way_of_doing(line: str) -> None:
    route, text = line.split("|")
    found = classify(text, TABLE)
    assert (found.route, Phase.IMPLEMENTATION in found.steps) == (route, False), found


ADDRESSED = """
reads|how does the cache work? write me a short report
reads|why do the tests fail on Windows? write down what you find
reads|where is the timeout read? give me a short answer
reads|how are discounts computed? please update me on what you see
reads|update me on the state of the importer
reads|fill me in on calc.py
reads|keep me updated on the tests
reads|update us on how the migration scripts are used
reads|write me a short report on how retries work
reads|write me a summary of the parser module
reads|write down how the scheduler picks jobs
reads|write down where the configuration is read and by whom
reads|write up what you find about the flaky tests
reads|look at the importer and write down what you find
reads|look at the logs and tell me what is wrong
reads|find out how sessions expire and write me a paragraph about it
reads|explain the retry logic and make a list of its callers
reads|explain how the lexer works; add an example to your answer
reads|what does parse() return? show an example
reads|what does parse() return? use simple words
reads|how does the worker pool stop? keep it short
reads|how does the worker pool stop? answer in two sentences
reads|why is the build slow? don't fix it yet, just tell me
reads|make me a list of all feature flags
reads|make me a table of the exit codes and what they mean
reads|draw me a diagram of the request flow
reads|sketch how a request travels through the middleware
reads|create a summary of the last ten commits
reads|create an overview of the modules for me
reads|prepare a short summary of the open TODOs
reads|draft me an explanation of the cache for new colleagues
reads|show me the code that writes the log
reads|show me how to add a command
reads|give me the callers of save_order
reads|give me three reasons why the build is slow
reads|give an overview of the storage layer
reads|point me to the place where tokens are verified
reads|let me know which tests touch the network
reads|let us know whether the cache is used at all
reads|help me find the code that sends mails
reads|walk through the startup with me
reads|print the list of endpoints for me
reads|return a list of the modules that import requests, as your answer
reads|send me a summary of how errors are handled
reads|summarise what src/pager.py does
reads|explain README.md to me
reads|explain the exit codes in README.md
reads|list the exit codes mentioned in README.md
reads|describe what src/cli.py does in three sentences
reads|what would you change in parser.py? write me your suggestions
reads|which functions have no tests? make a list
reads|I need to know how the tokens are stored
changes|sharpen test_add: check the message
changes|parametrise test_add; verify each case
changes|explain the discount by a comment in calc.py
changes|explain each function by docstrings in calc.py
changes|explain what add() does in a comment in calc.py
changes|explain the retry logic with a docstring in client.py
changes|explain the exit codes by a table in README.md
changes|describe the cache with a comment above get() in cache.py
changes|document the exit codes in the README
changes|write the exit codes down in README.md
changes|write down the exit codes in README.md
changes|put an explanation of the cache into docs/cache.md
changes|put a short summary of the modules in docs/overview.md
changes|write a summary of the modules to docs/overview.md
changes|write me a docstring for add() in calc.py
changes|add a short explanation of the flags to README.md
changes|show the exit codes in a table in docs/cli.md
changes|explain the flags in a new section of README.md
changes|explain in docs/cache.md how the cache expires
changes|summarise the changes of this week in CHANGELOG.md
changes|list the supported formats in docs/formats.md
changes|answer the open question in docs/faq.md
changes|explain the environment variables in the help text of cli.py
changes|make a list of the supported formats in docs/formats.md
changes|how do retries work? explain it in docs/retries.md
changes|where is the timeout read? write it into docs/config.md
changes|give README.md a section about the exit codes
changes|write me a script that removes old logs
changes|write me a test for the pager
changes|make me a command that lists the users
changes|create a summary page for the admin
changes|give the CLI a --json option
changes|update the report of the monthly totals
changes|send me a mail when the job fails
changes|let me filter the list by date
changes|show the user a summary after checkout
changes|print a summary at the end of the import
changes|write the report as CSV too
changes|write log lines as JSON
changes|return a list instead of a tuple from callers()
changes|give every test a docstring
changes|add a comment to add() that explains the rounding
changes|update the docs of the importer
changes|show me the total in the cart view as well
reads|write a report about the test coverage
reads|write me a summary of the rules in CONTRIBUTING.md
reads|explain the comment in calc.py
reads|explain the bug mentioned in a comment in calc.py
reads|explain how requests get from a.py to b.py
reads|summarise the rules in CONTRIBUTING.md
reads|get me an overview of the tests
changes|write a report on the coverage to docs/coverage.md
changes|write an explanation of the cache into the docstring of get()
changes|put your suggestions into docs/ideas.md
changes|write me a report generator
changes|make the list of users sortable
changes|let me know when a build fails by mail
changes|use simple terms in the error messages
changes|fix the parser and write me a short report
changes|fix the parser, then update me on what you changed
changes|fix the bug and explain it in a comment
changes|write down each request in a log file
changes|keep it short: rename calculate_total to total in cart.py
"""


@pytest.mark.parametrize("line", ADDRESSED.strip().splitlines())
def test_what_is_asked_for_in_the_answer_changes_nothing_and_text_of_a_file_does(line: str) -> None:
    expected, text = line.split("|")
    found = classify(text, TABLE)
    assert (Phase.IMPLEMENTATION in found.steps) is (expected == "changes"), found
