# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Signals, the graceful stop, and coming back."""

import ctypes
import fcntl
import os
import pathlib
import re
import resource
import signal
import subprocess
import threading

import pytest

import daemon
import raw
from daemon import until

WAIT = raw.request("GET", "/wait?seconds=1")
LONG = raw.request("GET", "/wait?seconds=25")


def asked(door, request=LONG):
    """A connection whose request the door is working on."""
    connection = raw.connect(door.address)
    connection.sendall(request)
    until(lambda: door.open_connections() >= 1, "the request arrived")
    return connection


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_it_stops_with_exit_status_0_at_once_when_nothing_runs(doord, number):
    door = doord()
    assert door.get("/hello").status == 200
    _, seconds = raw.timed(lambda: door.stop(number))
    assert seconds < 2


def full_pipe():
    """A pipe without room whose reader does not read: (reading end, writing end)."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (65536, 1):
        try:
            while os.write(writer, b"x" * size):
                pass
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)
    return reader, writer


def threads(pid):
    """Its threads: {name: identifier}."""
    return {task.read_text().strip(): int(task.parent.name) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/comm")}


def pending_signals(pid):
    return int(re.search(r"ShdPnd:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1], 16)


def ptrace(request, thread):
    """ptrace(2). Its requests by number: SEIZE and INTERRUPT stop one thread and no other, DETACH lets it run."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.ptrace(request, thread, None, None)
    assert result == 0, os.strerror(ctypes.get_errno())


def test_it_serves_and_stops_though_nobody_reads_its_standard_output_and_error(tmp_path):
    path = tmp_path / "door.sock"
    reader, writer = full_pipe()
    process = subprocess.Popen([daemon.binary(), "--unix", path], stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
    try:
        until(path.is_socket, "listening")
        assert raw.get(str(path), "/hello").status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


def test_a_port_in_use_ends_it_though_nobody_reads_its_standard_error(door):
    reader, writer = full_pipe()
    try:
        done = subprocess.run([daemon.binary(), "--port", str(door.port)], stdin=subprocess.DEVNULL, stderr=writer, timeout=10)
        assert done.returncode == 1
    finally:
        os.close(reader)
        os.close(writer)


def test_a_signal_ends_it_while_it_starts(tmp_path):
    """The start waits for the directory of its socket, which somebody has locked."""
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = subprocess.Popen([daemon.binary(), "--unix", tmp_path / "door.sock"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until(lambda: "doord-signals" in threads(process.pid), "its thread for signals")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert not (tmp_path / "door.sock").exists()
    finally:
        process.kill()
        process.wait()
        os.close(lock)


def test_without_a_thread_for_signals_it_does_not_start():
    def limit():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)  # nobody: the limit is not root's
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    code, _, said = daemon.run("--port", "0", preexec_fn=limit)
    assert code == 1 and "doord-signals cannot be started" in said


def test_a_second_signal_ends_it_though_a_loop_hangs(doord):
    """A loop whose thread is stopped is one that hangs in a handler: it never comes round."""
    door = doord("--host", "127.0.0.1", "--probe", "0")
    loop = until(lambda: threads(door.pid).get("door-loop-0"), "its loop")
    seize, interrupt, detach = 0x4206, 0x4207, 17
    ptrace(seize, loop)
    ptrace(interrupt, loop)
    os.waitpid(loop, 0x40000000)  # __WALL: a thread is waited for too
    try:
        door.send(signal.SIGTERM)
        until(lambda: not pending_signals(door.pid), "the first was taken")
        door.send(signal.SIGTERM)
        # A thread that is traced is gone when its tracer has heard of it.
        _, seconds = raw.timed(lambda: until(lambda: os.waitpid(loop, 0x40000000 | os.WNOHANG)[0], "the end", 10))
    except BaseException:
        ptrace(detach, loop)
        raise
    assert door.wait(5) == 1 and seconds > 2.5 and "something hangs" in door.log()


def test_SIGHUP_does_not_end_it(door):
    for _ in range(3):
        door.send(signal.SIGHUP)
        assert door.get("/hello").status == 200


def test_SIGPIPE_does_not_end_it(door):
    door.send(signal.SIGPIPE)
    assert door.get("/hello").status == 200


def test_a_running_handler_is_finished_before_the_end(door):
    connection = asked(door, WAIT)
    door.send(signal.SIGTERM)
    assert raw.Answer(raw.read_to_end(connection)).status == 200
    connection.close()
    assert door.wait() == 0


def test_new_connections_are_refused_while_it_drains(door):
    connection = asked(door, WAIT)
    door.send(signal.SIGTERM)

    def refused():
        try:
            raw.connect(door.address).close()
        except ConnectionRefusedError:
            return True

    until(refused, "connections are refused", seconds=0.9)
    assert raw.Answer(raw.read_to_end(connection)).status == 200
    connection.close()
    assert door.wait() == 0


def test_a_handler_that_still_runs_at_the_drain_deadline_is_answered_503(doord):
    door = doord("--drain", "300ms")
    connection = asked(door)
    door.send(signal.SIGTERM)
    answer, seconds = raw.timed(lambda: raw.Answer(raw.read_to_end(connection)))
    assert (answer.status, answer.reason) == (503, "the server is stopping")
    assert 0.2 < seconds < 5
    connection.close()
    assert door.wait(5) == 0


def test_a_second_signal_cuts_at_once(door):
    connection = asked(door)
    door.send(signal.SIGTERM)
    until(lambda: door.descriptors()["socket"] < door.first_descriptors["socket"], "the listeners are closed")
    door.send(signal.SIGTERM)
    code, seconds = raw.timed(lambda: door.wait(5))
    assert code == 0 and seconds < 3
    raw.fate(connection)
    connection.close()


def test_half_requests_and_silent_clients_do_not_hold_it_up_past_the_drain_deadline(doord):
    door = doord("--drain", "300ms", "--no-defer")
    silent, half = raw.connect(door.address), raw.connect(door.address)
    half.sendall(b"GET /hello HTTP/1.1\r\n")
    until(lambda: door.open_connections() == 2, "both accepted")
    door.send(signal.SIGTERM)
    code, seconds = raw.timed(lambda: door.wait(10))
    assert code == 0 and seconds < 4
    silent.close()
    half.close()


def test_an_answer_under_way_is_finished_before_the_end(door, body):
    data = body(16 << 20)[1]
    with raw.connect(door.address, receive_buffer=65536) as connection:
        connection.sendall(raw.request("POST", "/echo", data))
        first = raw.read_some(connection, 1000)
        door.send(signal.SIGTERM)
        assert raw.Answer(first + raw.read_to_end(connection)).body == data
    assert door.wait() == 0


@pytest.mark.parametrize("kind", ["tcp", "tcp, no deferred accept", "two loops", "unix"])
def test_a_connect_storm_while_it_stops_loses_no_accepted_request(doord, tmp_path, kind, record_property):
    """Every client either gets a whole answer or none: no part of one, and as many whole ones as the log has lines. What the
    kernel still had in its queue when the listener was closed may be reset; it is counted."""
    flags = {"tcp": [], "tcp, no deferred accept": ["--no-defer"], "two loops": ["--loops", "2"], "unix": []}[kind]
    where = ["--unix", tmp_path / "door.sock"] if kind == "unix" else ["--host", "127.0.0.1"]
    door = doord(*where, *flags, "--probe", "0")
    counts = {"answered": 0, "refused": 0, "reset": 0, "empty": 0, "part": 0}
    lock, ended = threading.Lock(), threading.Event()

    def client():
        request = raw.request("GET", "/hello")
        while not ended.is_set():
            data = b""
            try:
                with raw.connect(door.address) as connection:
                    connection.sendall(request)
                    while piece := connection.recv(65536):
                        data += piece
                outcome = "answered" if data else "empty"
                if data:
                    raw.Answer(data)
            except (ConnectionRefusedError, FileNotFoundError):
                outcome = "refused"
            except (ConnectionResetError, BrokenPipeError):
                outcome = "part" if data else "reset"
            except AssertionError:
                outcome = "part"
            with lock:
                counts[outcome] += 1
            if outcome == "refused":
                return

    threads = [threading.Thread(target=client) for _ in range(16)]
    for thread in threads:
        thread.start()
    until(lambda: counts["answered"] > 500, "the storm is on", 30)
    door.send(signal.SIGTERM)
    code = door.wait()
    ended.set()
    for thread in threads:
        thread.join()
    record_property("counts", counts)
    assert code == 0
    assert counts["part"] == 0 and counts["empty"] == 0, counts
    logged = sum("/hello" in line for line in door.log_lines())
    assert logged == counts["answered"], (logged, counts)
    assert counts["reset"] <= 64, counts


def test_killed_it_can_be_started_again_on_the_same_port_at_once(doord):
    door = doord()
    connection = asked(door)
    door.send(signal.SIGKILL)
    assert door.wait() == -signal.SIGKILL
    again = doord("--port", str(door.port))
    assert again.port == door.port and again.get("/hello").status == 200
    connection.close()


def test_stopped_it_can_be_started_again_on_the_same_port_at_once(doord):
    door = doord()
    for _ in range(50):
        assert door.get("/hello").status == 200
    door.stop()
    assert doord("--port", str(door.port)).get("/hello").status == 200


def test_killed_it_replaces_its_stale_unix_socket(doord, tmp_path):
    path = tmp_path / "door.sock"
    door = doord("--unix", path)
    door.send(signal.SIGKILL)
    door.wait()
    assert path.is_socket()
    assert doord("--unix", path).get("/hello").status == 200


def test_stopped_it_leaves_no_unix_socket_behind(doord, tmp_path):
    path = tmp_path / "door.sock"
    doord("--unix", path).stop()
    assert not path.exists()


def test_no_thread_is_left_of_a_thousand_requests(door):
    """The pool's threads and the runtime's come with the first requests, and then no more."""
    threads = lambda: len(os.listdir(f"/proc/{door.pid}/task"))  # noqa: E731

    def ask(times):
        return max(threads() for _ in range(times) for path in ("/hello", "/wait?seconds=0", "/status") if door.get(path))

    most = ask(50)
    ask(350)
    until(lambda: threads() <= most, lambda: f"{most} threads after 150 requests, now {threads()}")
