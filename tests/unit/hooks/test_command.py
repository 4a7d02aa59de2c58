import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentflow.core.hook import POINTS, Hook, Script
from agentflow.core.points import Actor, Point, Scene
from agentflow.hooks.command import MAX_HOOK_TEXT
from tests.unit.hooks.stage import BASH, PAYLOADS, denied, fire, script

PUBLIC = {"session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name"}
OURS = {"task_id", "agent", "phase", "iteration"}
LONG = f"61.{os.getpid():07}"
"""Seconds that a process sleeps; of this process of tests alone, since all that run are looked at."""


def executable(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    path.chmod(0o755)
    return path


def environment_of(scene: Scene, hook: Hook) -> dict[str, str]:
    fire(scene, hook)
    lines = (scene.cwd / "env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@pytest.mark.parametrize("depth", [0, 2])
def test_a_script_reads_one_json_object(scene: Scene, depth: int) -> None:
    fire(scene.replace(actor=Actor(name="scout", depth=depth)), script("cat > given"))
    said = json.loads((scene.cwd / "given").read_text())
    inside = {"agent_id", "agent_type"} if depth else set()
    assert set(said) == PUBLIC | OURS | inside | {"tool_name", "tool_input", "tool_use_id"}
    assert said["tool_input"] == BASH.tool_input
    assert (said["hook_event_name"], said["cwd"]) == ("PreToolUse", str(scene.cwd))
    assert said["session_id"] == said["task_id"] == scene.task_id
    assert said["agent"] == {"name": "scout", "depth": depth}
    assert (said["phase"], said["iteration"]) == ("implementation", 2)


@pytest.mark.parametrize(
    ("point", "keys"),
    [
        (Point.SESSION_START, {"source", "model"}),
        (Point.SESSION_END, {"reason"}),
        (Point.USER_PROMPT_SUBMIT, {"prompt"}),
        (Point.POST_TOOL_USE, {"tool_name", "tool_input", "tool_use_id", "tool_response"}),
        (Point.POST_TOOL_USE_FAILURE, {"tool_name", "tool_input", "tool_use_id", "error"}),
        (
            Point.STOP,
            {"stop_hook_active", "last_assistant_message", "background_tasks", "session_crons"},
        ),
    ],
)
def test_each_point_gives_its_public_keys(scene: Scene, point: Point, keys: set[str]) -> None:
    fire(scene, script("cat > given", point=point))
    assert set(json.loads((scene.cwd / "given").read_text())) == PUBLIC | OURS | keys


def test_the_environment_is_scrubbed_and_says_where_we_are(scene: Scene) -> None:
    with variable("ANTHROPIC_API_KEY", "sk-1"), variable("OTEL_SERVICE_NAME", "x"):
        seen = environment_of(scene, script("env > env"))
    assert not {"ANTHROPIC_API_KEY", "OTEL_SERVICE_NAME"} & set(seen)
    assert seen["CLAUDE_PROJECT_DIR"] == str(scene.cwd)
    named = {key: value for key, value in seen.items() if key.startswith("AGENTFLOW_")}
    del named["AGENTFLOW_COMMAND"]
    assert named == {
        "AGENTFLOW_TASK_ID": scene.task_id,
        "AGENTFLOW_AGENT": "implementer",
        "AGENTFLOW_DEPTH": "0",
        "AGENTFLOW_PHASE": "implementation",
        "AGENTFLOW_ITERATION": "2",
        "AGENTFLOW_TRUSTED": "",
    }


def test_with_args_no_shell_reads_the_words(scene: Scene) -> None:
    words = ("-c", 'printf "%s|" "$@" > words', "sh", "${CLAUDE_PROJECT_DIR}/a b", "$(touch pwned)", "*;")
    fire(scene, script("sh", args=words))
    assert (scene.cwd / "words").read_text() == f"{scene.cwd}/a b|$(touch pwned)|*;|"
    assert not (scene.cwd / "pwned").exists()


def test_empty_args_are_args_too(scene: Scene) -> None:
    assert denied(fire(scene, script("exit 0", args=())))
    assert not denied(fire(scene, script("exit 0")))


def test_placeholders_name_project_and_plugin_in_both_forms(scene: Scene, tmp_path: Path) -> None:
    plugin = tmp_path / "plug in"
    plugin.mkdir()
    executable(plugin / "x.sh", "#!/bin/sh\necho $CLAUDE_PLUGIN_ROOT >> $CLAUDE_PROJECT_DIR/log\n")
    for body in (
        Script(command="${CLAUDE_PLUGIN_ROOT}/x.sh", args=(), plugin=str(plugin)),
        Script(command='"${CLAUDE_PLUGIN_ROOT}"/x.sh', plugin=str(plugin)),
    ):
        assert not denied(fire(scene, Hook(name="x", point=Point.PRE_TOOL_USE, body=body)))
    assert (scene.cwd / "log").read_text() == f"{plugin}\n" * 2


def test_the_path_of_a_project_is_never_read_by_the_shell(tmp_path: Path, scene: Scene) -> None:
    folder = tmp_path / "$(touch pwned)"
    folder.mkdir()
    executable(folder / "x.sh", "#!/bin/sh\ntouch ran\n")
    fire(scene.replace(cwd=folder), script('"${CLAUDE_PROJECT_DIR}"/x.sh'))
    assert sorted(path.name for path in folder.iterdir()) == ["ran", "x.sh"]


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("#!/bin/sh\nexit 0\n", 0o644, "permission denied"),
        ("#!/bin/sh\r\nexit 0\r\n", 0o755, "its first line ends in CR LF"),
        ("#!/no/such/program\nexit 0\n", 0o755, "its interpreter is not found"),
        ("exit 0\n", 0o755, "exec format error"),
    ],
)
def test_a_script_that_cannot_be_started_says_why(scene: Scene, text: str, mode: int, why: str) -> None:
    executable(scene.cwd / "x.sh", text).chmod(mode)
    decision = fire(scene, script("./x.sh", args=()))
    assert denied(decision)
    assert why in decision.reason


@pytest.mark.parametrize("text", ["#!/bin/sh\r\nexit 0\r\n", "#!/no/such/program\n"])
def test_a_shell_that_cannot_start_a_script_blocks_as_well(scene: Scene, text: str) -> None:
    executable(scene.cwd / "x.sh", text)
    assert denied(fire(scene, script("./x.sh")))


@pytest.mark.parametrize("args", [None, ()])
def test_a_command_no_system_can_run_is_a_hook_that_failed(
    scene: Scene, args: tuple[str, ...] | None
) -> None:
    assert denied(fire(scene, script("echo \0", args=args)))


def test_a_script_may_leave_its_input_unread(scene: Scene) -> None:
    payload = BASH.replace(tool_input={"command": "x" * 1_000_000})
    assert not denied(fire(scene, script("exit 0"), payload=payload))


def test_stdin_ends_after_the_object(scene: Scene) -> None:
    assert not denied(fire(scene, script("cat > /dev/null; cat", timeout=5)))


@pytest.mark.parametrize(
    "leaving",
    [
        "sleep {} &",
        "setsid sleep {} &",
        "(setsid sh -c 'trap \"\" TERM; sleep {}' &);",
        "nohup sleep {} >/dev/null 2>&1 &",
    ],
)
def test_a_child_left_behind_holds_nobody_and_is_ended(scene: Scene, leaving: str) -> None:
    begin = time.monotonic()
    said = f'{leaving.format(LONG)} echo \'{{"decision": "allow", "reason": "r"}}\''
    decision = fire(scene, script(said, timeout=60))
    assert time.monotonic() - begin < 30
    assert decision.reasons == ("r",)
    assert [line for line in commands() if LONG in line] == []


def test_a_hook_that_ignores_term_is_killed(scene: Scene) -> None:
    begin = time.monotonic()
    assert denied(fire(scene, script(f"trap '' TERM; while :; do sleep {LONG}; done", timeout=0.2)))
    assert time.monotonic() - begin < 30
    assert [line for line in commands() if LONG in line] == []


def test_a_deadline_holds_for_output_as_well(scene: Scene) -> None:
    begin = time.monotonic()
    assert denied(fire(scene, script("while :; do echo x; sleep 0.05; done", timeout=0.3)))
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_cut_short_and_costs_no_memory(scene: Scene, stream: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.monotonic()
    decision = fire(scene, script(f"yes {stream}", timeout=60))
    assert time.monotonic() - begin < 30
    assert "printed more than 64 KiB" in decision.reason
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_much_on_stderr_is_no_failure(scene: Scene) -> None:
    assert not denied(fire(scene, script("head -c 200000 /dev/zero >&2")))


def test_stderr_is_not_taken_for_output(scene: Scene) -> None:
    assert not denied(fire(scene, script("""echo '{"decision": "deny"}' >&2""")))


def test_escape_sequences_do_not_reach_the_terminal(scene: Scene) -> None:
    decision = fire(scene, script(r"printf '\033]52;c;eA==\007' >&2; exit 1"))
    assert "\x1b" not in decision.notices[0]
    assert r"\x1b]52" in decision.notices[0]


@pytest.mark.parametrize("extra", [0, 1])
def test_a_long_context_is_kept_in_a_file(scene: Scene, extra: int) -> None:
    text = "x" * (MAX_HOOK_TEXT + extra)
    (scene.cwd / "said").write_text(text)
    (context,) = fire(scene, script("cat said", point=Point.SESSION_START)).contexts
    if not extra:
        assert context == text
        return
    (kept,) = scene.outputs.iterdir()
    assert kept.read_text() == text
    assert kept.stat().st_mode & 0o777 == 0o600
    assert len(context) < MAX_HOOK_TEXT / 2
    assert str(kept) in context


def test_a_text_that_cannot_be_kept_is_a_failure(scene: Scene) -> None:
    scene.outputs.write_text("in the way")
    (scene.cwd / "said").write_text("x" * (MAX_HOOK_TEXT + 1))
    decision = fire(scene, script("cat said", point=Point.SESSION_START))
    assert decision.contexts == ()
    assert "cannot be kept" in decision.notices[0]


def test_bytes_that_are_no_text_are_no_failure(scene: Scene) -> None:
    decision = fire(scene, script(r"printf '\377\376'", point=Point.SESSION_START))
    assert (len(decision.contexts), decision.notices) == (1, ())


def test_a_byte_order_mark_does_not_hide_a_denial(scene: Scene) -> None:
    assert denied(fire(scene, script(r"""printf '\357\273\277{"decision": "deny"}'""")))


def test_a_script_has_no_terminal_and_a_session_of_its_own(scene: Scene) -> None:
    fire(scene, script("ps -o sid= -p $$ > sid 2>/dev/null || cut -d' ' -f6 /proc/$$/stat > sid"))
    assert int((scene.cwd / "sid").read_text()) != os.getsid(0)


def test_the_payloads_of_all_points_have_their_type() -> None:
    assert {point: type(payload) for point, payload in PAYLOADS.items()} == {
        point: rules.payload for point, rules in POINTS.items()
    }


def commands() -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue  # it ended while we looked
    return found
