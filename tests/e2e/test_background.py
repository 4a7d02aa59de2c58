"""A role starts a server, asks it, and leaves it running: it is gone with the role."""

from tests.support import play
from tests.support.processes import processes
from tests.support.repo import NewRepo

SERVE = "python3 -u -m http.server 8123 --bind 127.0.0.1"
GET = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/calc.py').read().decode())"
ASK = f'for _ in $(seq 300); do python3 -c "{GET}" 2>/dev/null && exit; done; exit 1'


def test_a_server_of_a_role_is_asked_and_gone_with_the_role(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    script = [
        play.role(
            "implementer",
            play.turn(play.call("Bash", command=f"touch left; {SERVE}", run_in_background=True)),
            play.turn(play.call("Bash", command=ASK)),
            play.turn(play.call("BashOutput", bash_id="bash_1")),
            *play.MENDED,
            play.submit("calc.py"),
        ),
    ]
    done = repo.task("fix add() in calc.py", script=script)
    (run,) = repo.runs("implementer")
    said = {call["name"]: result["content"] for call, result in run.calls}
    assert "def add(" in next(r["content"] for c, r in run.calls if c["input"].get("command") == ASK), (
        done.err
    )
    assert '"GET /calc.py HTTP/1.1" 200' in said["BashOutput"]
    assert processes(SERVE) == set()
    assert not (repo.root / "left").exists()
    assert done.code == 0, done.err
