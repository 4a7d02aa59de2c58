"""The user's settings and folders, what a repository may set for itself, and where shipped content lies."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.evidence import CheckName, Fault
from agentflow.core.messages import ContextLimits
from agentflow.core.pending import ApprovalTerms
from agentflow.core.record import Record, to_builtins
from agentflow.core.regex import regex
from agentflow.core.routing import Routing
from agentflow.frontmatter import find_line, read_yaml
from agentflow.parse import expand_home, has_null

T = TypeVar("T")
ProveRounds = Annotated[int, Meta(ge=0, le=10)]
PROJECT_FILE = ".claude/agentflow.yaml"
LEARNINGS = ".claude/learnings.md"
"""What people write down for later tasks."""
PLUGIN_MANIFEST = ".claude-plugin/plugin.json"
_OWN = (
    "a repository says checks, required, routing, limits, prove_rounds, surface and memory; "
    "all else is for your own config.yaml"
)
_NO_PROVIDER = regex(r"anthropic|bedrock|vertex|foundry|repair|script|replay|.*/.*|")
"""What `providers` cannot be about; the first have settings of their own."""
_FIRST_KEY = regex(r"[.:\[]")
_EXAMPLES = {
    "checks": "checks: {tests: python -m pytest -q}",
    "required": "required: [lint]",
    "limits": "limits: {iterations: 5, cost: 2}",
    "prove_rounds": "prove_rounds: 0",
    "routing": "routing: {keywords: {complex: [kernel]}}",
    "surface": "surface: {add: [fixtures/**]}",
    "memory": "memory: off",
}
"""How each key of a repository is written."""
ASKED_BY = "AGENTFLOW_ASKED_BY"
"""Names what else than a person at the command line gives tasks their words."""
MODEL_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
"""Any of them in the user's environment makes `anthropic` the default model."""


class Confinement(StrEnum):
    REQUIRE = "require"
    """Nothing is run."""
    ASK = "ask"
    """Somebody at a terminal is asked."""
    OFF = "off"
    """Commands run without a sandbox, even where one is available."""


class Caller(StrEnum):
    EXPLORER = "explorer"
    PLANNER = "planner"
    IMPLEMENTER = "implementer"
    REVIEWER = "reviewer"
    VERIFIER = "verifier"
    CHECKS = "checks"


class Provider(Record):
    """A server that speaks the Chat Completions API; what the user leaves out is as in the shipped table."""

    endpoint: str | None = None
    """Its address, to which `/chat/completions` is added."""
    endpoint_env: str | None = None
    """Name of a variable that holds another address."""
    api_key_env: str | None = None
    """Name of the variable that holds the key; at the shipped address one is needed."""
    api_key_command: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    reply_limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What the server calls the most tokens of a reply."""
    strict: bool | None = None
    """It refuses `stream_options`, words of ours behind results of tools, and ids unlike its own."""

    def fill(self, shipped: "Provider") -> "Provider":
        """Return the same with what it leaves out."""
        said = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return shipped.replace(**said)


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        endpoint="https://api.openai.com/v1",
        endpoint_env="OPENAI_BASE_URL",
        api_key_env="OPENAI_API_KEY",
        reply_limit="max_completion_tokens",
    ),
    "openrouter": Provider(endpoint="https://openrouter.ai/api/v1", api_key_env="OPENROUTER_API_KEY"),
    "gemini": Provider(
        endpoint="https://generativelanguage.googleapis.com/v1beta/openai", api_key_env="GEMINI_API_KEY"
    ),
    "mistral": Provider(endpoint="https://api.mistral.ai/v1", api_key_env="MISTRAL_API_KEY", strict=True),
    "ollama": Provider(endpoint="http://127.0.0.1:11434/v1", endpoint_env="OLLAMA_HOST"),
    "lmstudio": Provider(endpoint="http://127.0.0.1:1234/v1"),
    "llamacpp": Provider(endpoint="http://127.0.0.1:8080/v1"),
    "vllm": Provider(endpoint="http://127.0.0.1:8000/v1"),
}
"""The shipped table; the `providers` setting completes and overrides it."""


class Retry(Record):
    """The time for which a request is tried again; the pauses double from the first to the longest."""

    tries: Annotated[int, Meta(ge=1)] = 9
    base_seconds: Annotated[float, Meta(ge=0)] = 2
    max_seconds: Annotated[float, Meta(ge=0)] = 60


class Patience(Record):
    """The number of times that a check is run again, and the seconds before it."""

    times: Annotated[int, Meta(ge=0, le=10)]
    seconds: Annotated[float, Meta(ge=0, le=600)]


class Deadlines(Record):
    """Seconds a try may take."""

    connect: Annotated[float, Meta(gt=0)] = 10
    idle: Annotated[float, Meta(gt=0)] = 120
    """Without anything new in a streamed reply."""
    total: Annotated[float, Meta(gt=0)] = 600


_Dollars = Annotated[float, Meta(ge=0)]


class LongPrice(Record):
    """USD for a million tokens of a request whose prompt has more tokens than `above`."""

    above: int
    input: _Dollars
    output: _Dollars
    cache_read: _Dollars
    cache_write: _Dollars


class Price(Record):
    """USD for a million tokens, and for one search of the provider's."""

    input: _Dollars
    output: _Dollars
    cache_read: _Dollars
    cache_write: _Dollars
    search: _Dollars | None = None
    longer: LongPrice | None = None


class When(Record):
    """A condition such as `args.command matches ^git push`."""

    when: str


Mode = Literal["never", "always"] | When


class Approvals(Record):
    """The calls that somebody is asked about, by tool, by role and by MCP server."""

    tools: dict[str, Mode] = {}
    roles: dict[str, Mode] = {}
    servers: dict[str, Mode] = {}


_DURATION = regex(r"(?=.*[1-9])(\d{1,8}(\.\d+)?s?|\d{1,5}(\.\d+)?[mhd])")
_FORMS = (
    ("approval_timeout", _DURATION, "a duration", "seconds, or a number with s, m, h or d, for example 8h"),
    ("webhook", regex(r"https?://[^\s/].*"), "a URL", "it begins with https:// or http://"),
    (
        "embeddings",
        regex(r"(?!(anthropic|bedrock|vertex|foundry|repair|script|replay)/)[^/\s]+/\S+"),
        "PROVIDER/ID of the Chat Completions API",
        "for example ollama/nomic-embed-text",
    ),
)
"""How texts of the user's are written that have a form of their own."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class SurfaceGlobs(Record):
    """Globs of files that count as checks in spite of their names, and of files that do not."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class Settings(Record):
    """The user's settings; each has a default that works."""

    model: str | None = None
    """The model, as `--model` would name it."""
    models: dict[str, str | Annotated[tuple[str, ...], Meta(min_length=1)]] = {}
    """Tier to model id, or to a list of ids of which the next one answers where one fails."""
    without_tools: tuple[str, ...] = ()
    """Ids of models that take no tools: they answer, and change nothing."""
    web_search: bool | None = None
    """Whether the endpoint searches the web itself; left out, only the vendor's own does."""
    prices: dict[str, Price] = {}
    """By model id, before the shipped ones; where there is none, the cost is unknown."""
    windows: dict[str, Annotated[int, Meta(ge=4_000)]] = {}
    """Tokens that a model's requests and replies may have, by its id, before the shipped ones."""
    limits: ContextLimits = ContextLimits()
    """How long conversations, results and summaries may be."""
    endpoint: str | None = None
    """Address of a server that speaks the Messages API, unless the environment names one."""
    api_key_env: str | None = None
    """Name of the variable that holds the key, in place of the usual ones."""
    api_key_command: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """A command of the user's that prints the key."""
    providers: dict[str, Provider] = {}
    """Servers of the Chat Completions API, by the name that stands before the slash of a model's id."""
    transport: Literal["http", "sdk"] = "http"
    """What carries requests to `anthropic`."""
    stream: bool = False
    """Ask for replies as streams."""
    max_tokens: Annotated[int, Meta(ge=1)] = 16_000
    """Of one reply."""
    retry: Retry = Retry()
    deadlines: Deadlines = Deadlines()
    max_iterations: Annotated[int, Meta(ge=1, le=1000)] = 10
    prove_rounds: ProveRounds = 1
    """How often the implementer is given the changed places that no test notices."""
    judges: Literal["unsure", "always"] = "unsure"
    """When reviewer and verifier are asked: where the program is not sure of a change, or of each change."""
    repair_seconds: Annotated[float, Meta(ge=0, le=600)] = 20
    """How long the built-in repair engine may search for a fix before the first edit, and in a call of the
    tool `Repair`; 0 turns both off."""
    first_request_seconds: Annotated[float, Meta(ge=0, le=600)] = 1.5
    """How long the first request waits for the checks before the task and for that search; then they go on
    beside it."""
    parallel: Annotated[int, Meta(ge=1, le=8)] = 1
    """Implementers that may carry out independent steps of a plan at the same time."""
    hooks: tuple[str, ...] = ()
    """Shipped hooks that run, such as notify; `agentflow hooks list` shows all."""
    approvals: Approvals = Approvals()
    approval_timeout: str | float | None = None
    """How long an approval may wait, in seconds or as in `8h`; then it is denied."""
    approvals_needed: Annotated[int, Meta(ge=1, le=9)] = 1
    """How many people have to approve a call."""
    webhook: str | None = None
    """An address that is told when a task waits or ends."""
    timeouts: dict[CheckName, Annotated[float, Meta(gt=0)]] = {}
    quick: dict[CheckName, Annotated[float, Meta(gt=0)]] = {}
    """The same for `verify --quick`."""
    check_retry: dict[Fault, Patience] = {}
    """How often a check runs again, by the kind of fault."""
    required: tuple[CheckName, ...] = ()
    """Linters and type checkers without which no result is 0: `lint`, `types`."""
    surface: SurfaceGlobs = SurfaceGlobs()
    """Globs of further files that count as checks, and of files that do not."""
    routing: Routing = Routing()
    """Rules for the classification of tasks, in addition to the shipped ones."""
    sandbox: Confinement = Confinement.REQUIRE
    network: tuple[Caller, ...] = ()
    """Whose commands may reach the network."""
    readable: tuple[str, ...] = ()
    """Paths that the sandbox would hide and commands may read; a leading ~ is the home."""
    environment: tuple[str, ...] = ()
    """Variables that commands get beside the usual ones."""
    mcp_tools: dict[str, tuple[str, ...]] = {}
    """By role, rules such as `mcp__git` about the MCP tools it has, in place of those of its file."""
    unprotected: tuple[str, ...] = ()
    """Protected names that commands may write all the same, such as AGENTS.md or vendor/lib/.git."""
    memory: Literal["on", "off"] = "on"
    """Whether tasks are given what earlier ones of the repository left, and leave something themselves."""
    embeddings: str | None = None
    """The model, as `PROVIDER/ID`, by which memory is searched; what is remembered is sent there."""

    @property
    def terms(self) -> ApprovalTerms:
        given = str(self.approval_timeout or "")
        seconds = float(given.rstrip("smhd")) * _UNITS.get(given[-1], 1) if given else None
        return ApprovalTerms(needed=self.approvals_needed, seconds=seconds)

    def find_provider(self, name: str) -> Provider:
        """Return what the user and the shipped table say of a provider; nothing of one that nobody named."""
        return self.providers.get(name, Provider()).fill(PROVIDERS.get(name, Provider()))


class Skip(Record):
    """A check that a repository does without, and why."""

    skip: Annotated[str, Meta(min_length=1)]


class TaskLimits(Record):
    """The limits of a task, as for `--max-iterations`, `--max-cost`, `--max-tokens` and `--timeout`."""

    iterations: Annotated[int, Meta(ge=1, le=1000)] | None = None
    cost: Annotated[float, Meta(ge=0)] | None = None
    tokens: Annotated[int, Meta(ge=1)] | None = None
    seconds: Annotated[float, Meta(gt=0)] | None = None


class Project(Record):
    checks: dict[CheckName, Annotated[str, Meta(min_length=1)] | Skip] = {}
    """A command in place of the detected one, or why the check is skipped."""
    required: tuple[CheckName, ...] = ()
    routing: Routing = Routing()
    limits: TaskLimits = TaskLimits()
    prove_rounds: ProveRounds | None = None
    surface: SurfaceGlobs = SurfaceGlobs()
    memory: Literal["off"] | None = None


class Folders(Record):
    config: Path
    claude: Path
    """Roles and skills of the user, shared with other tools of that format."""
    plugins: Path
    """Copies of the plugins that the user added."""
    plugin_record: Path
    """The record of the added plugins and their files."""
    memory: Path
    """What earlier tasks left, one file a repository."""
    symbols: Path
    """The index of what the files of repositories define and use; it can be made again."""


def find_folders(environ: Mapping[str, str]) -> Folders:
    """Return the user's folders; `AGENTFLOW_HOME` moves them all. Raises ConfigError without a home."""
    home = Path(environ.get("AGENTFLOW_HOME") or environ.get("HOME") or expand_home("~"))
    if home == Path("~"):
        raise ConfigError("this user has no home folder", hint="set HOME to the folder of your settings")

    def place(variable: str, usual: str) -> Path:
        named = Path(environ.get(variable, ""))
        is_named = named.is_absolute() and "AGENTFLOW_HOME" not in environ
        return (named if is_named else home / usual) / "agentflow"

    config, kept = place("XDG_CONFIG_HOME", ".config"), place("XDG_DATA_HOME", ".local/share")
    return Folders(
        config=config / "config.yaml",
        claude=home / ".claude",
        plugins=kept / "plugins",
        plugin_record=config / "plugins.json",
        memory=place("XDG_STATE_HOME", ".local/state") / "memory",
        symbols=place("XDG_CACHE_HOME", ".cache") / "symbols.sqlite",
    )


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Return the user's settings. Raises InvalidFile naming file, line and key."""
    path = find_folders(environ).config
    if not path.is_file():
        return Settings()
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    found = _read_settings(Settings, text, str(path))
    if (wrong := next(filter(_NO_PROVIDER.fullmatch, found.providers), None)) is not None:
        said = f"providers: {wrong!r} is no name for a server of the Chat Completions API"
        raise InvalidFile(str(path), said, hint="that of the Messages API is set by endpoint and api_key_env")
    for key, form, wanted, hint in _FORMS:
        value = getattr(found, key)
        if value is not None and not form.fullmatch(str(value)):
            said, line = f"{key}: is not {wanted}", find_line(text, key, "")
            raise InvalidFile(str(path), said, line=line, hint=hint)
    return found


def _read_settings(kind: type[T], text: str, source: str) -> T:
    found = read_yaml(kind, text, source)
    if has_null(to_builtins(found)):
        raise InvalidFile(source, "a text in it has a null character")
    return found


def read_project(text: str) -> Project:
    """Return what a repository's own file says. Raises InvalidFile naming line and key."""
    try:
        return _read_settings(Project, text, PROJECT_FILE)
    except InvalidFile as error:
        example = _EXAMPLES.get(_FIRST_KEY.split(error.problem)[0])
        hint = f"write it as in `{example}`" if example else _OWN
        raise InvalidFile(PROJECT_FILE, error.problem, line=error.line, hint=hint) from None


def tighten(project: Project, settings: Settings) -> Project:
    """Return the repository's settings that only make rules stricter; they count without trust."""
    limits = project.limits
    fewer = min(limits.iterations or settings.max_iterations, settings.max_iterations)
    return Project(
        required=project.required,
        routing=Routing(requires=project.routing.requires),
        limits=limits.replace(iterations=fewer),
        prove_rounds=min(_choose_rounds(project, settings), settings.prove_rounds),
        surface=SurfaceGlobs(add=project.surface.add),
        memory=project.memory,
    )


def _choose_rounds(project: Project, settings: Settings) -> int:
    return settings.prove_rounds if project.prove_rounds is None else project.prove_rounds


def apply_project(settings: Settings, project: Project) -> Settings:
    surface = SurfaceGlobs(
        add=(*settings.surface.add, *project.surface.add),
        remove=(*settings.surface.remove, *project.surface.remove),
    )
    return settings.replace(
        max_iterations=project.limits.iterations or settings.max_iterations,
        prove_rounds=_choose_rounds(project, settings),
        routing=settings.routing.extend(project.routing),
        required=tuple(dict.fromkeys((*settings.required, *project.required))),
        surface=surface,
        memory=project.memory or settings.memory,
    )


def choose_model_name(option: str | None, settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the model to use: the named one, else the one that is set up, else `repair`."""
    named = option or environ.get("AGENTFLOW_MODEL") or settings.model
    if named:
        return named
    configured = settings.endpoint or settings.api_key_env or settings.api_key_command
    is_set_up = configured or any(environ.get(variable) for variable in MODEL_VARIABLES)
    if is_set_up:
        return "anthropic"
    first = (ids if isinstance(ids, str) else ids[0] for ids in settings.models.values())
    said = [name for each in first for name, slash, _ in [each.partition("/")] if slash]
    known = next((name for name in said if name in PROVIDERS), "anthropic")
    return known if any(name in PROVIDERS or name in settings.providers for name in said) else "repair"


def find_bundled(kind: str) -> Path:
    """Return a shipped folder: in a wheel inside the package, in a checkout beside it, to be edited."""
    package = Path(__file__).resolve().parent
    inside = package / "_bundled"
    return (inside if inside.is_dir() else package.parent) / kind
