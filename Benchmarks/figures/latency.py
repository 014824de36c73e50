# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Latency at a fixed rate, with many half-open requests held against none."""

import contextlib

from . import memory, servers, tools
from .tools import Row, median

RATE = 5000


def at_rate(server, options):
    return tools.last_json(
        tools.run(*tools.on_core(options.client_core, tools.build_c("load"), "open", RATE, options.seconds, server.host, server.port, server.path))
    )


def once(binary, options, connections):
    """A fresh server for each run: what earlier runs left behind is not measured."""
    with servers.doord(binary, options.server_core, servers.PATIENT) as server, contextlib.ExitStack() as stack:
        if connections:
            stack.enter_context(memory.held(server, connections, memory.HALF_HEAD))
        return at_rate(server, options)


def figure(binary, options):
    tools.say(f"latency at {RATE} requests/s")
    tools.build_c("load")
    alone, crowded = [], []
    for number in range(options.pairs):
        for runs, connections in [(alone, 0), (crowded, options.connections)][:: 1 if number % 2 == 0 else -1]:
            runs.append(once(binary, options, connections))
        tools.say(f"  p99 {alone[-1]['p99']:.0f} µs alone, {crowded[-1]['p99']:.0f} µs beside {options.connections} connections")
    for name, runs in (("alone", alone), (f"beside {options.connections}", crowded)):
        yield Row(f"{RATE}/s {name}: p50 / p99 / p99.9", " / ".join(f"{median(r[p] for r in runs):.0f}" for p in ("p50", "p99", "p999")), "µs")
    yield Row("… p99 beside them against alone", median(b["p99"] / a["p99"] for a, b in zip(alone, crowded)), "×", bar=1.5)
    failed = sum(r["failed"] for r in alone + crowded)
    yield Row("… failed or reset answers", failed, f"of {sum(r['answers'] for r in alone + crowded)}", bar=0)
