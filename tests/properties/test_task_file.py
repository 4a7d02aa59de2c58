"""Any text survives the way into `task.md` and back, and through the events."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentflow.core.messages import Usage
from agentflow.core.role import Todo, TodoStatus
from agentflow.core.task import (
    FRONTMATTER_KEYS,
    Complexity,
    Gate,
    GateStatus,
    Intent,
    Phase,
    Status,
    TaskState,
)
from agentflow.store.reading import TASKS
from agentflow.store.task_file import read_task, write_task
from agentflow.store.tasks import TaskStore

TEXT = st.text(max_size=200)
COUNTS = st.integers(min_value=0, max_value=10**9)
GATES = st.builds(
    Gate,
    status=st.sampled_from(GateStatus),
    agent=st.none() | TEXT,
    tree=st.none() | TEXT,
    timestamp=st.none() | TEXT,
    message=TEXT,
)
TODOS = st.builds(Todo, id=COUNTS, title=TEXT, status=st.sampled_from(TodoStatus), evidence=st.none() | TEXT)
STATES = st.builds(
    TaskState,
    task_id=st.just("t"),
    task=TEXT,
    started_at=TEXT,
    max_iterations=COUNTS,
    model=TEXT,
    active=st.booleans(),
    status=st.sampled_from(Status),
    current_phase=st.sampled_from(Phase),
    iteration=COUNTS,
    task_complexity=st.sampled_from(Complexity),
    report_requested=st.booleans(),
    intent=st.builds(Intent, goal=TEXT, description=TEXT, actions=TEXT, constraints=TEXT, assumptions=TEXT),
    gates=st.dictionaries(st.sampled_from(Phase), GATES, max_size=3),
    todos=st.lists(TODOS, max_size=3).map(tuple),
    usage=st.builds(
        Usage,
        input=COUNTS,
        output=COUNTS,
        cost_usd=st.none() | st.floats(min_value=0, max_value=1e6, allow_subnormal=False),
    ),
    sandbox=TEXT,
    base_tree=st.none() | TEXT,
    tree=st.none() | TEXT,
)
BRIEFLY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def hard(text: str) -> TaskState:
    return TaskState(task_id="t", task=text, started_at="now", max_iterations=1, model="m")


@BRIEFLY
@given(STATES, TEXT)
@example(hard("quotes \" and ' # : \n---\nactive: false\n---\n"), "\n---\nstatus: verified\n---\n")
@example(hard("null"), "")
@example(hard("\u2028\x85\x0c\r\n\t\x00\x1b[0m\ufeff"), "")
@example(hard(" leading and trailing "), "")
@example(hard("- [x] {a: b} &x *x !x |\n  > %"), "")
def test_a_task_file_gives_the_state_back_whatever_its_text_and_log(task: TaskState, log: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.md"
        write_task(path, task, log)
        read = read_task(path)
    assert [getattr(read, key) for key in FRONTMATTER_KEYS] == [
        getattr(task, key) for key in FRONTMATTER_KEYS
    ]


@settings(BRIEFLY, max_examples=15)
@given(STATES, STATES)
def test_a_reopened_task_is_as_it_was_saved(first: TaskState, second: TaskState) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / TASKS).mkdir(parents=True)
        store = TaskStore.create(Path(folder), first)
        store.save(second)
        assert TaskStore.reopen(store.folder).task == second
