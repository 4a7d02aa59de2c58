from pathlib import Path

import pytest

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.evidence import CheckName
from agentflow.settings import MODEL_VARIABLES, Settings, choose_model_name, find_folders, load_settings


def written(home: Path, text: str | bytes) -> dict[str, str]:
    path = home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {"AGENTFLOW_HOME": str(home)}


@pytest.mark.parametrize(
    ("environ", "config", "claude"),
    [
        ({"HOME": "/h"}, "/h/.config/agentflow/config.yaml", "/h/.claude"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/agentflow/config.yaml", "/h/.claude"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "x"}, "/h/.config/agentflow/config.yaml", "/h/.claude"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config/agentflow/config.yaml", "/h/.claude"),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "/x", "AGENTFLOW_HOME": "/a"},
            "/a/.config/agentflow/config.yaml",
            "/a/.claude",
        ),
    ],
)
def test_the_folders_of_the_user(environ: dict[str, str], config: str, claude: str) -> None:
    found = find_folders(environ)
    assert (str(found.config), str(found.claude)) == (config, claude)


def test_without_a_file_every_setting_has_its_default(tmp_path: Path) -> None:
    assert load_settings({"AGENTFLOW_HOME": str(tmp_path)}) == Settings()


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file_changes_nothing(tmp_path: Path, text: str) -> None:
    assert load_settings(written(tmp_path, text)) == Settings()


def test_settings_are_read(tmp_path: Path) -> None:
    text = "model: repair\nmodels: {deep: m1}\nmax_iterations: 3\ntimeouts:\n  tests: 1.5\n"
    assert load_settings(written(tmp_path, text)) == Settings(
        model="repair", models={"deep": "m1"}, max_iterations=3, timeouts={CheckName.TESTS: 1.5}
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle: x\n", "unknown field `modle`; did you mean model?"),
        ("retry: {tires: 3}\n", "retry: object contains unknown field `tires`; did you mean tries?"),
        ("sandbox: no\n", "sandbox: invalid enum value 'no'; known are require, ask, off"),
        (
            "network: [implementor]\n",
            "network[0]: invalid enum value 'implementor'; did you mean implementer?",
        ),
        ("approvals: {tools: {Bash: sometimes}}\n", "enum value 'sometimes'; known are always, never"),
        ('readable: ["a\\0b"]\n', ": a text in it has a null character"),
        ("timeouts: {tests: 0}\n", "timeouts: expected a number > 0"),
        ("max_iterations: many\n", "max_iterations: expected a whole number"),
        (f"max_tokens: {'9' * 5_000}\n", ":1: max_tokens: integer value out of range"),
        ("timeouts: {cooking: 3}\n", "timeouts"),
        ("models: [a]\n", "models: expected keys and values, got a list"),
        ("- a\n", "expected keys and values, got a list"),
        ("a: 1\na: 2\n", ":2: key 'a' stands twice"),
        ("retry: {tries: 0}\n", "retry.tries"),
        ("models: {deep: []}\n", "models"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_settings(written(tmp_path, text))
    assert said in str(caught.value)
    assert "config.yaml" in str(caught.value)


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_number_of_iterations_that_allows_none_is_refused(tmp_path: Path, limit: str) -> None:
    with pytest.raises(InvalidFile, match="max_iterations"):
        load_settings(written(tmp_path, f"max_iterations: {limit}\n"))


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_settings(written(tmp_path, b"model: \xff\n"))


KEYED = {"ANTHROPIC_API_KEY": "k"}


@pytest.mark.parametrize(
    ("option", "environ", "settings", "name"),
    [
        (None, {}, Settings(), "repair"),
        ("a", {"AGENTFLOW_MODEL": "b", **KEYED}, Settings(model="c"), "a"),
        (None, {"AGENTFLOW_MODEL": "b", **KEYED}, Settings(model="c"), "b"),
        (None, KEYED, Settings(model="c"), "c"),
        (None, KEYED, Settings(), "anthropic"),
        (None, {"ANTHROPIC_API_KEY": ""}, Settings(), "repair"),
        (None, {"AGENTFLOW_MODEL": ""}, Settings(), "repair"),
    ],
)
def test_which_model_is_used(
    option: str | None, environ: dict[str, str], settings: Settings, name: str
) -> None:
    assert choose_model_name(option, settings, environ) == name


@pytest.mark.parametrize("variable", MODEL_VARIABLES)
def test_each_sign_of_an_account_is_enough(variable: str) -> None:
    assert choose_model_name(None, Settings(), {variable: "x"}) == "anthropic"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("8h", 28_800.0), ("90", 90.0), ("1.5m", 90.0), ("2d", 172_800.0), ("30s", 30.0), ("0.5", 0.5)],
)
def test_an_approval_may_wait_for_a_duration(tmp_path: Path, text: str, seconds: float) -> None:
    assert load_settings(written(tmp_path, f"approval_timeout: {text}\n")).terms.seconds == seconds


@pytest.mark.parametrize(
    "line",
    [
        *("approval_timeout: 0", "approval_timeout: 0h", "approval_timeout: 8 hours", "approval_timeout: -1"),
        *("approvals_needed: 0", "approvals_needed: 10", "webhook: chat.example.org", "webhook: file:///x"),
    ],
)
def test_terms_that_make_no_sense_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidFile, match=line.partition(":")[0]):
        load_settings(written(tmp_path, f"{line}\n"))
