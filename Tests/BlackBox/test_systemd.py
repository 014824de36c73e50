# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""The self-probe, and what systemd hears and hands over."""

import os
import signal
import socket
import subprocess
import sys

import pytest

import daemon
import raw
from daemon import until

# Takes the sockets at descriptors 90, 91, … to where systemd puts them, then becomes doord.
LAUNCHER = """
import os, sys
for index in range(int(sys.argv[1])):
    os.dup2(90 + index, 3 + index)
    os.close(90 + index)
os.environ["LISTEN_FDS"], os.environ["LISTEN_PID"] = sys.argv[1], sys.argv[2] if sys.argv[2] != "me" else str(os.getpid())
os.execv(sys.argv[3], sys.argv[3:])
"""


class Manager:
    """The datagram socket of a service manager."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(10)
        self.heard = []

    def until(self, state):
        """Reads until a note says `state`; how many notes that took is no matter."""
        while state not in self.heard:
            self.heard += self.socket.recv(4096).decode().split("\n")
        self.heard.clear()


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    name = str(tmp_path / "notify") if request.param == "path" else f"\0door-test-{os.getpid()}"
    manager = Manager(name)
    manager.name = name.replace("\0", "@")
    yield manager
    manager.socket.close()


def test_systemd_hears_READY_WATCHDOG_and_STOPPING(doord, manager):
    door = doord("--host", "127.0.0.1", env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "2000000"})
    manager.until("READY=1")
    assert door.get("/hello").status == 200
    for _ in range(2):
        manager.until("WATCHDOG=1")
    connection = raw.connect(door.address)
    connection.sendall(raw.request("GET", "/wait?seconds=1"))
    until(lambda: door.open_connections() == 1, "asked")
    door.send(signal.SIGTERM)
    manager.until("STOPPING=1")
    assert raw.Answer(raw.read_to_end(connection)).status == 200
    connection.close()
    assert door.wait() == 0


def test_a_watchdog_meant_for_another_process_is_left_alone(doord, manager):
    door = doord("--host", "127.0.0.1", env={"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"})
    manager.until("READY=1")
    door.stop()
    manager.until("STOPPING=1")
    assert "WATCHDOG=1" not in manager.heard


def inherited(doord, sockets, *flags, pid="me", addresses=None):
    """A doord that finds `sockets` from descriptor 3 on."""
    for index, opened in enumerate(sockets):
        os.dup2(opened.fileno(), 90 + index, inheritable=True)
    try:
        return doord(*flags, prefix=[sys.executable, "-c", LAUNCHER, str(len(sockets)), pid],
                     pass_fds=[90 + index for index in range(len(sockets))], addresses=addresses or len(sockets))
    finally:
        for index in range(len(sockets)):
            os.close(90 + index)


def listening(family, address):
    opened = socket.socket(family)
    opened.bind(address)
    opened.listen(128)
    return opened


def test_a_socket_of_systemd_is_listened_on_instead_of_the_default(doord):
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as opened:
        door = inherited(doord, [opened])
        assert door.tcp == [opened.getsockname()]
    for _ in range(20):
        assert door.get("/hello").status == 200
    # It is reachable by its loopback name only, as if the door had opened it.
    assert door.get("/hello", host="evil.example").status == 421


def test_several_sockets_of_systemd_are_all_listened_on(doord, tmp_path):
    path = str(tmp_path / "door.sock")
    with listening(socket.AF_INET6, ("::1", 0)) as first, listening(socket.AF_UNIX, path) as second:
        door = inherited(doord, [first, second], "--loops", "2")
    for address in (door.tcp[0], path):
        for _ in range(10):
            assert raw.get(address, "/hello").status == 200


def test_the_hint_for_an_inherited_abstract_socket_works(doord):
    name = f"door-hint-{os.getpid()}"
    with listening(socket.AF_UNIX, "\0" + name) as opened:
        door = inherited(doord, [opened])
        until(lambda: "/hello" in door.stdout or door.read_more(), "the hint")
    hint = next(line for line in door.stdout.splitlines() if line.startswith("try: "))
    assert hint == f"try: curl --abstract-unix-socket {name} http://localhost/hello"
    answer = subprocess.run([*hint.removeprefix("try: ").split(), "-s"], capture_output=True, timeout=20)
    assert answer.returncode == 0 and b'"ok":true' in answer.stdout, answer


def test_a_connection_that_waits_in_an_inherited_socket_is_served(doord):
    """Socket activation: the first client came before the door."""
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as opened:
        early = raw.connect(opened.getsockname())
        early.sendall(raw.request("GET", "/hello"))
        door = inherited(doord, [opened])
    assert raw.Answer(raw.read_to_end(early)).status == 200
    early.close()
    door.first_descriptors["socket"] = 1  # it may have been counted with the client that was there already


def test_sockets_meant_for_another_process_are_left_alone(doord):
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as opened:
        door = inherited(doord, [opened], "--port", "0", pid="1", addresses=2)
        assert opened.getsockname()[1] != door.port


def test_a_descriptor_that_does_not_listen_is_an_error():
    with socket.socket() as opened:
        os.dup2(opened.fileno(), 90, inheritable=True)
        try:
            done = subprocess.run([sys.executable, "-c", LAUNCHER, "1", "me", daemon.binary()], pass_fds=[90], capture_output=True, timeout=20)
        finally:
            os.close(90)
    assert done.returncode == 1 and b"not a listening" in done.stderr


# The self-probe.

def hits(door):
    return [target["state"] for target in door.status()["probe"]["addresses"]]


def test_the_probe_asks_every_address_and_its_state_is_in_status_and_metrics(doord):
    door = doord("--probe", "1")
    until(lambda: hits(door) == ["hit", "hit"], "probed")
    metrics = door.metrics()
    assert set(metrics["doord_probe_up"].values()) == {1.0} and set(metrics["doord_probe_misses"].values()) == {0.0}


def test_the_probe_asks_a_unix_socket(doord, tmp_path):
    door = doord("--unix", tmp_path / "door.sock", "--probe", "1")
    until(lambda: hits(door) == ["hit"], "probed")


def test_the_probe_is_exempt_from_gate_names_and_limits(doord):
    door = doord("--host", "127.0.0.1", "--probe", "1", "--allow", "127.0.0.9", "--name", "door.example", "--per-address", "1")
    ask = raw.request("GET", "/metrics", host="door.example")
    until(lambda: b'doord_probe_up{address="' + f"127.0.0.1:{door.port}".encode() + b'"} 1\n'
          in raw.exchange(door.address, ask, source="127.0.0.9").body, "probed")


def test_the_probe_is_not_in_the_access_log(doord):
    door = doord("--host", "127.0.0.1", "--probe", "1")
    until(lambda: hits(door) == ["hit"], "probed")
    assert not any("/hello" in line for line in door.log_lines())


def test_without_a_probe_nothing_is_asked(doord):
    door = doord("--host", "127.0.0.1", "--probe", "0")
    assert hits(door) == ["none"] and door.status()["acceptedConnections"] == 2
