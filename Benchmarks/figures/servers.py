# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Starts the servers that are measured, and reads what the kernel says of them."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.request

from . import tools

# A held connection must outlive its measurement, and 10 000 of them must fit.
PATIENT = ["--idle", "600", "--arrival", "600", "--max-connections", "30000"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A running server: its port and its processes. `answer` is what it says to GET /hello."""

    def __init__(self, name, process, port, host="127.0.0.1", path="/hello"):
        self.name, self.process, self.port, self.host, self.path = name, process, port, host, path

    @property
    def url(self):
        return f"http://{self.host}:{self.port}{self.path}"

    def pids(self):
        """The process and its children (nginx's worker is one)."""
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                todo += map(int, children.read_text().split())
        return found

    def cpu_of_threads(self):
        """Nanoseconds on a processor so far, of each thread."""
        times = {}
        for pid in self.pids():
            for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(OSError):  # a thread that has just ended
                    times[int(stat.parent.name)] = int(stat.read_text().split()[0])
        return times

    def cpu(self):
        return sum(self.cpu_of_threads().values())

    def rss(self):
        """Bytes of resident memory of the process that serves."""
        status = pathlib.Path(f"/proc/{self.pids()[-1]}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def status(self):
        """doord's /status."""
        with urllib.request.urlopen(f"http://{self.host}:{self.port}/status", timeout=10) as answer:
            return json.load(answer)

    def exchange(self):
        """The bytes of one request, as the clients here send it, and of its answer."""
        request = f"GET {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode()
        with socket.create_connection((self.host, self.port), timeout=10) as s:
            s.sendall(request)
            answer = b""
            while piece := s.recv(65536):
                answer += piece
        return request, answer


@contextlib.contextmanager
def running(name, command, port, path="/hello", ready_within=20):
    """A server's life: started, awaited until it answers, stopped."""
    said = tempfile.TemporaryFile()  # a file, not a pipe: an access log must find room
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stderr=said, stdout=subprocess.DEVNULL)
    try:
        server = Server(name, process, port, path=path)
        deadline = time.monotonic() + ready_within
        while True:
            try:
                server.exchange()
                break
            except OSError as error:
                if process.poll() is not None:
                    said.seek(0)
                    raise tools.Stop(f"{name} ended at its start: {said.read(2000).decode()}") from error
                if time.monotonic() > deadline:
                    raise tools.Stop(f"{name} does not answer on port {port} within {ready_within} s") from error
                time.sleep(0.02)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said.close()


@contextlib.contextmanager
def doord(binary, core=None, flags=()):
    port = free_port()
    log = [] if "--log" in flags else ["--log", "off"]
    command = [binary, "serve", "--host", "127.0.0.1", "--port", port, "--probe", "0", *log, *flags]
    with running("doord", tools.on_core(core, *command) if core is not None else command, port) as server:
        yield server


@contextlib.contextmanager
def baseline(answer, core):
    """The C baseline, answering with the bytes given."""
    program = tools.build_c("baseline")
    with tempfile.NamedTemporaryFile(suffix=".answer") as file:
        file.write(answer)
        file.flush()
        port = free_port()
        with running("C baseline", tools.on_core(core, program, port, file.name), port) as server:
            yield server


NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
error_log stderr crit;
pid {directory}/pid;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  keepalive_timeout 0;
  default_type application/json;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port} deferred backlog=4096;
    location = /hello {{ return 200 '{body}'; }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(answer, core):
    """nginx, answering with the same body."""
    body = answer.partition(b"\r\n\r\n")[2].decode()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        port = free_port()
        configuration = pathlib.Path(directory) / "nginx.conf"
        configuration.write_text(NGINX.format(directory=directory, port=port, body=body))
        with running("nginx", tools.on_core(core, "nginx", "-p", directory, "-c", configuration), port) as server:
            yield server
