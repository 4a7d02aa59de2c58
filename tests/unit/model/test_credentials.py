"""Where the key comes from, and that nothing says what it is."""

import sys
from pathlib import Path

import pytest

from agentflow.core.errors import AgentflowError, ConfigError, ModelRejected
from agentflow.model.endpoint import choose_endpoint
from agentflow.settings import Settings, choose_model_name, load_settings

KEY = "sk-unit-0123456789"
USUAL = {"ANTHROPIC_API_KEY": "sk-usual", "ANTHROPIC_AUTH_TOKEN": "tok-usual"}


def printing(code: str) -> Settings:
    return Settings(api_key_command=(sys.executable, "-c", code))


def test_a_named_variable_holds_the_key() -> None:
    found = choose_endpoint({"GATEWAY_KEY": f" {KEY}\n"}, Settings(api_key_env="GATEWAY_KEY"))
    assert found.headers == {"x-api-key": KEY, "authorization": f"Bearer {KEY}"}


def test_a_command_prints_the_key() -> None:
    assert choose_endpoint({}, printing(f"print({KEY!r})")).secrets == (KEY,)


@pytest.mark.parametrize("settings", [Settings(api_key_env="MINE"), printing(f"print({KEY!r})")])
def test_what_the_settings_name_counts_alone(settings: Settings) -> None:
    assert choose_endpoint({**USUAL, "MINE": KEY}, settings).secrets == (KEY,)


def test_the_command_has_the_users_environment_but_no_other_key(tmp_path: Path) -> None:
    code = f"import os; open({str(tmp_path / 'seen')!r}, 'w').write(repr(dict(os.environ))); print({KEY!r})"
    choose_endpoint({**USUAL, "VAULT_ADDR": "http://vault.test"}, printing(code))
    seen = (tmp_path / "seen").read_text()
    assert "vault.test" in seen
    assert "usual" not in seen


def test_the_command_does_not_run_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/")
    assert choose_endpoint({}, printing("import os; print(os.getcwd())")).secrets == ("/",)


def test_the_command_may_ask_at_the_terminal() -> None:
    """A program in the background that reads from the terminal is stopped."""
    code = "import os; print('shared' if os.getpgrp() == os.getpgid(os.getppid()) else 'apart')"
    assert choose_endpoint({}, printing(code)).secrets == ("shared",)


WRONG: dict[str, tuple[Settings, type[AgentflowError], str]] = {
    "a variable that is not set": (Settings(api_key_env="MINE"), ModelRejected, "holds no MINE"),
    "both": (Settings(api_key_env="MINE", api_key_command=("x",)), ConfigError, "both"),
    "no such program": (Settings(api_key_command=("/no/such",)), ModelRejected, "No such file"),
    "a command that fails": (printing(f"print({KEY!r}); raise SystemExit(3)"), ModelRejected, "exit 3"),
    "a command that prints nothing": (printing("pass"), ModelRejected, "exit 0"),
    "a command that prints more": (printing(f"print('key is', {KEY!r})"), ConfigError, "no credential has"),
    "a command that prints bytes": (
        printing(f"import sys; sys.stdout.buffer.write(b'\\xff{KEY}')"),
        ConfigError,
        "no credential has",
    ),
}


@pytest.mark.parametrize(("settings", "kind", "words"), WRONG.values(), ids=WRONG)
def test_a_source_that_gives_no_key_is_named_and_its_words_are_not_shown(
    settings: Settings, kind: type[AgentflowError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        choose_endpoint(USUAL, settings)
    assert KEY not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("settings", [Settings(api_key_env="MINE"), Settings(api_key_command=("x",))])
def test_a_source_of_the_key_makes_the_live_model_the_default(settings: Settings) -> None:
    assert choose_model_name(None, settings, {}) == "anthropic"


@pytest.mark.parametrize("text", ["api_key_command: []", "api_key_command: op read x", "api_key: sk-1"])
def test_a_source_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ConfigError, match="api_key"):
        load_settings({"AGENTFLOW_HOME": str(tmp_path)})
