# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Every deadline of a connection, set short, and what each is not about."""

import threading
import time

import raw
from daemon import until

MEGA = 1 << 20
REASON = "the request did not arrive in time"


def test_a_silent_client_is_closed_without_a_word(doord):
    door = doord("--idle", "300ms", "--no-defer")
    with raw.connect(door.address) as connection:
        data, seconds = raw.timed(lambda: raw.read_to_end(connection))
    assert data == b"" and 0.2 < seconds < 3
    assert door.metric("doord_deadlines_total", deadline="idle") == 1


def test_a_silent_client_is_closed_with_deferred_accept_too(doord):
    """The kernel shows such a client after a second only."""
    door = doord("--idle", "300ms")
    with raw.connect(door.address) as connection:
        data, seconds = raw.timed(lambda: raw.read_to_end(connection))
    assert data == b"" and seconds < 6


def test_half_a_head_is_answered_408_with_the_reason(doord):
    door = doord("--arrival", "300ms")
    for part in (b"G", b"GET /hello HTTP/1.1\r\nHost: localhost\r\n"):
        with raw.connect(door.address) as connection:
            connection.sendall(part)
            answer, seconds = raw.timed(lambda: raw.Answer(raw.read_to_end(connection)))
        assert (answer.status, answer.reason) == (408, REASON)
        assert 0.2 < seconds < 3
    assert door.metric("doord_deadlines_total", deadline="arrival") == 2


def test_half_a_body_is_answered_408_with_the_reason(doord):
    door = doord("--arrival", "300ms")
    answer = raw.exchange(door.address, raw.request("POST", "/echo", b"x" * 200_000)[:-1])
    assert (answer.status, answer.reason) == (408, REASON)


def test_a_trickle_of_bytes_does_not_push_the_arrival_deadline_back(doord):
    door = doord("--arrival", "600ms")
    with raw.connect(door.address) as connection:
        connection.sendall(b"GET /hello HTTP/1.1\r\nHost: localhost\r\nX: ")
        ended = threading.Event()

        def trickle():
            while not ended.wait(0.05):
                try:
                    connection.send(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            answer, seconds = raw.timed(lambda: raw.Answer(raw.read_to_end(connection)))
        finally:
            ended.set()
            thread.join()
    assert answer.status == 408 and seconds < 3


def test_waiting_for_a_handler_is_neither_idleness_nor_arrival(doord):
    door = doord("--idle", "200ms", "--arrival", "200ms", "--stall", "200ms")
    assert door.get("/wait?seconds=1").status == 200


def test_a_client_that_takes_nothing_of_its_answer_is_cut(doord, body):
    door = doord("--stall", "300ms")
    data = body(32 * MEGA)[1]
    with raw.connect(door.address, receive_buffer=65536) as connection:
        connection.sendall(raw.request("POST", "/echo", data))
        until(lambda: door.metric("doord_connections_closed_total", reason="stall") == 1, "cut")
        assert len(raw.fate(connection)[0]) < len(data)


def test_a_client_that_takes_a_byte_now_and_then_is_cut(doord, body):
    """Fewer than 30 KiB in the time are no progress."""
    door = doord("--stall", "500ms")
    with raw.connect(door.address, receive_buffer=4096) as connection:
        connection.sendall(raw.request("POST", "/echo", body(32 * MEGA)[1]))
        ended = threading.Event()

        def sip():
            try:
                while not ended.wait(0.05) and connection.recv(500):
                    pass
            except OSError:
                pass

        thread = threading.Thread(target=sip)
        thread.start()
        try:
            until(lambda: door.metric("doord_connections_closed_total", reason="stall") == 1, "cut")
        finally:
            ended.set()
            thread.join()


def test_a_client_that_reads_slowly_but_steadily_is_not_cut(doord, body):
    door = doord("--stall", "500ms")
    data = body(8 * MEGA)[1]
    with raw.connect(door.address, receive_buffer=65536, timeout=30) as connection:
        connection.sendall(raw.request("POST", "/echo", data))
        pieces = []
        while piece := connection.recv(256 << 10):
            pieces.append(piece)
            time.sleep(0.05)  # 5 MB a second at most, the whole several times the deadline
        assert raw.Answer(b"".join(pieces)).body == data


def test_a_handler_past_its_deadline_is_answered_503_with_the_reason(doord):
    door = doord("--handler-deadline", "300ms")
    answer, seconds = raw.timed(lambda: door.get("/wait?seconds=20"))
    assert (answer.status, answer.reason) == (503, "the answer was not ready in time")
    assert 0.2 < seconds < 3
    assert door.metric("doord_refusals_total", reason="handlerDeadline") == 1


def test_a_deadline_answers_HEAD_without_a_body_and_the_next_client_with_one(doord):
    """RFC 9110 9.3.2."""
    door = doord("--host", "127.0.0.1", "--handler-deadline", "300ms")
    with raw.connect(door.address) as connection:
        connection.sendall(raw.request("HEAD", "/wait?seconds=20"))
        answer = raw.read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 503 ") and answer.endswith(b"\r\n\r\n")
    assert raw.exchange(door.address, b"GET /\n").reason == "a line ends in LF alone"


def test_a_client_that_never_closes_is_closed_by_the_linger_deadline(doord):
    """5 s without a byte. The client sent more than its request, so the door may not close at once."""
    door = doord("--host", "127.0.0.1")
    with raw.connect(door.address) as connection:
        connection.sendall(raw.request("GET", "/hello") * 2)
        assert raw.Answer(raw.read_to_end(connection)).status == 200
        until(lambda: door.descriptors()["socket"] == door.first_descriptors["socket"], "closed", 10)
    assert door.metric("doord_connections_closed_total", reason="linger") == 1
