# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Limits of number and size, the gate, and clients behind a trusted proxy."""

import contextlib
import socket

import pytest

import raw
from daemon import until

MEGA = 1 << 20
HELLO = raw.request("GET", "/hello")


@contextlib.contextmanager
def occupied(door, count, source=None):
    """Holds that many accepted connections open."""
    before = door.descriptors()["socket"]
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(raw.connect(door.address, source=source))
            connection.send(b"G")
        until(lambda: door.descriptors()["socket"] == before + count, "accepted")
        yield
    until(lambda: door.descriptors()["socket"] == before, "given back")


def test_over_the_limit_of_connections_a_client_is_told_503_and_when_to_come_back(doord):
    door = doord("--max-connections", "4")
    with occupied(door, 4):
        for _ in range(20):
            answer = door.get("/hello")
            assert (answer.status, answer.reason) == (503, "too many connections; try again later")
            assert int(answer.header("Retry-After")) >= 1
    assert door.get("/hello").status == 200
    assert door.metric("doord_refusals_total", reason="connections") == 20


def test_over_the_limit_a_client_with_a_large_body_is_told_503_too(doord, body):
    door = doord("--max-connections", "1")
    with occupied(door, 1):
        answer = raw.exchange(door.address, raw.request("POST", "/echo", body(4 * MEGA)[1]))
        assert answer.status == 503


def test_over_the_limit_for_its_address_a_client_is_told_503_and_others_are_served(doord):
    door = doord("--host", "127.0.0.1", "--per-address", "2")
    with occupied(door, 2, source="127.0.0.9"):
        for _ in range(10):
            answer = raw.exchange(door.address, HELLO, source="127.0.0.9")
            assert (answer.status, answer.reason) == (503, "too many connections from this address")
        assert raw.exchange(door.address, HELLO, source="127.0.0.8").status == 200
    assert raw.exchange(door.address, HELLO, source="127.0.0.9").status == 200


@pytest.mark.parametrize("defers", [[], ["--no-defer"]], ids=["deferred accept", "no deferred accept"])
def test_a_client_outside_the_gate_is_reset_and_one_inside_is_served(doord, defers):
    door = doord("--host", "127.0.0.1", "--allow", "127.0.0.9", *defers)
    for _ in range(10):
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            with raw.connect(door.address) as connection:
                connection.sendall(HELLO)
                raw.read_some(connection, 1)
    assert raw.exchange(door.address, HELLO, source="127.0.0.9").status == 200
    metrics = raw.exchange(door.address, raw.request("GET", "/metrics"), source="127.0.0.9").body.decode()
    assert 'doord_connections_turned_away_total{reason="gate"} 10\n' in metrics


def test_a_gate_takes_networks_of_both_families(doord):
    door = doord("--allow", "127.0.0.0/29,::1/128")
    for address, source, served in [(door.tcp[0], "127.0.0.7", True), (door.tcp[0], "127.0.0.8", False), (door.tcp[1], None, True)]:
        with raw.connect(address, source=source) as connection:
            try:
                connection.sendall(HELLO)
                said = raw.read_to_end(connection)
            except (ConnectionResetError, BrokenPipeError):
                said = b""
        assert bool(said) is served, (address, source)


def test_a_gate_does_not_ask_unix_sockets(doord, tmp_path):
    assert doord("--unix", tmp_path / "door.sock", "--allow", "10.0.0.0/8").get("/hello").status == 200


# Behind a proxy.

def forwarded(door, value, source=None):
    return raw.exchange(door.address, raw.request("GET", "/hello", headers=[("X-Forwarded-For", value)]), source=source)


def test_the_gate_judges_the_client_that_a_trusted_proxy_names(doord):
    door = doord("--host", "127.0.0.1", "--allow", "10.0.0.0/8", "--trust", "127.0.0.1")
    assert forwarded(door, "10.1.2.3").status == 200
    assert forwarded(door, "192.0.2.7").status == 403
    # The last address is the one that the proxy itself saw; what stands before it the client may have written.
    assert forwarded(door, "10.1.2.3, 192.0.2.7").status == 403
    assert forwarded(door, "192.0.2.7, 10.1.2.3").status == 200
    assert forwarded(door, "nonsense").status == 403


def test_the_log_names_the_client_that_a_trusted_proxy_names_and_no_other(doord):
    door = doord("--host", "127.0.0.1", "--trust", "127.0.0.1")
    forwarded(door, "192.0.2.7")
    forwarded(door, "192.0.2.8", source="127.0.0.5")
    until(lambda: len(door.log_lines()) >= 2, "logged")
    first, second = door.log_lines()
    assert "192.0.2.7" in first and "192.0.2.8" not in second


# Sizes.

def test_the_limit_of_a_body_can_be_set(doord):
    door = doord("--max-body", "1000")
    assert raw.exchange(door.address, raw.request("POST", "/echo", b"x" * 1000)).body == b"x" * 1000
    answer = raw.exchange(door.address, raw.request("POST", "/echo", b"x" * 1001))
    assert (answer.status, answer.reason) == (413, "the body is 1001 bytes, over 1000")


def head_of(size):
    """A request whose head has `size` bytes before its CRLFCRLF."""
    start = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nX: "
    return start + b"a" * (size - len(start)) + b"\r\n\r\n"


@pytest.mark.parametrize("flags, limit", [([], 16384), (["--max-head", "1K"], 1024), (["--max-head", "64K"], 65536)])
def test_the_limit_of_a_head_is_exact_and_can_be_set(doord, flags, limit):
    door = doord(*flags)
    assert raw.exchange(door.address, head_of(limit)).status == 200
    answer = raw.exchange(door.address, head_of(limit + 1))
    assert (answer.status, answer.reason) == (413, f"the request head is over {limit} bytes")


def test_a_target_over_the_limit_is_414(doord):
    answer = raw.exchange(doord("--max-head", "1K").address, b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\n\r\n")
    assert (answer.status, answer.reason) == (414, "the request line is over 1024 bytes")


def test_unfinished_bodies_are_bounded_in_sum_and_small_requests_served_meanwhile(doord, body):
    """40 clients begin 16 MB each and never finish. Those that found no room are not read, but for the first, which may
    pass the limit by itself so that they do not wait for each other; a small request needs none."""
    door = doord("--host", "127.0.0.1", "--max-buffered", "32M")
    before = door.rss()
    request = raw.request("POST", "/echo", body(16 * MEGA)[1])[:-1]
    connections = []
    for _ in range(40):
        connection = raw.connect(door.address)
        connection.setblocking(False)
        connections.append(connection)
    sent = [0] * 40
    for _ in range(60):
        for index, connection in enumerate(connections):
            with contextlib.suppress(BlockingIOError):
                sent[index] += connection.send(request[sent[index]:sent[index] + MEGA])
        assert door.get("/hello").status == 200
    status = door.status()
    assert status["openConnections"] == 41
    assert status["bufferedBytes"] <= (32 + 16) * MEGA
    assert door.rss() - before < (32 + 16) * MEGA + 40 * 128 * 1024 + 8 * MEGA
    for connection in connections:
        raw.reset(connection)
    until(lambda: door.open_connections() == 0, "given back")
    assert door.status()["bufferedBytes"] == 0


def test_clients_that_had_to_wait_for_room_are_served_in_the_end(doord, body):
    import threading
    door = doord("--host", "127.0.0.1", "--max-buffered", "8M", "--max-body", "8M")
    data, wrong = body(6 * MEGA)[1], []

    def client():
        try:
            assert raw.exchange(door.address, raw.request("POST", "/echo", data)).body == data
        except (AssertionError, OSError) as failure:
            wrong.append(str(failure)[:200])

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_body_as_long_as_the_whole_budget_is_served(doord, body):
    door = doord("--max-buffered", "1M", "--max-body", "1M")
    data = body(MEGA)[1]
    assert raw.exchange(door.address, raw.request("POST", "/echo", data)).body == data


def test_no_limit_is_touched_by_a_client_that_only_connects(doord):
    """With deferred accept a connection without a byte is the kernel's, and no descriptor of ours for the first second."""
    door = doord("--host", "127.0.0.1", "--max-connections", "2")
    silent = [socket.create_connection(door.address) for _ in range(10)]
    assert door.get("/hello").status == 200
    for connection in silent:
        connection.close()
