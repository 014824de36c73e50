# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Two loops against one, on two cores that server and client share."""

import contextlib

from . import cpu, servers, tools
from .tools import Row, median


def figure(binary, options):
    tools.say("two loops against one")
    both = f"{options.server_core},{options.client_core}"
    shares = []
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(servers.doord(binary, both))
        two = stack.enter_context(servers.doord(binary, both, ["--loops", "2"]))
        one.name, two.name = "one loop", "two loops"
        results = {"one loop": [], "two loops": []}
        for number in range(options.pairs):
            for server in [one, two][:: 1 if number % 2 == 0 else -1]:
                before = server.cpu_of_threads()
                results[server.name].append(cpu.wrk(server, options, both))
                if server is two:
                    spent = sorted(now - before.get(thread, 0) for thread, now in server.cpu_of_threads().items())
                    shares.append(100 * spent[-1] / sum(spent[-2:]))
            tools.say("  " + ", ".join(f"{name} {runs[-1]['cpu']:.2f} µs" for name, runs in results.items()) + f", busier {shares[-1]:.0f} %")
    yield Row("2 loops, 2 cores: CPU per request", median(r["cpu"] for r in results["two loops"]), "µs")
    yield Row("… against 1 loop", cpu.ratio(results, "two loops", "one loop"), "×", bar=1.1)
    yield Row("… share of the busier loop", median(shares), "%", bar=60)
