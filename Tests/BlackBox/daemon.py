# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""A running doord as the tests see it: started on a free port, asked for its addresses, stopped, and looked at from outside."""

import collections
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import raw

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"(?<![\w.])(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:.%\w]+\]):(\d+)|unix:(\S+)")


def binary():
    """The doord under test: $DOORD, else the release build, else the debug build."""
    chosen = os.environ.get("DOORD")
    if chosen:
        return chosen
    for kind in ("release", "debug"):
        path = ROOT / ".build" / kind / "doord"
        if path.exists():
            return str(path)
    raise FileNotFoundError("no doord: run `swift build`, or set DOORD")


def is_debug():
    return "/debug/" in os.path.realpath(binary())


def until(condition, what, seconds=10.0):
    """Waits until `condition()` is true, and returns what it returned; fails with `what` at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.01)


class Door:
    """One doord process. `flags` are its arguments; port 0 unless they name one or ask for a Unix-domain socket only.

    $DOORD_FLAGS are more of them, to run all tests with two loops, say. `addresses` is how many lines it must say; a test that counts differently (inherited sockets) gives it, and all flags."""

    def __init__(self, directory, *flags, env=None, prefix=(), stderr=None, pass_fds=(), addresses=None):
        self.directory = pathlib.Path(directory)
        flags = [*map(str, flags), *os.environ.get("DOORD_FLAGS", "").split()]
        if "--port" not in flags and ("--host" in flags or "--unix" not in flags) and addresses is None:
            flags += ["--port", "0"]
        if addresses is None:
            addresses = (flags.count("--host") or 2 if "--port" in flags else 0) + flags.count("--unix")
        self.log_path = self.directory / f"stderr-{time.monotonic_ns()}"
        own = stderr is None
        stderr = open(self.log_path, "wb") if own else stderr
        try:
            self.process = subprocess.Popen(
                [*prefix, binary(), *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                env={**os.environ, **(env or {})}, pass_fds=pass_fds)
        finally:
            if own:
                stderr.close()
        self.pid = self.process.pid
        self.tcp, self.paths = [], []
        try:
            self._await_addresses(addresses)
        except BaseException:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            raise
        self.first_descriptors = self.descriptors()

    def _await_addresses(self, wanted, seconds=20):
        text, deadline, out = "", time.monotonic() + seconds, self.process.stdout.fileno()
        while len(self.tcp) + len(self.paths) < wanted:
            ready, _, _ = select.select([out], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(out, 4096).decode() if ready else ""
            if not piece:
                raise AssertionError(f"doord did not say where it listens: {text!r}; {self.log()[-2000:]}")
            text += piece
            self.tcp, self.paths = [], []
            for line in text.splitlines(keepends=True):
                if not line.endswith("\n") or "listening" not in line:
                    continue
                for host, port, path in ADDRESS.findall(line):
                    if path:
                        self.paths.append(path)
                    elif (host, int(port)) not in [(f"[{h}]" if ":" in h else h, p) for h, p in self.tcp]:
                        self.tcp.append((host.strip("[]"), int(port)))
        self.stdout = text

    def read_more(self, seconds=10):
        """Reads what else it says on standard output."""
        if select.select([self.process.stdout], [], [], seconds)[0]:
            self.stdout += os.read(self.process.stdout.fileno(), 4096).decode()

    # Where it is.

    @property
    def address(self):
        """The first TCP address, or the path of the Unix-domain socket."""
        return self.tcp[0] if self.tcp else self.paths[0]

    @property
    def port(self):
        return self.tcp[0][1]

    def url(self, path="/", family=4):
        host = next(h for h, _ in self.tcp if (":" in h) == (family == 6))
        return f"http://{'[' + host + ']' if family == 6 else host}:{self.port}{path}"

    # What it says.

    def get(self, path, **options):
        return raw.get(self.address, path, **options)

    def status(self):
        return json.loads(self.get("/status").body)

    def metrics(self):
        """Every sample of /metrics: {name: {labels as a sorted tuple of pairs: value}}."""
        from prometheus_client.parser import text_string_to_metric_families
        samples = {}
        for family in text_string_to_metric_families(self.get("/metrics").body.decode()):
            for sample in family.samples:
                samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return samples

    def metric(self, name, **labels):
        return self.metrics().get(name, {}).get(tuple(sorted(labels.items())), 0)

    def open_connections(self):
        """Connections but the one that asks."""
        return self.status()["openConnections"] - 1

    def log(self):
        try:
            return self.log_path.read_text(errors="surrogateescape")
        except FileNotFoundError:
            return ""

    def log_lines(self):
        return [line for line in self.log().split("\n") if line]

    # What the system says of it.

    def descriptors(self):
        """What its open descriptors are, counted by kind: {"socket": 3, "/dev/null": 2, "anon_inode:[eventpoll]": 2, …}."""
        kinds = collections.Counter()
        for number in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                kinds[re.sub(r":\[\d+\]$", "", os.readlink(f"/proc/{self.pid}/fd/{number}"))] += 1
            except FileNotFoundError:
                pass
        return kinds

    def highest_descriptor(self):
        return max(map(int, os.listdir(f"/proc/{self.pid}/fd")))

    def is_drained(self):
        """Whether it has what it had when it had just started. The runtime's own poll, event and timer descriptors, which it opens
        at their first use and keeps, may have come since: one of each, however much was asked."""
        now, first = self.descriptors(), self.first_descriptors
        more = now - first
        return not first - now and all(kind.startswith("anon_inode") and count == 1 for kind, count in more.items())

    def rss(self):
        """Resident bytes."""
        for line in open(f"/proc/{self.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        return 0

    def cpu(self):
        """Seconds of CPU so far."""
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def running(self):
        return self.process.poll() is None

    # How it ends.

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=20):
        """Waits for the end and returns the exit status (negative: a signal)."""
        code = self.process.wait(seconds)
        self.process.stdout.close()
        return code

    def until_drained(self, seconds=15):
        """Waits until no more descriptors are open than when it had just started."""
        until(self.is_drained, lambda: f"{dict(self.first_descriptors)} at the start, now {dict(self.descriptors())}", seconds)

    def stop(self, number=signal.SIGTERM, seconds=20):
        """Stops it in order: everything drained, exit status 0."""
        assert self.running(), f"doord ended early with {self.process.returncode}: {self.log()[-2000:]}"
        self.until_drained()
        self.send(number)
        code = self.wait(seconds)
        assert code == 0, f"exit status {code}: {self.log()[-2000:]}"

    def finish(self):
        """For the end of a test: stops it in order if it still runs, and leaves nothing behind either way."""
        if self.process.returncode is not None:
            return
        try:
            self.stop()
        finally:
            if self.running():
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()


def run(*arguments, seconds=20, **options):
    """Runs doord to its end: (exit status, standard output, standard error)."""
    done = subprocess.run([binary(), *map(str, arguments)], stdin=options.pop("stdin", subprocess.DEVNULL), capture_output=True,
                          timeout=seconds, **options)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")
