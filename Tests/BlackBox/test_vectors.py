# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""The request vectors, sent over a socket to a running doord, and given to `doord parse`."""

import json
import subprocess

import pytest

import daemon
import raw

CASES = json.loads((daemon.ROOT / "Tests" / "Vectors" / "http-requests.json").read_text())


def expanded(case):
    """The case's bytes and what is expected, its repetitions written out."""
    given, expected = case["input"], case["expect"]
    for entry in case.get("repeat", []):
        long = entry["text"] * entry["times"]

        def fill(value):
            if isinstance(value, str):
                return value.replace(entry["placeholder"], long)
            if isinstance(value, dict):
                return {fill(key): fill(inner) for key, inner in value.items()}
            return value

        given, expected = given.replace(entry["placeholder"], long), fill(expected)
    return given.encode("latin-1"), expected


def of(*outcomes):
    chosen = [case for case in CASES if case["expect"]["outcome"] in outcomes]
    return pytest.mark.parametrize("case", chosen, ids=[case["name"] for case in chosen])


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One doord for all cases, which takes every Host."""
    door = daemon.Door(tmp_path_factory.mktemp("door"), "--host", "127.0.0.1", "--name", "*")
    yield door
    door.finish()


@of("invalid")
def test_an_invalid_request_is_refused_over_the_socket(shared, case):
    """With the connection left open: a refusal does not wait for more."""
    data, expected = expanded(case)
    answer = raw.exchange(shared.address, data)
    assert answer.status == expected["status"]
    assert answer.reason == expected.get("reason", answer.reason)
    assert "\n" not in answer.reason and len(answer.reason) < 200


@of("incomplete")
def test_an_incomplete_request_is_dropped_at_the_end_of_stream_without_an_answer(shared, case):
    data, expected = expanded(case)
    cut = shared.metric("doord_connections_closed_total", reason="cutRequest") if data else None
    with raw.connect(shared.address) as connection:
        connection.sendall(data)
        if expected.get("wantsContinue"):
            assert raw.read_some(connection, 25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.shutdown(1)
        assert raw.read_to_end(connection) == b""
    if data:
        daemon.until(lambda: shared.metric("doord_connections_closed_total", reason="cutRequest") == cut + 1, "counted as cut")


@of("complete")
def test_a_complete_request_is_answered_by_the_routes(shared, case):
    """Which answer depends on the routes; that there is one, whole and only one, does not."""
    data, expected = expanded(case)
    answer = raw.exchange(shared.address, data, head_only=expected["method"] == "HEAD")
    routed = {"/hello", "/status", "/metrics", "/echo", "/wait"}
    if expected["path"] not in routed and expected["method"] != "OPTIONS":
        assert answer.status in (404, 405)
    if expected["path"] == "/echo" and expected["method"] in ("POST", "PUT"):
        assert answer.status == 200 and answer.body == expected["body"].encode("latin-1")


def parse(data):
    done = subprocess.run([daemon.binary(), "parse"], input=data, capture_output=True, timeout=60)
    lines = done.stdout.decode().split("\n")
    assert lines[-1] == "" and len(lines) == 2, done.stdout[:500]
    return json.loads(lines[0]), done.returncode


@of("complete")
def test_parse_prints_a_complete_request(case):
    data, expected = expanded(case)
    said, code = parse(data)
    assert code == 0
    assert set(said) == {"outcome", "method", "path", "query", "headers", "bodyLength", "body", "consumed"}
    for field in ("outcome", "method", "path", "query", "consumed"):
        assert said[field] == expected[field], field
    assert said["bodyLength"] == len(expected["body"])
    assert said["body"] == expected["body"][:4096]
    assert all(len(pair) == 2 for pair in said["headers"])
    last = {name.lower(): value for name, value in said["headers"]}
    for name, value in expected.get("headers", {}).items():
        assert last[name] == value


@of("incomplete")
def test_parse_prints_an_incomplete_request(case):
    data, expected = expanded(case)
    said, code = parse(data)
    assert code == 1
    assert set(said) == {"outcome", "wantsContinue"} and said["outcome"] == "incomplete"
    assert said["wantsContinue"] == expected.get("wantsContinue", said["wantsContinue"])


@of("invalid")
def test_parse_prints_a_refusal(case):
    data, expected = expanded(case)
    said, code = parse(data)
    assert code == 1
    assert said == {"outcome": "invalid", "status": expected["status"], "reason": expected.get("reason", said["reason"])}


def test_parse_takes_files_and_prints_a_line_for_each(tmp_path):
    for index, data in enumerate([b"GET / HTTP/1.0\r\n\r\n", b"GET", b"\x16\x03"]):
        (tmp_path / str(index)).write_bytes(data)
    code, out, _ = daemon.run("parse", tmp_path / "0", tmp_path / "1", tmp_path / "2")
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["complete", "incomplete", "invalid"] and code == 1
    code, out, _ = daemon.run("parse", tmp_path / "0", tmp_path / "0")
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["complete"] * 2 and code == 0


def test_parse_names_a_file_it_cannot_read(tmp_path):
    code, _, said = daemon.run("parse", tmp_path / "missing")
    assert code != 0 and "missing" in said


def test_parse_keeps_every_header_line_in_order():
    said, _ = parse(b"GET / HTTP/1.1\r\nHost: a\r\nX-B: 1\r\nX-A: 2\r\nx-b: 3\r\n\r\n")
    assert said["headers"] == [["host", "a"], ["x-b", "1"], ["x-a", "2"], ["x-b", "3"]]


def test_parse_prints_at_most_4096_bytes_of_a_body_one_character_each():
    body = bytes(range(256)) * 32
    said, _ = parse(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8192\r\n\r\n" + body)
    assert said["bodyLength"] == 8192 and said["body"] == body[:4096].decode("latin-1")
