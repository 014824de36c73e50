# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Bytes over a socket, and an answer taken apart strictly: a test that reads through here sees every reset and every missing byte."""

import json
import socket
import struct
import time


class Answer:
    """A whole answer. Raises if it is not one: no head, a body shorter or longer than its length."""

    def __init__(self, data, head_only=False):
        self.interim = []
        while True:
            head, separator, rest = data.partition(b"\r\n\r\n")
            assert separator, f"no whole head in {data[:300]!r}"
            lines = head.split(b"\r\n")
            version, status, phrase = lines[0].decode("ascii").split(" ", 2)
            assert version == "HTTP/1.1", lines[0]
            if not status.startswith("1"):
                break
            self.interim.append(int(status))
            assert len(lines) == 1 or not any(line.lower().startswith(b"content-length") for line in lines)
            data = rest
        self.status, self.phrase, self.head, self.body = int(status), phrase, head, rest
        self.headers = [tuple(part.strip() for part in line.decode("latin-1").split(":", 1)) for line in lines[1:]]
        if self.status != 204:
            lengths = self.all("content-length")
            assert len(lengths) == 1, f"Content-Length is there {len(lengths)} times: {head!r}"
            wanted = 0 if head_only else int(lengths[0])
            assert len(rest) == wanted, f"{len(rest)} bytes of a body of {wanted}"
        assert [value.lower() for value in self.all("connection")] == ["close"], head

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name):
        values = self.all(name)
        return values[-1] if values else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def reason(self):
        """The sentence of a refusal, whose shape is checked on the way."""
        said = self.json
        assert set(said) == {"error", "ok"} and said["ok"] is False, said
        return said["error"]


def connect(address, timeout=20, source=None, receive_buffer=None):
    """A connected socket to (host, port) or to a path."""
    if isinstance(address, (str, bytes)):
        connection = socket.socket(socket.AF_UNIX)
    else:
        connection = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(timeout)
    try:
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            connection.bind((source, 0))
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def read_to_end(connection):
    """Everything up to the peer's end of stream. A reset raises."""
    pieces = []
    while piece := connection.recv(1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def read_some(connection, count):
    """Exactly `count` bytes."""
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        assert piece, f"the end after {len(data)} of {count} bytes: {data[:200]!r}"
        data += piece
    return data


def exchange(address, data, half_close=False, head_only=False, **options):
    """Sends `data`, reads to the end, and gives the whole answer."""
    with connect(address, **options) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        return Answer(read_to_end(connection), head_only=head_only)


def request(method, path, body=None, headers=(), host="localhost"):
    """A request's bytes."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def get(address, path, headers=(), host="localhost", **options):
    return exchange(address, request("GET", path, headers=headers, host=host), **options)


def reset(connection):
    """Closes with a reset instead of an orderly end (SO_LINGER 0)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def fate(connection):
    """How the peer ended a connection that is owed nothing: the bytes that came, and "end" or "reset"."""
    data = b""
    try:
        while piece := connection.recv(1 << 16):
            data += piece
        return data, "end"
    except (ConnectionResetError, BrokenPipeError):
        return data, "reset"


def timed(action):
    """What `action()` returns, and the seconds it took."""
    start = time.monotonic()
    return action(), time.monotonic() - start
