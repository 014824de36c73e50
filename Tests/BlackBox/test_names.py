# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Which Host names a door answers to. One on loopback takes loopback names only, so that a web page whose own name is made to resolve to
127.0.0.1 (DNS rebinding) cannot reach it."""

import pytest

import raw

OURS = ["localhost", "LocalHost", "localhost:8757", "door.localhost", "a.b.localhost:1", "127.0.0.1", "127.0.0.1:80", "127.255.255.254",
        "[::1]", "[::1]:8757", ""]
FOREIGN = ["evil.example", "evil.example:8757", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost", "evil-localhost",
           "128.0.0.1", "192.168.1.1", "127.0.0.256", "[::2]", "[::ffff:7f00:1]", "[fe80::1]:80", "0.0.0.0", "[::]"]


def ask(door, host):
    return raw.get(door.address, "/hello", host=host)


@pytest.mark.parametrize("host", OURS)
def test_a_door_on_loopback_answers_to_a_loopback_name(door, host):
    for address in door.tcp:
        assert raw.get(address, "/hello", host=host).status == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_a_door_on_loopback_refuses_a_foreign_name_with_the_flag_to_use(door, host):
    for address in door.tcp:
        answer = raw.get(address, "/hello", host=host)
        assert answer.status == 421 and "--name" in answer.reason
        assert not host or host not in answer.reason


def test_a_foreign_name_reaches_no_route_at_all(door):
    for method, path, body in [("GET", "/status", None), ("POST", "/echo", b"x"), ("GET", "/nowhere", None), ("OPTIONS", "*", None)]:
        answer = raw.exchange(door.address, raw.request(method, path, body, host="evil.example"))
        assert answer.status == 421


def test_the_authority_of_an_absolute_target_counts_and_not_the_Host_line(door):
    assert raw.get(door.address, "http://localhost/hello", host="evil.example").status == 200
    assert raw.get(door.address, "http://evil.example/hello", host="localhost").status == 421


def test_HTTP_1_0_needs_no_Host_and_a_foreign_one_is_refused(door):
    assert raw.exchange(door.address, b"GET /hello HTTP/1.0\r\n\r\n").status == 200
    assert raw.exchange(door.address, b"GET /hello HTTP/1.0\r\nHost: evil.example\r\n\r\n").status == 421


def test_a_name_that_was_given_is_answered_to_in_any_case_and_with_any_port(doord):
    door = doord("--host", "127.0.0.1", "--name", "Door.Example")
    for host in ("door.example", "DOOR.example:99", "localhost", "127.0.0.1"):
        assert ask(door, host).status == 200
    for host in ("evil.example", "x.door.example", "door.example.evil"):
        assert ask(door, host).status == 421


def test_a_star_takes_every_name(doord):
    door = doord("--host", "127.0.0.1", "--name", "*")
    for host in FOREIGN + OURS:
        assert ask(door, host).status == 200


def test_a_door_on_all_addresses_takes_every_name_unless_one_is_given(doord):
    door = doord("--host", "0.0.0.0")
    assert raw.get(("127.0.0.1", door.port), "/hello", host="evil.example").status == 200
    door = doord("--host", "0.0.0.0", "--name", "door.example")
    assert raw.get(("127.0.0.1", door.port), "/hello", host="evil.example").status == 421
    assert raw.get(("127.0.0.1", door.port), "/hello", host="door.example").status == 200


def test_a_unix_socket_takes_every_name(doord, tmp_path):
    door = doord("--unix", tmp_path / "door.sock", "--name", "door.example")
    assert ask(door, "evil.example").status == 200
