# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Server CPU per request, against the C baseline and nginx; requests a second and latencies of the same runs."""

import contextlib

from . import servers, tools
from .tools import Row, median


def wrk(server, options, core, seconds=None, header=None):
    """64 connections of wrk. Returns its counts, and the server's CPU per answered request in microseconds as `cpu`."""
    before = server.cpu() if server.process else 0
    extra = ["-H", header] if header else []
    output = tools.run(
        *tools.on_core(core, "wrk", "-t1", "-c64", f"-d{seconds or options.seconds:g}s", "-s", tools.TOP / "Benchmarks" / "wrk.lua", *extra, server.url)
    )
    result = tools.last_json(output)
    if result["answers"] == 0:
        raise tools.Stop(f"{server.name} answered nothing to wrk")
    if server.process:
        result["cpu"] = (server.cpu() - before) / result["answers"] / 1000
    return result


def interleaved(contenders, options, rounds):
    """Runs the contenders one after the other, `rounds` times, in turned order, so that a slow spell of the machine hits all."""
    results = {server.name: [] for server in contenders}
    for server in contenders:  # the first run pays for page faults and cold caches
        wrk(server, options, options.client_core, seconds=1)
    for number in range(rounds):
        order = contenders if number % 2 == 0 else contenders[::-1]
        for server in order:
            results[server.name].append(wrk(server, options, options.client_core))
        tools.say("  " + ", ".join(f"{s.name} {results[s.name][-1]['cpu']:.2f} µs" for s in contenders))
    return results


def ratio(results, of, to):
    """The median of the pairs' ratios: a pair is of one round, so it saw one state of the machine."""
    return median(a["cpu"] / b["cpu"] for a, b in zip(results[of], results[to]))


def figure(binary, options):
    tools.say("CPU per request")
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(servers.doord(binary, options.server_core))
        request, answer = door.exchange()
        c = stack.enter_context(servers.baseline(answer, options.server_core))
        nginx = stack.enter_context(servers.nginx(answer, options.server_core))
        results = interleaved([door, c, nginx], options, options.pairs)
        exact = tools.last_json(
            tools.run(*tools.on_core(options.client_core, tools.build_c("load"), "closed", 64, options.seconds, door.host, door.port, door.path))
        )
        answers = {s.name: len(s.exchange()[1]) for s in (door, c, nginx)}
    yield Row("request / answer, bytes", f"{len(request)} / {len(answer)}", note=f"nginx answers {answers['nginx']} bytes")
    yield Row("CPU per request", median(r["cpu"] for r in results["doord"]), "µs")
    yield Row("… of the C baseline", median(r["cpu"] for r in results["C baseline"]), "µs")
    yield Row("… of nginx", median(r["cpu"] for r in results["nginx"]), "µs")
    yield Row("… against the C baseline", ratio(results, "doord", "C baseline"), "×", bar=1.08)
    yield Row("… against nginx", ratio(results, "doord", "nginx"), "×", bar=1.00)
    yield Row("C baseline against nginx", ratio(results, "C baseline", "nginx"), "×")
    for name in ("doord", "nginx"):
        runs = results[name]
        yield Row(f"{name}: requests/s", median(r["answers"] / r["seconds"] for r in runs), "/s")
        yield Row(f"{name}: p50 / p99 / p99.9", " / ".join(f"{median(r[p] for r in runs) / 1000:.2f}" for p in ("p50", "p99", "p999")), "ms")
    failed = sum(r["failed"] for r in results["doord"])
    total = sum(r["answers"] for r in results["doord"])
    yield Row("failed or reset answers (wrk)", failed, f"of {total}", bar=0)
    yield Row("failed or reset answers (load)", exact["failed"], f"of {exact['answers']}", bar=0)


def access_log(binary, options):
    """The same request with the access log on, written to a file."""
    tools.say("access log on against off")
    with contextlib.ExitStack() as stack:
        off = stack.enter_context(servers.doord(binary, options.server_core))
        on = stack.enter_context(servers.doord(binary, options.server_core, ["--log", "text"]))
        off.name, on.name = "log off", "log on"
        results = interleaved([off, on], options, max(3, options.pairs // 2))
    yield Row("CPU per request, access log on", median(r["cpu"] for r in results["log on"]), "µs")
    yield Row("… against log off", ratio(results, "log on", "log off"), "×")
