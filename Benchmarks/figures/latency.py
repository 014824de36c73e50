# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Latency at a fixed rate, with many half-open requests held against none; and, as a control, with as many connections that are another
program's: what the machine itself pays for them is not the server's."""

import contextlib
import subprocess
import sys

from . import memory, servers, tools
from .tools import Row, median

RATE = 5000


def at_rate(server, options):
    return tools.last_json(
        tools.run(*tools.on_core(options.client_core, tools.build_c("load"), "open", RATE, options.seconds, server.host, server.port, server.path))
    )


# Accepts and does nothing more.
STRANGER = """
import resource, socket
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
print(listener.getsockname()[1], flush=True)
held = []
while True:
    held.append(listener.accept()[0])
"""


@contextlib.contextmanager
def strangers(count):
    """`count` connections between other programs."""
    process = subprocess.Popen([sys.executable, "-c", STRANGER], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline())
        with memory.opened("127.0.0.1", port, count, memory.HALF_HEAD):
            yield
    finally:
        process.kill()
        process.wait()


def once(binary, options, connections, whose="doord"):
    """A fresh server for each run: what earlier runs left behind is not measured."""
    with servers.doord(binary, options.server_core, servers.PATIENT) as server, contextlib.ExitStack() as stack:
        if connections:
            stack.enter_context(memory.held(server, connections, memory.HALF_HEAD) if whose == "doord" else strangers(connections))
        return at_rate(server, options)


def figure(binary, options):
    tools.say(f"latency at {RATE} requests/s")
    tools.build_c("load")
    alone, crowded, control = [], [], []
    for number in range(options.pairs):
        kinds = [(alone, 0, "doord"), (crowded, options.connections, "doord"), (control, options.connections, "another")]
        for runs, connections, whose in kinds[:: 1 if number % 2 == 0 else -1]:
            runs.append(once(binary, options, connections, whose))
        tools.say(
            f"  p99 {alone[-1]['p99']:.0f} µs alone, {crowded[-1]['p99']:.0f} µs beside {options.connections} connections, "
            f"{control[-1]['p99']:.0f} µs beside as many of another program"
        )
    for name, runs in (("alone", alone), (f"beside {options.connections}", crowded), (f"beside {options.connections} of another program", control)):
        yield Row(f"{RATE}/s {name}: p50 / p99 / p99.9", " / ".join(f"{median(r[p] for r in runs):.0f}" for p in ("p50", "p99", "p999")), "µs")
    yield Row("… p99 beside them against alone", median(b["p99"] / a["p99"] for a, b in zip(alone, crowded)), "×", bar=1.5)
    yield Row("… against beside another program's", median(b["p99"] / c["p99"] for b, c in zip(crowded, control)), "×")
    every = alone + crowded + control
    yield Row("… failed or reset answers", sum(r["failed"] for r in every), f"of {sum(r['answers'] for r in every)}", bar=0)
