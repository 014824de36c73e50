# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""The access log: what it says, that no client can forge a line of it, and that nobody who reads it, or does not, holds up the door."""

import json
import os
import re
import signal
import subprocess

import pytest

import callers
import raw
from daemon import until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
HOSTILE = [
    b"GET /a\nGET /forged HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%0d%0a2026-01-01T00:00:00.000Z%20forged HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b'GET /"quote\\backslash HTTP/1.1\r\nHost: localhost\r\n\r\n',
    b"GET /?x=%e2%80%a8%1b[31m HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /hello HTTP/1.1\r\nHost: localhost\r\nUser-Agent: x\x1b[2J\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"B'A!D /hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /" + b"long" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x00\x01\x02",
]


def lines(door, count):
    return until(lambda: len(door.log_lines()) >= count and door.log_lines(), lambda: f"{count} lines: {door.log()}")


def test_a_text_line_tells_time_peer_request_status_bytes_and_duration(door):
    with raw.connect(door.address) as connection:
        peer = "127.0.0.1:%d" % connection.getsockname()[1]
        connection.sendall(raw.request("GET", "/hello?x=1"))
        answer = raw.read_to_end(connection)
    [line] = lines(door, 1)
    assert re.fullmatch(rf'{TIME} {re.escape(peer)} "GET /hello\?x=1" 200 {len(answer)}B \d+\.\d+ms', line), line


def test_a_refused_request_is_logged_with_its_reason(door):
    raw.exchange(door.address, raw.request("GET", "/nowhere"))
    raw.exchange(door.address, b"GET /hello HTTP/1.1\r\n\r\n")
    raw.exchange(door.address, raw.request("DELETE", "/hello"))
    first, second, third = lines(door, 3)
    assert '"GET /nowhere" 404' in first and first.endswith('"')
    assert '"DELETE /hello" 405' in third and '"this method is not allowed here' in third
    assert " 400 " in second and '"an HTTP/1.1 request needs a Host"' in second


def test_json_lines_have_the_same_as_fields(doord):
    door = doord("--log", "json")
    answer = door.get("/hello?x=1")
    door.get("/nowhere")
    good, bad = [json.loads(line) for line in lines(door, 2)]
    assert re.fullmatch(TIME, good["time"]) and good["peer"].startswith("127.0.0.1:")
    assert (good["method"], good["path"], good["status"]) == ("GET", "/hello?x=1", 200)
    assert good["bytes"] == len(answer.head) + 4 + len(answer.body) and 0 <= good["duration"] < 5
    assert "reason" not in good and bad["status"] == 404 and bad["reason"]


@pytest.mark.parametrize("kind", ["text", "json"])
def test_whatever_a_client_sends_is_one_line(doord, kind):
    door = doord("--log", kind)
    for data in HOSTILE:
        raw.exchange(door.address, data)
    until(lambda: len(door.log_lines()) == len(HOSTILE), door.log)
    said = door.log_path.read_bytes()
    assert said.count(b"\n") == len(HOSTILE) and said.endswith(b"\n")
    assert not any(byte < 0x20 or byte > 0x7e for byte in said.replace(b"\n", b"")) or kind == "json"
    for line in door.log_lines():
        assert re.match(TIME, json.loads(line)["time"] if kind == "json" else line)
        assert len(line) < 4096


def test_the_line_comes_after_the_answer_and_tells_how_long_it_took(door):
    door.get("/wait?seconds=1")
    [line] = lines(door, 1)
    assert 1000 <= float(re.search(r"([\d.]+)ms", line)[1]) < 5000


def test_the_log_can_be_off(doord):
    door = doord("--log", "off")
    for _ in range(10):
        door.get("/hello")
    door.stop()
    assert door.log() == ""


def test_all_lines_are_written_before_the_end(door):
    for _ in range(300):
        door.get("/hello")
    door.stop()
    assert sum('"GET /hello" 200' in line for line in door.log_lines()) == 300


def flood(door):
    """Far more lines than a pipe and the log's buffer take."""
    said = callers.run(["wrk", "-t1", "-c16", "-d2s", door.url("/hello")]).stdout.decode()
    assert "Socket errors" not in said and "Non-2xx" not in said, said
    assert door.get("/hello").status == 200


def stop_in_time(door):
    door.until_drained()
    door.send(signal.SIGTERM)
    code, seconds = raw.timed(door.wait)
    assert code == 0 and seconds < 4


def test_a_full_pipe_does_not_hold_up_the_door_and_what_is_dropped_is_counted(doord):
    reading, writing = os.pipe()
    try:
        door = doord("--host", "127.0.0.1", stderr=writing)
        flood(door)
        until(lambda: door.metric("doord_log_lines_dropped_total") > 0, "dropped lines are counted", 20)
        stop_in_time(door)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_full_disk_does_not_hold_up_the_door_and_what_is_dropped_is_counted(doord):
    with open("/dev/full", "wb") as full:
        door = doord("--host", "127.0.0.1", stderr=full)
        for _ in range(100):
            door.get("/hello")
        until(lambda: door.metric("doord_log_lines_dropped_total") >= 100, "dropped lines are counted")
        stop_in_time(door)


def test_a_reader_that_went_away_does_not_end_the_door(doord):
    reading, writing = os.pipe()
    door = doord("--host", "127.0.0.1", stderr=writing)
    os.close(writing)
    door.get("/hello")
    assert os.read(reading, 4096)
    os.close(reading)
    flood(door)
    until(lambda: door.metric("doord_log_lines_dropped_total") > 0, "dropped lines are counted")
    stop_in_time(door)


def test_a_slow_reader_gets_whole_lines_only(doord):
    """What is dropped is dropped by the line."""
    reading, writing = os.pipe()
    door = doord("--host", "127.0.0.1", stderr=writing)
    os.close(writing)
    flood(door)
    collector = subprocess.Popen(["cat"], stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    door.get("/hello")
    door.stop()
    said, _ = collector.communicate(timeout=20)
    assert said.endswith(b"\n") and said.count(b"\n") > 100
    for line in said.decode().splitlines():
        assert re.fullmatch(rf'{TIME} (\S+ "GET /\w+" 200 \d+B [\d.]+ms|doord: .*)', line), line
