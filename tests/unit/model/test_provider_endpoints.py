"""Where the requests to a provider go, and with which key."""

import pytest

from agentflow.core.errors import ConfigError
from agentflow.model.endpoint import choose_provider_endpoint
from agentflow.model.tiers import list_providers, split_id
from agentflow.settings import PROVIDERS, Provider, Settings, choose_model_name

ADDRESSES: dict[str, tuple[str, dict[str, str], str | None, str]] = {
    "the vendor's": ("openai", {}, None, "https://api.openai.com/v1"),
    "a variable": ("openai", {"OPENAI_BASE_URL": "http://x.test/api/"}, None, "http://x.test/api"),
    "the vendor's, with a slash": (
        "openai",
        {"OPENAI_BASE_URL": "https://api.openai.com/v1/"},
        None,
        "https://api.openai.com/v1",
    ),
    "a variable before the settings": (
        "openai",
        {"OPENAI_BASE_URL": "http://x.test/v2"},
        "http://y.test/v2",
        "http://x.test/v2",
    ),
    "the settings": ("gemini", {}, "https://y.test/v1beta/openai", "https://y.test/v1beta/openai"),
    "without a path": ("openai", {"OPENAI_BASE_URL": "http://x.test:8000"}, None, "http://x.test:8000/v1"),
    "at the root": ("openai", {"OPENAI_BASE_URL": "http://x.test:8000/"}, None, "http://x.test:8000"),
    "nothing": ("ollama", {}, None, "http://127.0.0.1:11434/v1"),
    "a host": ("ollama", {"OLLAMA_HOST": "gpu"}, None, "http://gpu:11434/v1"),
    "a host and a port": ("ollama", {"OLLAMA_HOST": "gpu:80"}, None, "http://gpu:80/v1"),
    "a port": ("ollama", {"OLLAMA_HOST": ":8000"}, None, "http://127.0.0.1:8000/v1"),
    "a scheme": ("ollama", {"OLLAMA_HOST": "https://gpu.test"}, None, "https://gpu.test/v1"),
    "an address of version 6": ("ollama", {"OLLAMA_HOST": "[::1]:9"}, None, "http://[::1]:9/v1"),
    "one of the user's own": ("gpu", {}, "http://gpu:8000", "http://gpu:8000/v1"),
}


@pytest.mark.parametrize(("name", "environ", "own", "address"), ADDRESSES.values(), ids=ADDRESSES)
def test_what_an_address_leaves_out_is_as_usual(
    name: str, environ: dict[str, str], own: str | None, address: str
) -> None:
    settings = Settings(providers={name: Provider(endpoint=own)} if own else {})
    found = choose_provider_endpoint(name, environ, settings)
    assert found.address == address
    assert found.url == f"{address}/chat/completions"


@pytest.mark.parametrize("named", ["ftp://x.test/v1", "http://", "http://x.test:port/v1"])
def test_an_address_that_is_none_is_refused(named: str) -> None:
    with pytest.raises(ConfigError, match="the address of openai"):
        choose_provider_endpoint("openai", {"OPENAI_BASE_URL": named}, Settings())


KEYS: dict[str, tuple[str, dict[str, str], Provider | None, tuple[str, ...], str]] = {
    "the usual variable": ("mistral", {"MISTRAL_API_KEY": "k-1"}, None, ("k-1",), ""),
    "none where it is needed": ("mistral", {}, None, (), "MISTRAL_API_KEY"),
    "none where it is needed, with a slash": (
        "openai",
        {"OPENAI_BASE_URL": "https://api.openai.com/v1/"},
        None,
        (),
        "OPENAI_API_KEY",
    ),
    "none elsewhere": ("mistral", {}, Provider(endpoint="http://x.test"), (), ""),
    "another variable": (
        "openai",
        {"A": "k-2", "OPENAI_API_KEY": "k"},
        Provider(api_key_env="A"),
        ("k-2",),
        "",
    ),
    "a command": (
        "openai",
        {"PATH": "/bin:/usr/bin"},
        Provider(api_key_command=("echo", "k-3")),
        ("k-3",),
        "",
    ),
    "none at home": ("ollama", {}, None, (), ""),
}


@pytest.mark.parametrize(("name", "environ", "own", "secrets", "lacks"), KEYS.values(), ids=KEYS)
def test_the_key_is_where_it_is_said_to_be(
    name: str, environ: dict[str, str], own: Provider | None, secrets: tuple[str, ...], lacks: str
) -> None:
    found = choose_provider_endpoint(name, environ, Settings(providers={name: own} if own else {}))
    assert (found.secrets, found.lacks) == (secrets, lacks)
    assert list(found.headers.items()) == [("authorization", f"Bearer {each}") for each in secrets]


def test_two_sources_of_a_key_are_refused() -> None:
    own = Provider(api_key_env="A", api_key_command=("echo", "k"))
    with pytest.raises(ConfigError, match=r"both providers\.openai\.api_key_env and"):
        choose_provider_endpoint("openai", {"A": "k"}, Settings(providers={"openai": own}))


IDS = {
    "claude-x-9": ("anthropic", "claude-x-9"),
    "anthropic/claude-x-9": ("anthropic", "claude-x-9"),
    "openai/gpt-x": ("openai", "gpt-x"),
    "openrouter/qwen/qwen3:free": ("openrouter", "qwen/qwen3:free"),
    "qwen/qwen3": ("anthropic", "qwen/qwen3"),
    "gpu/qwen3": ("gpu", "qwen3"),
}


@pytest.mark.parametrize(("model", "expected"), IDS.items(), ids=IDS)
def test_an_id_names_its_provider_before_the_slash(model: str, expected: tuple[str, str]) -> None:
    assert split_id(model, "anthropic", Settings(providers={"gpu": Provider()})) == expected


DEFAULTS: dict[str, tuple[dict[str, str | tuple[str, ...]], str]] = {
    "none": ({}, "repair"),
    "ids alone": ({"deep": "big-1", "fast": "qwen/small-1"}, "repair"),
    "a provider": ({"deep": "big-1", "fast": ("ollama/small-1", "b")}, "ollama"),
    "one of the user's own": ({"deep": "gpu/big-1", "fast": "gpu/small-1"}, "anthropic"),
}


@pytest.mark.parametrize(("models", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_models_with_a_provider_are_a_model_that_is_set_up(
    models: dict[str, str | tuple[str, ...]], expected: str
) -> None:
    settings = Settings(models=models, providers={"gpu": Provider(endpoint="http://gpu")})
    assert choose_model_name(None, settings, {}) == expected
    assert choose_model_name(None, settings, {"OPENAI_API_KEY": "k"}) == expected


def test_who_serves_the_tiers() -> None:
    settings = Settings(models={"deep": ("big-1", "openai/b"), "fast": "ollama/c"})
    assert list_providers("anthropic", settings) == ("anthropic", "openai", "ollama")
    assert list_providers("vllm/d", settings) == ("vllm",)
    assert list_providers("repair", settings) == ()


def test_a_provider_of_the_table_needs_a_key_or_is_at_home() -> None:
    for name, provider in PROVIDERS.items():
        assert provider.endpoint is not None, name
        assert provider.endpoint.startswith("https://" if provider.api_key_env else "http://127.0.0.1:"), name
