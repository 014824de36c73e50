# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""User instructions per request, counted by callgrind in a package that depends on Door."""

import collections
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import servers, tools
from .tools import Row

FEW, MANY = 200, 1200  # the difference leaves out what start and stop cost
# Seconds between requests. Without them the next connection is sometimes accepted in the turn of the loop that answered the last one, and
# sometimes not, which alone makes a tenth of the figure.
PAUSE = 0.002


def ask(port, path):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    if not answer.startswith(b"HTTP/1.1 200"):
        raise tools.Stop(f"{path} is answered {answer[:80]!r}")


def instructions_of(command, port, path, requests):
    """Instructions in user space of one run of the server, from its start to its end: in all, and by function."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *map(str, command)]
        process = subprocess.Popen(valgrind, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError as error:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise tools.Stop(f"{command[0]} does not listen under valgrind") from error
                    time.sleep(0.05)
            for _ in range(requests):
                ask(port, path)
                time.sleep(PAUSE)
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate()[1]
        by_function = collections.Counter()
        for count, function in re.findall(r"^ *([\d,]+) \([\d. ]+%\)  \S*?:(.+)$", tools.run("callgrind_annotate", "--threshold=100", out), re.M):
            by_function[function] += int(count.replace(",", ""))
        return collected(said), by_function


def collected(said):
    """Callgrind's sum, from what it says at its end."""
    found = re.search(r"Collected\s*:\s*(\d+)", said)
    if not found:
        raise tools.Stop(f"callgrind counted nothing:\n{said[-2000:]}")
    return int(found.group(1))


def per_request(command, path, profiles=None):
    """`command` makes the server's command from a port. What each function costs a request goes to a file in the folder `profiles`."""
    (few, few_by), (many, many_by) = (instructions_of(command(port), port, path, n) for n in (FEW, MANY) if (port := servers.free_port()))
    if profiles:
        many_by.subtract(few_by)
        lines = [f"{count / (MANY - FEW):8.1f}  {function}" for function, count in many_by.most_common(150) if count >= MANY - FEW]
        text = tools.run("swift", "demangle", "--simplified", input="\n".join(lines) + "\n")
        (profiles / f"instructions{path.replace('/', '-')}.txt").write_text(text)
    return (many - few) / (MANY - FEW)


def lookup(routes):
    """Instructions of one lookup in a router, without a server (Benchmarks/Lookup/run prints more of these)."""
    program = build("Lookup", "Lookup")
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "status"]
    few, many = (collected(tools.said(*callgrind, count, routes)) for count in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def build(name="Instructions", product="instructions", top=tools.TOP):
    """A program of a package in Benchmarks/, without the debug sections that Debian's valgrind stumbles over."""
    package = top / "Benchmarks" / name
    tools.say(f"building {package}")
    (package / "Package.swift").touch()  # else SwiftPM does not see files that were added to Door since the last build
    tools.run("swift", "build", "-c", "release", cwd=package)
    program = package / ".build" / "release" / product
    copy = package / ".build" / f"{product}-stripped"
    shutil.copy(os.path.realpath(program), copy)
    tools.run("strip", "-g", copy)
    return copy


def figure(binary, options):
    program = build()
    tools.say("instructions per request")
    c = tools.build_c("baseline")
    port = servers.free_port()
    with servers.running("instructions", [program, port], port) as server, tempfile.NamedTemporaryFile() as answer:
        answer.write(server.exchange()[1])
        answer.flush()
        yield Row("instructions per request, C baseline", per_request(lambda port: [c, port, answer.name], "/hello"))
    of = lambda routes: lambda port: [program, port, routes]  # noqa: E731
    yield Row("… plain route", per_request(of(10), "/hello", options.profiles), bar=6500)
    yield Row("… async route", per_request(of(10), "/async", options.profiles), bar=10000)
    yield Row("… async route that suspends once", per_request(of(10), "/suspend", options.profiles), bar=16000)
    yield Row("… plain route that puts JSON together", per_request(of(10), "/json", options.profiles))
    yield Row("… lookup of a route, 1 000 routes against 10", lookup(1000) / lookup(10), "×", bar=1.05)
