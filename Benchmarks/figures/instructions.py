# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""User instructions per request, counted by callgrind in a package that depends on Door."""

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


def ask(port, path):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    if not answer.startswith(b"HTTP/1.1 200"):
        raise tools.Stop(f"{path} is answered {answer[:80]!r}")


def instructions_of(command, port, path, requests, profile=None):
    """Instructions in user space of one run of the server, from its start to its end; what they were spent on goes to the file `profile`."""
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
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate()[1]
        if profile:
            profile.write_text(tools.run("callgrind_annotate", "--threshold=95", out))
        found = re.search(r"Collected\s*:\s*(\d+)", said)
        if not found:
            raise tools.Stop(f"callgrind counted nothing:\n{said[-2000:]}")
        return int(found.group(1))


def per_request(command, path, profiles=None):
    """`command` makes the server's command from a port. `profiles` is a folder for what callgrind found in the longer run."""
    counts = []
    for requests in (FEW, MANY):
        port = servers.free_port()
        profile = profiles / f"instructions{path.replace('/', '-')}.txt" if profiles and requests == MANY else None
        counts.append(instructions_of(command(port), port, path, requests, profile))
    return (counts[1] - counts[0]) / (MANY - FEW)


def build(top=tools.TOP):
    """The server of Benchmarks/Instructions, without the debug sections that Debian's valgrind stumbles over."""
    package = top / "Benchmarks" / "Instructions"
    tools.say(f"building {package}")
    tools.run("swift", "build", "-c", "release", cwd=package)
    tools.BUILT.mkdir(parents=True, exist_ok=True)
    program = package / ".build" / "release" / "instructions"
    copy = package / ".build" / "instructions-stripped"
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
    few = per_request(of(10), "/hello", options.profiles)
    yield Row("… plain route", few, bar=6500)
    yield Row("… async route", per_request(of(10), "/async", options.profiles), bar=10000)
    yield Row("… async route that suspends once", per_request(of(10), "/suspend", options.profiles), bar=16000)
    yield Row("… plain route that puts JSON together", per_request(of(10), "/json", options.profiles))
    yield Row("… plain route, 1 000 routes against 10", per_request(of(1000), "/hello") / few, "×", bar=1.05)
