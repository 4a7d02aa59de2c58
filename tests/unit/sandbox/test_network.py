"""Which sockets commands have, and where they lead."""

import socket
from pathlib import Path

import pytest

from agentflow.sandbox.profile import CHECKS, SandboxOpenings
from tests.support.repo import Repo
from tests.unit.sandbox.conftest import Inside


def test_the_network_is_closed(inside: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = (
            f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('got', 'through')"
        )
        for who in ("explorer", "implementer", CHECKS):
            assert "got through" not in inside(who, f'python3 -c "{connect}"').tail
            opened = inside(who, f'python3 -c "{connect}"', opened=SandboxOpenings(network=(who,)))
            assert "got through" in opened.tail


def test_package_managers_do_not_look_for_a_network_that_is_closed(inside: Inside) -> None:
    look = "echo $COREPACK_ENABLE_NETWORK $npm_config_offline $UV_OFFLINE"
    assert inside(CHECKS, look).tail == "0 true true\n"
    assert inside(CHECKS, look, opened=SandboxOpenings(network=(CHECKS,))).tail == "\n"
    assert inside(CHECKS, look, opened=SandboxOpenings(environment={"UV_OFFLINE": "0"})).tail == "0 true 0\n"


AROUND = {
    "multipath TCP": "socket.socket(2, 1, 262).connect(to)",
    "fast open by sendto": "socket.socket().sendto(b'x', 0x20000000, to)",
    "fast open by sendmsg": "socket.socket().sendmsg([b'x'], [], 0x20000000, to)",
    "fast open by connect": "s = socket.socket(); s.setsockopt(6, 30, 1); s.connect(to); s.send(b'x')",
}


@pytest.mark.parametrize("way", AROUND)
def test_no_way_around_connect_leads_out(inside: Inside, way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; to = {server.getsockname()}; {AROUND[way]}; print('got', 'through')"
        for who in ("explorer", "implementer", CHECKS):
            assert "got through" not in inside(who, f'python3 -c "{code}"').tail
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_nobody_reaches_a_command_that_listens(inside: Inside, is_full: bool) -> None:
    code = "import os, socket; s = socket.socket(); s.listen(); print('on', os.readlink('/proc/self/ns/net'))"
    said = inside("explorer", f'python3 -c "{code}"').tail
    assert ("on net:" in said) is is_full
    assert Path("/proc/self/ns/net").readlink().name not in said


KINDS = {"UDP-Lite": (2, 2, 136), "SCTP": (2, 1, 132), "SMC": (2, 1, 256), "SMC itself": (43, 1, 0)}


@pytest.mark.parametrize("kind", KINDS)
def test_other_protocols_are_refused_also_with_a_network(inside: Inside, kind: str) -> None:
    code = f"import socket; socket.socket{KINDS[kind]}; print('got', 'through')"
    for opened in (SandboxOpenings(), SandboxOpenings(network=("explorer",))):
        assert "got through" not in inside("explorer", f'python3 -c "{code}"', opened=opened).tail


def test_sockets_of_this_machine_go_on_working(inside: Inside) -> None:
    code = """import multiprocessing, socket
socket.socketpair(); socket.socketpair(type=socket.SOCK_SEQPACKET)
socket.if_nameindex(); socket.socket(16, 3, 0); socket.socket(16, 2, 4)
with multiprocessing.Manager() as manager:
    print('works', manager.list([1]))"""
    for who in ("explorer", "implementer", CHECKS):
        assert inside(who, f'python3 -c "{code}"').tail == "works [1]\n"


def test_an_open_network_carries_datagrams(inside: Inside) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        code = f"import socket; socket.socket(2, 2).sendto(b'asked', {server.getsockname()})"
        inside("explorer", f'python3 -c "{code}"', opened=SandboxOpenings(network=("explorer",)))
        server.settimeout(5)
        assert server.recv(5) == b"asked"


def test_the_loopback_is_private(inside: Inside, is_full: bool) -> None:
    shell = """python3 -c "
import socket
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname(), 2)
print('got', 'through')" """
    assert ("got through" in inside("explorer", shell).tail) is is_full


def test_a_service_s_socket_is_out_of_reach(inside: Inside, repo: Repo, is_full: bool) -> None:
    code = "import socket; socket.socket(socket.AF_UNIX).connect('s'); print('got', 'through')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{repo.root}/s")
        server.listen()
        assert ("got through" in inside("explorer", f'python3 -c "{code}"').tail) is not is_full
