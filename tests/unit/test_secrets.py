import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentflow.redact import MARK, Redacting, json_visible, redacted, redacted_bytes
from agentflow.streams import Collected

PEM = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    + "b3BlbnNzaC1rZXktdjEAAAA=\n" * 3
    + "-----END OPENSSH PRIVATE KEY-----"
)
SECRETS = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "sk-ant-" + "api03-abcDEF_123-xyz",
    "sk-" + "aB3" * 16,
    "sk-proj-" + "aB3_" * 10,
    "ghp_" + "aB3d" * 9,
    "gho_" + "aB3d" * 9,
    "github_pat_" + "11AB_" * 8,
    "xoxb-" + "1234567890-abcdef",
    PEM,
)
KEYS = {"ANTHROPIC_API_KEY": "my-own-key/with.signs", "ANTHROPIC_AUTH_TOKEN": "my-own-key/with"}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "a {} b", "key={}", '"{}"', "({})", "x\n{}\ny", "url?k={}&a=b", "\\n{}"]
)
def test_a_secret_is_taken_out_and_nothing_else(secret: str, around: str) -> None:
    lines = "\n".join([MARK] * (secret.count("\n") + 1))
    assert redacted(around.format(secret)) == around.format(lines)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "task-0123456789abcdef0123456789abcdef",
            "disk-" + "a" * 40,
            "sk-learn",
            "risk-free",
            "AKIA",
            "ghp_short",
        ),
        *(
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "xoxb-1",
        ),
        *(
            "a" * 64,
            "0123456789abcdef" * 4,
            "aws_secret_access_key = os.environ[name]",
            "XAKIAIOSFODNN7EXAMPLE9",
        ),
    ],
)
def test_what_only_looks_a_little_like_one_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_users_own_keys_go_whatever_they_look_like() -> None:
    said = redacted(f"a {KEYS['ANTHROPIC_API_KEY']} b {KEYS['ANTHROPIC_AUTH_TOKEN']} c", KEYS)
    assert said == f"a {MARK} b {MARK} c"
    assert redacted("a short key is a word", {"ANTHROPIC_API_KEY": "short"}) == "a short key is a word"


def test_the_rest_of_a_key_that_was_cut_goes_too() -> None:
    cut = PEM[: PEM.index("-----END")]
    assert "b3Blbn" not in redacted(f"x {cut} and prose goes on")
    assert redacted(f"x {cut} and prose goes on").endswith("and prose goes on")


@given(
    st.lists(st.sampled_from([*SECRETS, "text ", "\n", " ", "word", "aws_secret_access_key = "])), st.data()
)
def test_pieces_give_what_the_whole_gives(parts: list[str], data: st.DataObject) -> None:
    whole = " ".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    shown: list[str] = []
    flow = Redacting(shown.append)
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        flow.add(whole[start:end])
    flow.finish()
    assert "".join(shown) == redacted(whole)


@given(st.binary())
def test_bytes_without_a_secret_stay_as_they_are(raw: bytes) -> None:
    assert redacted_bytes(raw) == raw


@pytest.mark.parametrize("size", [1000, 70_000, 300_000])
def test_a_secret_in_a_long_line_is_found_wherever_it_stands(size: int) -> None:
    shown: list[str] = []
    flow = Redacting(shown.append)
    text = "/" * size + SECRETS[0] + "/" * size
    for start in range(0, len(text), 65_536):
        flow.add(text[start : start + 65_536])
    flow.finish()
    assert "".join(shown) == text.replace(SECRETS[0], MARK)


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "sk-ant-",
        "ghp_",
        "AKIA",
        "aws_session_token = ",
        "-----BEGIN A",
        "xoxb-",
    ],
)
def test_the_time_is_linear(hostile: str) -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()
        redacted(hostile * count)
        return time.process_time() - begin

    assert seconds(80_000) < 20 * seconds(8_000) + 0.2


def test_an_output_is_counted_as_it_was_and_kept_without_secrets(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with place.open("wb") as file:
        collected = Collected(file)
        for piece in (b"a " + SECRETS[0].encode()[:7], SECRETS[0].encode()[7:] + b" \xff\n"):
            collected.add(piece)
        collected.finish()
    assert place.read_bytes() == b"a [REDACTED] \xff\n"
    assert collected.tail == b"a [REDACTED] \xff\n"
    assert collected.bytes == len(SECRETS[0]) + 5


def test_json_says_the_same_with_every_odd_character_as_an_escape() -> None:
    assert json_visible('"a\x9b\u202e\U000e0041é"') == '"a\\u009b\\u202e\\udb40\\udc41é"'
