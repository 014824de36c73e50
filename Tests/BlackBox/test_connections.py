# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Single connections that do what real clients rarely do: a byte at a time, half-closes, resets in every state, hang-ups."""

import os
import resource
import signal
import socket
import threading

import pytest

import raw
from daemon import until

MEGA = 1 << 20
HELLO = raw.request("GET", "/hello")


def gone(door):
    until(lambda: door.open_connections() == 0, lambda: f"{door.open_connections()} connections are still open")


def test_a_head_may_come_byte_by_byte(door):
    with raw.connect(door.address) as connection:
        for byte in HELLO:
            connection.send(bytes([byte]))
        assert raw.Answer(raw.read_to_end(connection)).status == 200


def test_a_head_of_16_KB_may_come_byte_by_byte_and_costs_little(door):
    """Work in proportion to the length: 16 384 reads of one byte each, not 16 384 parses of a growing head."""
    head = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nX: "
    data = head + b"a" * (16384 - len(head)) + b"\r\n\r\n"
    before = door.cpu()
    with raw.connect(door.address) as connection:
        for byte in data:
            connection.send(bytes([byte]))
        assert raw.Answer(raw.read_to_end(connection)).status == 200
    assert door.cpu() - before < 4


def test_a_body_may_come_in_pieces_of_1_KB(door, body):
    data = body(4 * MEGA)[1]
    request = raw.request("POST", "/echo", data)
    with raw.connect(door.address) as connection:
        for start in range(0, len(request), 1024):
            connection.sendall(request[start:start + 1024])
        assert raw.Answer(raw.read_to_end(connection)).body == data


def test_100_continue_is_said_once_and_before_the_body(door):
    with raw.connect(door.address) as connection:
        connection.sendall(b"PUT /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert raw.read_some(connection, 25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for byte in b"abcd":
            connection.send(bytes([byte]))
        answer = raw.Answer(raw.read_to_end(connection))
        assert (answer.status, answer.body, answer.interim) == (200, b"abcd", [])


@pytest.mark.parametrize("head, status, reason", [
    (b"Transfer-Encoding: chunked\r\n", 400, "chunked bodies are not spoken here; send Content-Length"),
    (b"Content-Length: 33554433\r\n", 413, "the body is 33554433 bytes, over 33554432"),
    (b"Content-Length: five\r\n", 400, "Content-Length is not a number"),
])
def test_a_refusal_takes_the_place_of_100_continue(door, head, status, reason):
    answer = raw.exchange(door.address, b"PUT /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" + head + b"\r\n")
    assert (answer.interim, answer.status, answer.reason) == ([], status, reason)


@pytest.mark.parametrize("data, reason", [
    (b"GET /hello HTTP/1.1\nHost: localhost\n\n", "a line ends in LF alone"),
    (b"GET /hello HTTP/1.1\r\nHost: local host\r\n\r\n", "Host is not a host and port"),
    (b"GET /hello HTTP/1.1\r\n\r\n", "an HTTP/1.1 request needs a Host"),
    (bytes.fromhex("16030100c8010000c40303"), "the first byte cannot begin a request"),
    (b"GET /hello\r\n", "the request line is not METHOD PATH HTTP/1.x"),
    (b"*1\r\n$4\r\nPING\r\n", "the request line is not METHOD PATH HTTP/1.x"),
])
def test_what_is_no_request_is_refused_at_once_with_the_reason(door, data, reason):
    answer, seconds = raw.timed(lambda: raw.exchange(door.address, data))
    assert (answer.status, answer.reason) == (400, reason)
    assert seconds < 5


# Half-closes.

def test_an_unfinished_request_is_dropped_at_the_end_of_stream(door):
    for data in (b"G", b"GET /hello HTTP/1.1\r\n", HELLO[:-1], b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234"):
        with raw.connect(door.address) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert raw.read_to_end(connection) == b""


def test_a_half_closed_client_gets_its_answer(door):
    for _ in range(100):
        assert raw.exchange(door.address, HELLO, half_close=True).status == 200


def test_a_client_that_half_closes_while_it_waits_has_left(door):
    """/wait declares that it waits, so the end of stream ends it, long before its time."""
    with raw.connect(door.address) as connection:
        connection.sendall(raw.request("GET", "/wait?seconds=25"))
        until(lambda: door.open_connections() == 1, "asked")
        connection.shutdown(socket.SHUT_WR)
        gone(door)
        assert raw.fate(connection)[0] == b""


def test_a_client_that_half_closes_behind_a_request_for_the_pool_gets_its_answer(door):
    for _ in range(50):
        assert raw.exchange(door.address, raw.request("GET", "/status"), half_close=True).status == 200


def test_a_client_that_half_closes_while_its_answer_is_written_gets_all_of_it(door, body):
    data = body(8 * MEGA)[1]
    with raw.connect(door.address, receive_buffer=65536) as connection:
        connection.sendall(raw.request("POST", "/echo", data))
        first = raw.read_some(connection, 1000)
        connection.shutdown(socket.SHUT_WR)
        assert raw.Answer(first + raw.read_to_end(connection)).body == data


# Resets.

def reset_before_a_byte(connection, data):
    pass


def reset_in_the_head(connection, data):
    connection.sendall(HELLO[:20])


def reset_in_the_body(connection, data):
    connection.sendall(raw.request("POST", "/echo", data)[:100_000])


def reset_behind_the_request(connection, data):
    connection.sendall(HELLO)


def reset_while_the_handler_runs(connection, data):
    connection.sendall(raw.request("GET", "/wait?seconds=1"))


def reset_while_the_answer_is_written(connection, data):
    connection.sendall(raw.request("POST", "/echo", data))
    raw.read_some(connection, 1000)


def reset_while_lingering(connection, data):
    connection.sendall(HELLO + HELLO)
    raw.read_to_end(connection)


def reset_behind_a_refusal(connection, data):
    connection.sendall(b"GET /\n" + b"x" * 100_000)


STATES = [reset_before_a_byte, reset_in_the_head, reset_in_the_body, reset_behind_the_request, reset_while_the_handler_runs,
          reset_while_the_answer_is_written, reset_while_lingering, reset_behind_a_refusal]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("defers", [True, False], ids=["deferred accept", "no deferred accept"])
def test_a_connection_may_be(doord, body, state, defers):
    door = doord(*([] if defers else ["--no-defer"]))
    data = body(8 * MEGA)[1]
    for _ in range(20):
        connection = raw.connect(door.address, receive_buffer=65536)
        state(connection, data)
        raw.reset(connection)
    gone(door)
    assert door.get("/hello").status == 200


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__.replace("reset", "closed"))
def test_a_connection_may_be_plainly(door, body, state):
    data = body(8 * MEGA)[1]
    for _ in range(20):
        connection = raw.connect(door.address, receive_buffer=65536)
        state(connection, data)
        connection.close()
    gone(door)
    assert door.get("/hello").status == 200


def test_connections_reset_before_they_are_accepted_do_no_harm(doord):
    """The door is stopped while a hundred clients connect and reset, so that it finds nothing but dead children."""
    door = doord("--no-defer")
    door.send(signal.SIGSTOP)
    try:
        for index in range(100):
            connection = raw.connect(door.address)
            if index % 2:
                connection.sendall(HELLO)
            raw.reset(connection)
    finally:
        door.send(signal.SIGCONT)
    assert door.get("/hello").status == 200
    gone(door)


# Hang-ups while nothing is read.

def test_a_hang_up_while_reading_is_paused_behind_a_request_is_noticed(door):
    """More than 16 KiB behind a whole request stop the read watcher; the answer then runs into the reset."""
    for _ in range(5):
        connection = raw.connect(door.address)
        connection.sendall(raw.request("GET", "/wait?seconds=1") + b"x" * 65536)
        raw.reset(connection)
    gone(door)


def test_a_hang_up_while_reading_is_paused_by_the_budget_is_noticed(doord, body):
    door = doord("--host", "127.0.0.1", "--max-buffered", str(MEGA), "--max-body", str(MEGA))
    request = raw.request("POST", "/echo", body(MEGA)[1])
    connections = []
    for _ in range(8):
        connection = raw.connect(door.address)
        connection.setblocking(False)
        sent = 0
        try:
            while sent < len(request) - 1:
                sent += connection.send(request[sent:-1])
        except BlockingIOError:
            pass
        connections.append(connection)
    assert door.get("/hello").status == 200
    for index, connection in enumerate(connections):
        raw.reset(connection) if index % 2 else connection.close()
    gone(door)


# Descriptors.

def fill(door, count):
    """Opens connections with a byte each, so that they are accepted, and says which are still open a moment later."""
    connections = []
    for _ in range(count):
        try:
            connection = raw.connect(door.address)
            connection.send(b"G")
            connections.append(connection)
        except OSError:
            pass
    return connections


def test_a_door_with_80_descriptors_survives_200_connections(doord):
    """Its limit of connections follows the descriptor limit, so the rest is refused with a sentence and nothing runs out."""
    door = doord("--host", "127.0.0.1", prefix=["prlimit", "--nofile=80:80"])
    limit = door.status()["limits"]["maxConnections"]
    assert 8 <= limit < 80
    gone(door)
    connections = fill(door, limit)
    until(lambda: door.descriptors()["socket"] == door.first_descriptors["socket"] + limit, "the door is full")
    for _ in range(200 - limit):
        answer = door.get("/hello")
        assert answer.status == 503 and answer.header("Retry-After")
    for connection in connections:
        connection.close()
    until(lambda: hello_works(door), "served again")
    gone(door)


def hello_works(door):
    try:
        return door.get("/hello").status == 200
    except (AssertionError, OSError):
        return False


def test_descriptor_exhaustion_is_survived_and_noticed_once(doord):
    """The limit is lowered under the running door, so that accept itself fails with EMFILE."""
    door = doord("--host", "127.0.0.1")
    soft, hard = resource.prlimit(door.pid, resource.RLIMIT_NOFILE)
    top = door.highest_descriptor() + 1
    resource.prlimit(door.pid, resource.RLIMIT_NOFILE, (top + 4, hard))
    try:
        connections = fill(door, 30)
        until(lambda: door.descriptors()["socket"] >= door.first_descriptors["socket"] + 2, "full")
        assert door.running()
        for connection in connections:
            connection.close()
        until(lambda: hello_works(door), "served again while the limit is still low")
    finally:
        resource.prlimit(door.pid, resource.RLIMIT_NOFILE, (soft, hard))
    gone(door)
    notices = [line for line in door.log_lines() if "descriptors" in line]
    assert 1 <= len(notices) <= len(door.status()["loops"]), notices


def test_a_door_out_of_descriptors_does_not_spin(doord):
    door = doord("--host", "127.0.0.1")
    soft, hard = resource.prlimit(door.pid, resource.RLIMIT_NOFILE)
    top = door.highest_descriptor() + 1
    resource.prlimit(door.pid, resource.RLIMIT_NOFILE, (top, hard))
    try:
        before, connections = door.cpu(), fill(door, 10)
        # A second of exhaustion with clients in the queue, watched through the CPU time it must not take.
        threading.Event().wait(1)
        assert door.cpu() - before < 0.3
        for connection in connections:
            connection.close()
    finally:
        resource.prlimit(door.pid, resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: hello_works(door), "served again")


def test_a_thousand_open_connections_hold_a_thousand_descriptors_and_give_them_back(doord):
    door = doord("--host", "127.0.0.1")
    connections = fill(door, 1000)
    until(lambda: door.open_connections() == 1000, "all open")
    assert door.descriptors()["socket"] == door.first_descriptors["socket"] + 1000
    for connection in connections:
        os.close(connection.detach())
    gone(door)
