# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Another server (TARGET=), and another revision beside this one (COMPARE=)."""

import contextlib
import pathlib
import shutil
import socket
import tempfile
import types
import urllib.parse

from . import cpu, instructions, memory, servers, tools
from .tools import Row, median


def target(url, pid, options):
    """A server that runs already. `Connection: close` is asked for, so that each request has a connection of its own as here."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise tools.Stop(f"{url} is not an http:// URL")
    address = socket.getaddrinfo(parts.hostname, parts.port or 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    process = types.SimpleNamespace(pid=pid) if pid else None
    server = servers.Server(url, process, parts.port or 80, address, path)
    header = "Connection: close"
    runs = [cpu.wrk(server, options, options.client_core, header=header) for _ in range(options.pairs)]
    exact = tools.last_json(
        tools.run(
            *tools.on_core(options.client_core, tools.build_c("load"), "closed", 64, options.seconds, address, server.port, path, header)
        )
    )
    yield Row("requests/s", median(r["answers"] / r["seconds"] for r in runs), "/s")
    yield Row("p50 / p99 / p99.9", " / ".join(f"{median(r[p] for r in runs) / 1000:.2f}" for p in ("p50", "p99", "p999")), "ms")
    if pid:
        yield Row("CPU per request", median(r["cpu"] for r in runs), "µs")
    yield Row("failed or reset answers (wrk)", sum(r["failed"] for r in runs), f"of {sum(r['answers'] for r in runs)}", bar=0)
    yield Row("failed or reset answers (load)", exact["failed"], f"of {exact['answers']}", bar=0)
    yield Row("request, bytes", exact["requestBytes"])


@contextlib.contextmanager
def worktree(revision):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="door-compare-"))
    try:
        tools.run("git", "worktree", "add", "--detach", directory / "door", revision)
        yield directory / "door"
    finally:
        tools.run("git", "worktree", "remove", "--force", directory / "door")
        shutil.rmtree(directory, ignore_errors=True)


def compare(binary, revision, options):
    """Pairs of this work tree's doord and the one of `revision`."""
    with worktree(revision) as other_top:
        other = tools.build_doord(other_top)
        with contextlib.ExitStack() as stack:
            here = stack.enter_context(servers.doord(binary, options.server_core))
            there = stack.enter_context(servers.doord(other, options.server_core))
            here.name, there.name = "here", revision
            results = cpu.interleaved([here, there], options, options.pairs)
        yield Row("CPU per request", median(r["cpu"] for r in results["here"]), "µs")
        yield Row(f"… of {revision}", median(r["cpu"] for r in results[revision]), "µs")
        yield Row(f"… against {revision}", cpu.ratio(results, "here", revision), "×")
        for name, path in (("plain", "/hello"), ("async", "/async")):
            counts = []
            for top in (tools.TOP, other_top):
                program = instructions.build(top=top)
                counts.append(instructions.per_request(lambda port, program=program: [program, port, 10], path))
            yield Row(f"instructions, {name} route", counts[0])
            yield Row(f"… of {revision}", counts[1])
        for name, beginning in (("one byte", memory.ONE_BYTE), ("half a head", memory.HALF_HEAD)):
            yield Row(f"RSS per connection, {name}", memory.per_connection(binary, options, beginning), "B")
            yield Row(f"… of {revision}", memory.per_connection(other, options, beginning), "B")
        yield Row("size of the binary", binary.stat().st_size / 1e6, "MB")
        yield Row(f"… of {revision}", other.stat().st_size / 1e6, "MB")
