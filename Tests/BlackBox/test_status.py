# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""GET /status and GET /metrics, and that what they count is what happened."""

import subprocess

import pytest

import raw
from daemon import until

HELLO = raw.request("GET", "/hello")


def test_status_tells_what_the_door_does(door):
    for _ in range(5):
        door.get("/hello")
    status = door.status()
    assert status["ok"] is True and status["uptime"] >= 0
    assert status["openConnections"] == 1 and status["acceptedConnections"] == 6
    assert status["answers"]["200"] == 5 and status["bytesSent"] > 500
    assert status["limits"]["maxConnections"] > 64 and status["limits"]["idle"] == 30 and status["limits"]["maxBody"] == 32 << 20
    assert status["descriptors"]["open"] == sum(door.descriptors().values()) + 1  # its own connection
    assert status["loops"] and all(loop["longestTurn"] >= 0 for loop in status["loops"])
    assert sum(loop["acceptedConnections"] for loop in status["loops"]) == 6
    assert set(status["deadlines"].values()) == {0}
    assert {target["address"] for target in status["probe"]["addresses"]} == {f"127.0.0.1:{door.port}", f"[::1]:{door.port}"}


def test_the_limits_told_are_the_limits_set(doord):
    door = doord("--idle", "7", "--arrival", "8s", "--stall", "9000ms", "--drain", "1m", "--handler-deadline", "2", "--max-body", "1M",
                 "--max-head", "2K", "--max-connections", "77", "--per-address", "5", "--max-buffered", "1M")
    limits = door.status()["limits"]
    assert limits == {"maxHead": 2048, "maxBody": 1 << 20, "maxBuffered": 1 << 20, "maxConnections": 77, "perAddress": 5, "idle": 7,
                      "arrival": 8, "stall": 9, "handlerDeadline": 2, "drain": 60}


def test_the_descriptor_limit_is_raised_to_the_hard_one(doord):
    door = doord(prefix=["prlimit", "--nofile=256:4096"])
    assert door.status()["descriptors"]["limit"] == 4096


def test_promtool_and_the_python_parser_accept_the_metrics(door):
    door.get("/nowhere")
    raw.exchange(door.address, b"\x00")
    answer = door.get("/metrics")
    assert answer.header("Content-Type").startswith("text/plain; version=0.0.4")
    done = subprocess.run(["promtool", "check", "metrics"], input=answer.body, capture_output=True, timeout=30)
    assert done.returncode == 0 and done.stderr == b"", done.stderr.decode()
    metrics = door.metrics()
    assert metrics["doord_answers_total"][(("status", "404"),)] == 1
    assert metrics["process_open_fds"][()] > 3


def closed(door, reason):
    return door.metric("doord_connections_closed_total", reason=reason)


def test_a_cut_request_is_counted(door):
    with raw.connect(door.address) as connection:
        connection.sendall(HELLO[:10])
    until(lambda: closed(door, "cutRequest") == 1, "counted")


def test_a_client_that_leaves_without_a_request_is_counted(doord):
    door = doord("--no-defer")
    raw.connect(door.address).close()
    until(lambda: closed(door, "clientClosed") == 1, "counted")


def test_a_reset_is_counted(door):
    connection = raw.connect(door.address)
    connection.sendall(HELLO[:10])
    until(lambda: door.open_connections() == 1, "accepted")
    raw.reset(connection)
    until(lambda: closed(door, "reset") == 1, "counted")


def test_accepted_are_as_many_as_closed_and_open(door, body):
    """Also when one in three is cut, reset or refused."""
    for index in range(60):
        if index % 3:
            door.get("/hello")
        else:
            connection = raw.connect(door.address)
            connection.sendall([HELLO[:9], b"\x00", HELLO, raw.request("POST", "/echo", body(100_000)[1])][index // 3 % 4])
            raw.reset(connection) if index % 2 else connection.close()

    def balanced():
        status = door.status()
        return status["acceptedConnections"] == sum(status["closed"].values()) + status["openConnections"] and status["openConnections"] == 1

    until(balanced, lambda: door.status())


def test_bytes_sent_are_the_bytes_received(door):
    received = sum(len(answer.head) + 4 + len(answer.body) for answer in [door.get("/hello") for _ in range(10)])
    until(lambda: door.status()["bytesSent"] >= received, "counted")
    answer = raw.exchange(door.address, raw.request("POST", "/echo", b"x" * 100_000))
    received += len(answer.head) + 4 + len(answer.body)
    statuses = [door.get("/status")]
    # Each answer is counted when the kernel has it, so /status tells of all but itself.
    assert door.status()["bytesSent"] >= received + len(statuses[0].body)


@pytest.mark.parametrize("path", ["/hello", "/status", "/metrics"])
def test_HEAD_and_OPTIONS_are_answered(door, path):
    head = raw.exchange(door.address, raw.request("HEAD", path), head_only=True)
    assert head.status == 200 and head.body == b""
    options = raw.exchange(door.address, raw.request("OPTIONS", path))
    assert options.status in (200, 204) and {"GET", "HEAD", "OPTIONS"} <= {part.strip() for part in options.header("Allow").split(",")}


@pytest.mark.parametrize("query", ["", "?seconds=", "?seconds=x", "?seconds=26", "?seconds=-1", "?seconds=1e3", "?seconds=nan"])
def test_wait_takes_0_to_25_seconds_only(door, query):
    answer = door.get("/wait" + query)
    assert answer.status == 400 and "seconds" in answer.reason


def test_an_answer_is_its_bytes(door):
    """All of them, the date aside: sorted lines, a length, and close."""
    with raw.connect(door.address) as connection:
        connection.sendall(HELLO)
        said = raw.read_to_end(connection)
    answer = raw.Answer(said)
    version = answer.json["version"]
    body = f'{{"name":"doord","ok":true,"version":"{version}"}}'
    assert said.decode() == (f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
                             f"Date: {answer.header('Date')}\r\n\r\n{body}")
    names = [name.lower() for name, _ in answer.headers]
    assert names == sorted(names)


def test_an_echoed_type_cannot_add_a_header(door):
    """The wire refuses control bytes, so the nearest a client comes is white space and text after it."""
    answer = raw.exchange(door.address, raw.request("POST", "/echo", b"x", headers=[("Content-Type", "a  Injected: yes")]))
    assert answer.header("Injected") is None and answer.header("Content-Type") == "a  Injected: yes"
