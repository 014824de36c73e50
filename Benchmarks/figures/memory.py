# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Resident memory per open connection that has sent the beginning of a request."""

import contextlib
import resource
import socket
import time

from . import servers, tools
from .tools import Row

ONE_BYTE = b"G"
HALF_HEAD = b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: a-client/1.0\r\nAccept: */*\r\nX-Padding: ".ljust(100, b"x")


def open_connections(server):
    """The connections that /status counts, less the one that asks."""
    return server.status()["openConnections"] - 1


@contextlib.contextmanager
def opened(host, port, count, beginning):
    """`count` connections that have sent `beginning` and then wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 100:
        raise tools.Stop(f"the descriptor limit is {hard}; {count} connections need {count + 100} (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections = []
    try:
        # One source address has 28 000 ports by default; five of them leave room for the measured load's own.
        for number in range(count):
            s = socket.socket()
            s.bind((f"127.0.0.{2 + number % 5}", 0))
            s.connect((host, port))
            s.sendall(beginning)
            connections.append(s)
        yield
    finally:
        for s in connections:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def held(server, count, beginning):
    """The same, all accepted by the server."""
    with opened(server.host, server.port, count, beginning):
        deadline = time.monotonic() + 30
        while (seen := open_connections(server)) < count:
            if time.monotonic() > deadline:
                raise tools.Stop(f"{server.name} holds {seen} of {count} connections")
            time.sleep(0.05)
        yield seen


def per_connection(binary, options, beginning):
    with servers.doord(binary, flags=servers.PATIENT) as server:
        for _ in range(200):  # what the first requests cost is not the connections'
            server.exchange()
        open_connections(server)
        before = server.rss()
        with held(server, options.connections, beginning) as count:
            return (server.rss() - before) / count


def figure(binary, options):
    tools.say(f"memory of {options.connections} open connections")
    yield Row("RSS per connection, one byte sent", per_connection(binary, options, ONE_BYTE), "B", bar=512)
    yield Row("RSS per connection, half a head (100 B)", per_connection(binary, options, HALF_HEAD), "B", bar=800)
