# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""The clients nobody here wrote, all behind one call: `call(method, path, body=file, chunked=…, expect=…) -> Reply`."""

import hashlib
import http.client
import json
import pathlib
import re
import socket
import subprocess

HERE = pathlib.Path(__file__).parent


class Reply:
    """What a client made of the answer."""

    def __init__(self, status, headers, data=b"", sha256=None, length=None, continued=False):
        self.status, self.continued = status, continued
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.text = data.decode("utf-8", "replace") if len(data) <= 4096 else ""
        self.sha256 = sha256 or hashlib.sha256(data).hexdigest()
        self.length = len(data) if length is None else length

    @property
    def json(self):
        return json.loads(self.text)


def run(arguments, seconds=60):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, timeout=seconds)
    assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {done.stderr[-1000:].decode(errors='replace')}"
    return done


class Curl:
    def __init__(self, url, host=None, unix=None):
        self.url, self.host, self.unix = url, host, unix

    def __call__(self, method, path, body=None, chunked=False, expect=False):
        arguments = ["curl", "-q", "--silent", "--show-error", "--verbose", "--noproxy", "*", "--max-time", "50", "--dump-header", "/dev/stderr",
                     "--output", "-", "-H", "Content-Type: application/x-test"]
        arguments += ["--head"] if method == "HEAD" else ["-X", method]
        if self.host:
            arguments += ["-H", f"Host: {self.host}"]
        if self.unix:
            arguments += ["--unix-socket", self.unix]
        if chunked:
            arguments += ["-H", "Transfer-Encoding: chunked"]
        # `-T` is how people send files; it expects 100-continue by itself, and so does --data-binary over 1 MB.
        if body:
            arguments += ["-T", str(body)] if expect or chunked else ["--data-binary", f"@{body}"]
        done = run([*arguments, self.url + path])
        verbose = done.stderr.decode("latin-1")
        heads = [line[2:].rstrip("\r") for line in verbose.split("\n") if line.startswith("< ")]
        last = max(index for index, line in enumerate(heads) if line.startswith("HTTP/"))
        continued = any(re.match(r"HTTP/1\.1 100", line) for line in heads)
        headers = dict(line.split(": ", 1) for line in heads[last + 1:] if ": " in line)
        return Reply(int(heads[last].split()[1]), headers, b"" if method == "HEAD" else done.stdout, continued=continued)


class UnixHTTPConnection(http.client.HTTPConnection):
    """http.client over a Unix-domain socket, as its users do it."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class PythonClient:
    def __init__(self, host_and_port=None, host=None, unix=None):
        self.where, self.host, self.unix = host_and_port, host, unix

    def __call__(self, method, path, body=None, chunked=False, expect=False):
        connection = UnixHTTPConnection(self.unix, 50) if self.unix else http.client.HTTPConnection(*self.where, timeout=50)
        headers = {"Content-Type": "application/x-test"}
        if self.host:
            headers["Host"] = self.host
        data, continued = pathlib.Path(body).read_bytes() if body else None, False
        try:
            if expect:
                # http.client cannot wait for the leave itself, but it does skip it.
                headers |= {"Expect": "100-continue", "Content-Length": str(len(data))}
                connection.request(method, path, headers=headers)
                continued = connection.sock.recv(25, socket.MSG_PEEK).startswith(b"HTTP/1.1 100 ")
                if continued:
                    connection.send(data)
            elif chunked:
                connection.request(method, path, iter([data]), headers=headers, encode_chunked=True)
            else:
                connection.request(method, path, data, headers=headers)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read(), continued=continued)
        finally:
            connection.close()


class Program:
    """The Go and the Node client, which take the same words."""

    def __init__(self, command, url, host=None, unix=None):
        self.command, self.url, self.host, self.unix = command, url, host, unix

    def __call__(self, method, path, body=None, chunked=False, expect=False):
        flags = ["--body", body] if body else []
        flags += ["--chunked"] if chunked else []
        flags += ["--expect"] if expect else []
        flags += ["--host", self.host] if self.host else []
        flags += ["--unix", self.unix] if self.unix else []
        said = json.loads(run([*self.command, *flags, method, self.url + path]).stdout)
        return Reply(said["status"], said["headers"], said["text"].encode(), said["sha256"], said["length"], said["continued"])


class Proxy:
    """nginx or HAProxy in front, with a configuration written here, on a port of its own and in the foreground."""

    def __init__(self, command, port):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.port = port

    def listens(self):
        assert self.process.poll() is None, self.stop()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.terminate()
        _, said = self.process.communicate(timeout=20)
        return said.decode(errors="replace")


def free_port():
    """A port nobody has now. Another process may take it before it is used; a proxy then says so."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def nginx(folder, door, name):
    port = free_port()
    configuration = folder / "nginx.conf"
    # client_max_body_size: nginx's own limit of 1 MB would answer instead of the door. Everything else is as it comes.
    configuration.write_text(f"""
        daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;
        events {{ worker_connections 256; }}
        http {{
          access_log off; client_max_body_size 0;
          client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
          fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
          upstream {name} {{ server {door.tcp[0][0]}:{door.port}; }}
          server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{name}; }} }}
        }}""")
    return Proxy(["/usr/sbin/nginx", "-p", folder, "-c", configuration], port)


def haproxy(folder, door):
    port = free_port()
    configuration = folder / "haproxy.cfg"
    configuration.write_text(f"""
global
    maxconn 500
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port}
    default_backend back
backend back
    server door {door.tcp[0][0]}:{door.port}
""")
    return Proxy(["/usr/sbin/haproxy", "-db", "-f", configuration], port)
