# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""wrk, ab and nc: many connections, and not one answer lost."""

import re

import callers
import raw


def test_wrk_sees_no_error(door):
    said = callers.run(["wrk", "-t1", "-c32", "-d2s", door.url("/hello")]).stdout.decode()
    assert int(re.search(r"(\d+) requests in", said)[1]) > 100, said
    assert "Socket errors" not in said and "Non-2xx" not in said, said


def test_ab_sees_no_error(door):
    said = callers.run(["ab", "-q", "-n", "3000", "-c", "32", door.url("/hello")]).stdout.decode()
    assert re.search(r"Complete requests:\s+3000\n", said) and re.search(r"Failed requests:\s+0\n", said), said
    assert "Non-2xx" not in said, said


def test_ab_posts_a_body_and_sees_no_error(door, body):
    path, _, _ = body(100_000)
    said = callers.run(["ab", "-q", "-n", "500", "-c", "8", "-p", path, "-T", "application/x-test", door.url("/echo")]).stdout.decode()
    assert re.search(r"Complete requests:\s+500\n", said) and re.search(r"Failed requests:\s+0\n", said), said


def many_nc(request, destination, times, parallel):
    """Runs `printf request | nc -N destination` that often, and gives the status lines."""
    script = f"printf '{request}' | nc -N {destination} | head -n 1"
    done = callers.run(["sh", "-c", f'seq {times} | xargs -P {parallel} -I@ sh -c "$0"', script], seconds=120)
    return done.stdout.decode().replace("\r", "").split("\n")[:-1]


def test_nc_gets_its_answer_2000_times_of_2000(door):
    """nc -N shuts its sending side down right behind the request: a half-close in the same packet, more or less."""
    request = r"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lines = many_nc(request, f"127.0.0.1 {door.port}", 2000, 4)
    assert lines == ["HTTP/1.1 200 OK"] * 2000


def test_nc_over_a_unix_socket_gets_its_answer_200_times_of_200(doord, tmp_path):
    path = tmp_path / "door.sock"
    doord("--unix", path)
    lines = many_nc(r"GET /hello HTTP/1.0\r\n\r\n", f"-U {path}", 200, 4)
    assert lines == ["HTTP/1.1 200 OK"] * 200


def test_openssl_s_client_is_told_that_this_is_no_TLS(door):
    """A ClientHello's first byte cannot begin a request: the answer is a 400 at once, not silence until a timer."""
    import subprocess
    done, seconds = raw.timed(lambda: subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{door.port}", "-debug"],
                                                     stdin=subprocess.DEVNULL, capture_output=True, timeout=20))
    assert done.returncode == 1 and b"wrong version number" in done.stderr, done.stderr
    assert seconds < 5
