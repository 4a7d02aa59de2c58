import base64
import random
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentflow import redact
from agentflow.process import OutputCollector
from agentflow.redact import MARK, Redactor, keep_secret, make_json_visible, redact_bytes, redact_text

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
    "glpat-" + "aB3-" * 5,
    "sk_live_" + "aB3d" * 6,
    "AIza" + "aB3d_" * 7,
    "hf_" + "aB3d" * 9,
    PEM,
)
KEYS = {"ANTHROPIC_API_KEY": "my-own-key/with.signs", "ANTHROPIC_AUTH_TOKEN": "my-own-key/with"}


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "a {} b", "key={}", '"{}"', "({})", "x\n{}\ny", "url?k={}&a=b", "\\n{}"]
)
def test_a_secret_is_taken_out_and_nothing_else(secret: str, around: str) -> None:
    lines = "\n".join([MARK] * (secret.count("\n") + 1))
    assert redact_text(around.format(secret)) == around.format(lines)


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
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the password is hunter2x", "the password is [REDACTED]"),
        ("DB_PASSWORD='s3cr3t-pass' and more", "DB_PASSWORD='[REDACTED]' and more"),
        ("api key: 0123456789abcdef.", "api key: [REDACTED]"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer [REDACTED]"),
        ("postgres://shop:hunter2@db.local/shop", "postgres://shop:[REDACTED]@db.local/shop"),
        (f"jwt eyJ{'aB3' * 5}.eyJ{'aB3' * 5}.{'aB3_' * 5}", "jwt [REDACTED]"),
        ("use qwertyuiopasdfgh", "use [REDACTED]"),
        ("the token is refreshed hourly", "the token is refreshed hourly"),
        ("the secret is in vault.py, line 12", "the secret is in vault.py, line 12"),
        ("listens at http://localhost:8080/a@b", "listens at http://localhost:8080/a@b"),
        ("tokens are counted by 1000", "tokens are counted by 1000"),
    ],
)
def test_what_people_call_a_secret_goes_from_what_they_wrote(
    text: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "qwertyuiopasdfgh")
    assert redact.redact_prose(text) == kept
    assert redact.redact_prose(kept) == kept


def test_the_users_own_keys_go_whatever_they_look_like() -> None:
    said = redact_text(f"a {KEYS['ANTHROPIC_API_KEY']} b {KEYS['ANTHROPIC_AUTH_TOKEN']} c", KEYS)
    assert said == f"a {MARK} b {MARK} c"
    assert redact_text("a short key is a word", {"ANTHROPIC_API_KEY": "short"}) == "a short key is a word"


BODY = "Qm9-_aZ3kT7xLw0pVr5Yd8Nc2Hs6jFg1bUeRi4tKoXq-MzCvWyDlEnGPS_uhJfaBQ9wOTx3"
OWN = {
    "ANTHROPIC_API_KEY": f"sk-ant-api03-{BODY}",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}


HEAD_SPELLED = 2 * len("sk-ant-api03-") + 10
"""Characters that may stay: what any key begins with, and the end of a last short line."""


def wrapped(raw: bytes) -> str:
    return base64.encodebytes(raw).decode()


SPELLED: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "without its head": lambda key: key.removeprefix("sk-ant-api03-"),
    "a part from the middle": lambda key: key[19:36],
    "its end": lambda key: key[-16:],
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 without padding": lambda key: base64.b64encode(key.encode()).decode().rstrip("="),
    "base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "base64 with a newline": lambda key: base64.b64encode(f"{key}\n".encode()).decode(),
    "base64 behind one letter": lambda key: base64.b64encode(f"x{key}".encode()).decode(),
    "base64 behind two letters": lambda key: base64.b64encode(f"u:{key}".encode()).decode(),
    "base64 in lines": lambda key: wrapped(key.encode()),
    "percent": lambda key: quote(key, safe=""),
    "hexadecimal": lambda key: key.encode().hex(),
}


@pytest.mark.parametrize("spell", SPELLED.values(), ids=SPELLED)
@pytest.mark.parametrize("name", OWN)
def test_a_key_is_taken_out_however_it_is_spelled(name: str, spell: Callable[[str], str]) -> None:
    echo = spell(OWN[name])
    said = redact_text(f"it is <{echo}> here", OWN)
    assert said.startswith("it is <")
    assert said.endswith("> here")
    assert MARK in said
    left = said.replace(MARK, "").removeprefix("it is <").removesuffix("> here")
    assert len(left) <= HEAD_SPELLED
    assert not any(echo[at : at + 16] in said for at in range(HEAD_SPELLED, len(echo) - 15))


@given(st.integers(0, 60), st.text("ab-_/+=\n .", max_size=20), st.text("ab-_/+=\n .", max_size=20))
def test_a_long_part_of_a_key_is_found_wherever_it_stands(at: int, before: str, after: str) -> None:
    part = BODY[at : at + 16]
    assume(len(part) == 16)
    assert part not in redact_text(f"{before}{part}{after}", OWN)


def test_ordinary_text_stays_beside_the_users_own_keys() -> None:
    generator = random.Random(7)
    image = base64.b64encode(generator.randbytes(200_000)).decode()
    hashes = "\n".join(f"{generator.randbytes(32).hex()}  file{number}" for number in range(500))
    lock = "\n".join(
        f'"integrity": "sha512-{base64.b64encode(generator.randbytes(64)).decode()}"' for _ in range(500)
    )
    code = Path(redact.__file__).read_text()
    heads = "export ANTHROPIC_API_KEY=sk-ant-api03-... # sk-ant-api03- begins each\n0123456789abcdef"
    for text in (image, hashes, lock, code, heads):
        assert redact_text(text, OWN) == text


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 1))


def found_by_grep(text: str) -> str:
    return "\n".join(f".npmrc:{number}:{line}" for number, line in enumerate(text.split("\n"), 1))


TOKEN = "7f3a91c0-55de-4b6e-9a57-0c1d2e3f4a5b"
HOLDS = {
    ".npmrc": f"registry=https://r.test/\n//r.test/:_authToken={TOKEN}\nsave-exact=true",
    ".npmrc, for all": f"_authToken = {TOKEN}\n",
    ".npmrc, a name and a password": f"//r.test/:_password={TOKEN}\n//r.test/:username=me",
    ".npmrc, npm's own": "//registry.npmjs.org/:_authToken=npm_" + "aB3d" * 9,
    ".pypirc": f"[distutils]\nindex-servers = pypi\n\n[pypi]\nusername = __token__\npassword = {TOKEN}\n",
    ".pypirc, another server": f"[corp]\nrepository: r.test\nusername: __token__\npassword: {TOKEN}\n",
    ".pypirc, a person": f"[pypi]\nusername=me\npassword={TOKEN}",
    ".netrc": f"machine api.test login me password {TOKEN}\nmachine b.test login me password {TOKEN}",
    ".netrc, in lines": f"machine api.test\n  login me\n  password {TOKEN}\n",
    ".netrc, for all": f"default login me password {TOKEN}",
}


@pytest.mark.parametrize("shown", [str, numbered, found_by_grep], ids=["as it is", "numbered", "by grep"])
@pytest.mark.parametrize("text", HOLDS.values(), ids=HOLDS)
def test_a_token_in_a_file_of_tokens_is_taken_out(text: str, shown: Callable[[str], str]) -> None:
    secret = "npm_" + "aB3d" * 9 if "npm_" in text else TOKEN
    assert redact_text(shown(text), {}) == shown(text).replace(secret, MARK)


@pytest.mark.parametrize("text", HOLDS.values(), ids=HOLDS)
@pytest.mark.parametrize("size", [1, 7, 40])
def test_a_token_in_a_file_that_comes_in_pieces_is_taken_out(text: str, size: int) -> None:
    shown: list[str] = []
    flow = Redactor(shown.append)
    for start in range(0, len(text), size):
        flow.add(text[start : start + size])
    flow.finish()
    assert "".join(shown) == redact_text(text, {})


@pytest.mark.parametrize(
    "text",
    [
        "//r.test/:_authToken=${NPM_TOKEN}",
        "const _authToken = readToken()",
        "self._password = password",
        "this._authToken = options.authToken;",
        "_auth = require('./auth')",
        "def login(user, password):\n    return check(user, password)",
        "password = getpass.getpass()",
        "username = request.form['username']\npassword = request.form['password']",
        "[database]\nusername = app\npassword = %(DB_PASSWORD)s",
        "[pypi]\nusername = __token__\npassword = ${PYPI_TOKEN}",
        "the machine room has a login page with a password field",
        "machine learning: login, password and reset",
        "On this machine login is by password only.",
        "by default login needs a password",
        "npm_config_registry=https://r.test npm_lifecycle_event",
        "pypi-publish and pypi-simple",
    ],
)
def test_what_only_speaks_of_passwords_stays(text: str) -> None:
    assert redact_text(text, {}) == text
    assert redact_text(numbered(text), {}) == numbered(text)


def test_a_key_that_came_from_a_command_is_taken_out_too() -> None:
    keep_secret(["a-key-from-a-vault-0a1b2c3d"])
    assert redact_text("it is a-key-from-a-vault-0a1b2c3d") == f"it is {MARK}"


def test_the_rest_of_a_key_that_was_cut_goes_too() -> None:
    cut = PEM[: PEM.index("-----END")]
    assert "b3Blbn" not in redact_text(f"x {cut} and prose goes on")
    assert redact_text(f"x {cut} and prose goes on").endswith("and prose goes on")


@given(
    st.lists(st.sampled_from([*SECRETS, "text ", "\n", " ", "word", "aws_secret_access_key = "])), st.data()
)
def test_pieces_give_what_the_whole_gives(parts: list[str], data: st.DataObject) -> None:
    whole = " ".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    shown: list[str] = []
    flow = Redactor(shown.append)
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        flow.add(whole[start:end])
    flow.finish()
    assert "".join(shown) == redact_text(whole)


@given(st.binary())
def test_bytes_without_a_secret_stay_as_they_are(raw: bytes) -> None:
    assert redact_bytes(raw) == raw


@pytest.mark.parametrize("size", [1000, 70_000, 300_000])
def test_a_secret_in_a_long_line_is_found_wherever_it_stands(size: int) -> None:
    shown: list[str] = []
    flow = Redactor(shown.append)
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
        redact_text(hostile * count)
        return time.process_time() - begin

    assert seconds(80_000) < 20 * seconds(8_000) + 0.2


def test_an_output_is_counted_as_it_was_and_kept_without_secrets(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with place.open("wb") as file:
        collected = OutputCollector(file)
        for piece in (b"a " + SECRETS[0].encode()[:7], SECRETS[0].encode()[7:] + b" \xff\n"):
            collected.add(piece)
        collected.finish()
    assert place.read_bytes() == b"a [REDACTED] \xff\n"
    assert collected.tail == b"a [REDACTED] \xff\n"
    assert collected.bytes == len(SECRETS[0]) + 5


def test_json_says_the_same_with_every_odd_character_as_an_escape() -> None:
    assert make_json_visible('"a\x9b\u202e\U000e0041é"') == '"a\\u009b\\u202e\\udb40\\udc41é"'
