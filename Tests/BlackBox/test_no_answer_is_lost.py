# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""No answer is eaten by a reset: not a refusal to a client that is still sending, not an answer behind which more bytes arrive."""

import http.client
import json
import socket
import subprocess
import threading
import time

import pytest

import raw

MEGA = 1 << 20
SECOND = raw.request("GET", "/hello")


@pytest.fixture(params=["tcp", "unix"])
def either(request, doord, tmp_path):
    """A door by TCP, and one by a Unix-domain socket."""
    return doord() if request.param == "tcp" else doord("--unix", tmp_path / "door.sock")


def ask(size, body):
    """A request whose answer has about that size, and the body to expect."""
    if size == "100 bytes":
        return raw.request("GET", "/hello"), None
    data = body(4 * MEGA)[1]
    return raw.request("POST", "/echo", data), data


def check(answer, wanted):
    assert answer.status == 200
    assert wanted is None and answer.json["ok"] is True or answer.body == wanted


sizes = pytest.mark.parametrize("size, times", [("100 bytes", 300), ("4 MB", 50)])


@sizes
def test_a_pipelined_second_request_does_no_harm(either, body, size, times):
    request, wanted = ask(size, body)
    for _ in range(times):
        check(raw.exchange(either.address, request + SECOND), wanted)


@sizes
def test_three_stray_bytes_at_once_do_no_harm(either, body, size, times):
    request, wanted = ask(size, body)
    for _ in range(times):
        check(raw.exchange(either.address, request + b"abc"), wanted)


@sizes
def test_three_stray_bytes_a_millisecond_later_do_no_harm(either, body, size, times):
    request, wanted = ask(size, body)
    for _ in range(times):
        with raw.connect(either.address) as connection:
            connection.sendall(request)
            time.sleep(0.001)
            try:
                connection.send(b"abc")
            except BrokenPipeError:
                pass  # a Unix-domain socket that is already closed says so at once; the answer is in our buffer
            check(raw.Answer(raw.read_to_end(connection)), wanted)


def test_stray_bytes_while_an_answer_of_4_MB_is_being_read_do_no_harm(either, body):
    data = body(4 * MEGA)[1]
    for _ in range(20):
        with raw.connect(either.address, receive_buffer=65536) as connection:
            connection.sendall(raw.request("POST", "/echo", data))
            first = raw.read_some(connection, 200_000)
            connection.send(b"abc")
            check(raw.Answer(first + raw.read_to_end(connection)), data)


def test_16_KB_behind_a_request_do_no_harm(either, body):
    """As many as are kept (docs/limits.md). More may have to wait in the client's own buffer, which a Unix-domain socket has little of."""
    data = body(4 * MEGA)[1]
    for _ in range(10):
        check(raw.exchange(either.address, raw.request("POST", "/echo", data) + b"x" * 16384), data)


def test_curl_reads_the_whole_413_while_it_sends_100_MB(door, body):
    path, _, _ = body(100 * MEGA)
    done = subprocess.run(["curl", "-q", "-sS", "--max-time", "50", "-H", "Expect:", "--data-binary", f"@{path}", "-w", "\n%{http_code}",
                           door.url("/echo")], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said, status = done.stdout.decode().rsplit("\n", 1)
    assert status == "413" and json.loads(said) == {"error": f"the body is {100 * MEGA} bytes, over {32 * MEGA}", "ok": False}


def test_http_client_reads_the_whole_413_after_it_has_sent_100_MB(door, body):
    connection = http.client.HTTPConnection(*door.tcp[0], timeout=50)
    connection.request("POST", "/echo", body(100 * MEGA)[1])
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read()) == {"error": f"the body is {100 * MEGA} bytes, over {32 * MEGA}", "ok": False}
    connection.close()


def test_an_early_refusal_of_a_head_reaches_a_client_that_goes_on_sending(either):
    """LF alone is refused at that byte; the client has a megabyte more to say."""
    for _ in range(20):
        answer = raw.exchange(either.address, b"GET /hello HTTP/1.1\nHost: localhost\n\n" + b"x" * MEGA)
        assert (answer.status, answer.reason) == (400, "a line ends in LF alone")


def test_a_slow_reader_gets_all_of_32_MB(either, body):
    data = body(32 * MEGA)[1]
    with raw.connect(either.address, receive_buffer=65536, timeout=30) as connection:
        connection.sendall(raw.request("POST", "/echo", data))
        pieces, got = [], 0
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
            got += len(piece)
            if got > MEGA:
                got = 0
                time.sleep(0.03)  # about a second in all, far over the time the bytes need
        check(raw.Answer(b"".join(pieces)), data)


def test_eight_clients_at_once_each_get_their_own_4_MB(door, body):
    """Bodies and answers of many connections do not mix."""
    bodies = [body(4 * MEGA + index)[1] for index in range(8)]
    wrong = []

    def one(data):
        try:
            check(raw.exchange(door.address, raw.request("POST", "/echo", data)), data)
        except (AssertionError, OSError) as failure:
            wrong.append(str(failure)[:200])

    threads = [threading.Thread(target=one, args=[data]) for data in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_client_that_half_closes_behind_4_MB_gets_them_back(either, body):
    data = body(4 * MEGA)[1]
    for _ in range(10):
        check(raw.exchange(either.address, raw.request("POST", "/echo", data), half_close=True), data)


def test_the_answer_ends_with_an_orderly_end_and_not_with_a_wait(door):
    """A client that sent nothing extra sees the end of stream right behind the answer, not after a linger."""
    for _ in range(20):
        answer, seconds = raw.timed(lambda: door.get("/hello"))
        assert answer.status == 200 and seconds < 2
    # One that sent more sees it too: the write side is shut down at once, whatever is then drained.
    with raw.connect(door.address) as connection:
        connection.sendall(SECOND + SECOND)
        answer, seconds = raw.timed(lambda: raw.Answer(raw.read_to_end(connection)))
        assert answer.status == 200 and seconds < 2
        connection.shutdown(socket.SHUT_WR)
