# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""What every figure needs: building, running, and a row of the table."""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILT = TOP / ".build" / "bench"


class Stop(Exception):
    """Ends the run; its sentence says why."""


@dataclasses.dataclass
class Row:
    """A line of the table. `bar` is what the figure must not exceed; None shows it only."""

    figure: str
    value: float | str
    unit: str = ""
    bar: float | None = None
    note: str = ""

    def verdict(self):
        if self.bar is None:
            return ""
        return "yes" if self.value <= self.bar else "NO"


@dataclasses.dataclass
class Options:
    seconds: float  # of one run
    pairs: int
    connections: int  # held open while memory and latency are measured
    server_core: int
    client_core: int
    profiles: pathlib.Path | None = None  # where callgrind's findings go


def say(text):
    """Progress goes to standard error; the table is all that standard output gets."""
    print(text, file=sys.stderr, flush=True)


def run(*command, cwd=TOP, **more):
    """Runs to the end and returns standard output; a failure shows what was printed."""
    return completed(*command, cwd=cwd, **more).stdout


def said(*command):
    """The same, for what goes to standard error."""
    return completed(*command).stderr


def completed(*command, cwd=TOP, **more):
    result = subprocess.run([str(part) for part in command], cwd=cwd, text=True, capture_output=True, **more)
    if result.returncode != 0:
        raise Stop(f"{' '.join(map(str, command))} ended with {result.returncode}:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
    return result


def on_core(core, *command):
    return ["taskset", "-c", str(core), *map(str, command)]


def build_doord(top=TOP):
    """doord as `make install` installs it."""
    say(f"building doord in {top}")
    run("make", "--no-print-directory", "static", cwd=top)
    return top / ".build" / "static" / "doord"


def build_c(name):
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / name
    run("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, TOP / "Benchmarks" / f"{name}.c")
    return program


def refuse_debug(binary):
    """A debug build says so in its version; its figures would say nothing."""
    version = run(binary, "--version").strip()
    if "debug" in version or "debug" in pathlib.Path(binary).resolve().parts:
        raise Stop(f"{binary} is a debug build ({version}); measure a release build")
    return version


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


median = statistics.median


def cores():
    return sorted(os.sched_getaffinity(0))
