# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Every client against every kind of request: directly, over a Unix-domain socket, and through nginx and HAProxy."""

import pytest

import callers
from daemon import until

NAME = "door.example"
MEGA = 1 << 20
CHUNKED = "chunked bodies are not spoken here; send Content-Length"
DIRECT = ["curl", "curl over IPv6", "curl over a Unix socket", "http.client", "http.client over a Unix socket", "Go", "Node",
          "Node over a Unix socket"]
PROXIED = ["curl through nginx", "http.client through nginx", "Go through nginx", "curl through HAProxy", "http.client through HAProxy",
           "Node through HAProxy"]


@pytest.fixture
def client(request, doord, tmp_path):
    """The client that the test's parameter names, in front of a doord of its own."""
    kind = request.param
    folder = tmp_path / "client"
    folder.mkdir()
    path = str(folder / "door.sock")
    if "Unix" in kind:
        doord("--unix", path)
        url, host, unix = "http://localhost", None, path
        where = None
    elif "through" in kind:
        door = doord("--host", "127.0.0.1", "--name", NAME)
        proxy = callers.nginx(folder, door, NAME) if "nginx" in kind else callers.haproxy(folder, door)
        request.addfinalizer(proxy.stop)
        where = ("127.0.0.1", proxy.port)
        until(proxy.listens, "the proxy listens")
        url, unix, host = f"http://127.0.0.1:{proxy.port}", None, NAME
    else:
        door = doord()
        where = door.tcp[0]
        url, host, unix = door.url("", family=6 if "IPv6" in kind else 4), None, None
    if kind.startswith("curl"):
        return callers.Curl(url, host, unix)
    if kind.startswith("http.client"):
        return callers.PythonClient(where, host, unix)
    command = [request.getfixturevalue("go_client")] if kind.startswith("Go") else ["node", str(callers.HERE / "clients" / "client.mjs")]
    return callers.Program(command, url, host, unix)


everyone = pytest.mark.parametrize("client", DIRECT + PROXIED, indirect=True)
direct = pytest.mark.parametrize("client", DIRECT, indirect=True)


@everyone
def test_a_get_is_answered(client):
    reply = client("GET", "/hello")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.json["ok"] is True and reply.json["name"] == "doord" and reply.json["version"]


@everyone
def test_a_HEAD_has_the_head_of_a_GET_and_no_body(client):
    reply, full = client("HEAD", "/hello"), client("GET", "/hello")
    assert reply.status == 200 and reply.length == 0
    wanted = {name: value for name, value in full.headers.items() if name not in ("date", "connection", "keep-alive")}
    assert {name: value for name, value in reply.headers.items() if name in wanted} == wanted
    assert int(wanted["content-length"]) == full.length


@everyone
def test_a_body_after_100_continue_is_echoed(client, body, request):
    path, data, digest = body(3)
    reply = client("PUT", "/echo", path, expect=True)
    assert (reply.status, reply.length, reply.sha256) == (200, 3, digest)
    assert reply.headers["content-type"] == "application/x-test"
    # A proxy may say it itself or keep it (RFC 9110 10.1.1).
    if "through" not in request.node.name:
        assert reply.continued


@everyone
def test_32_MB_are_echoed_byte_for_byte(client, body):
    path, data, digest = body(32 * MEGA)
    reply = client("POST", "/echo", path)
    assert (reply.status, reply.length, reply.sha256) == (200, 32 * MEGA, digest)


@everyone
def test_33_MB_are_refused_with_a_whole_413(client, body):
    path, _, _ = body(33 * MEGA)
    reply = client("POST", "/echo", path)
    assert reply.status == 413
    assert reply.json == {"error": f"the body is {33 * MEGA} bytes, over {32 * MEGA}", "ok": False}


@direct
def test_33_MB_announced_with_100_continue_are_refused_before_they_are_sent(client, body):
    path, _, _ = body(33 * MEGA)
    reply = client("PUT", "/echo", path, expect=True)
    assert reply.status == 413 and not reply.continued


@pytest.mark.parametrize("client", DIRECT + [kind for kind in PROXIED if "HAProxy" in kind], indirect=True)
def test_a_chunked_body_is_refused_with_the_sentence(client, body):
    path, _, _ = body(1000)
    reply = client("POST", "/echo", path, chunked=True)
    assert reply.status == 400
    assert reply.json == {"error": CHUNKED, "ok": False}


@pytest.mark.parametrize("client", [kind for kind in PROXIED if "nginx" in kind], indirect=True)
def test_nginx_gives_a_chunked_body_a_length(client, body):
    path, _, digest = body(1000)
    reply = client("POST", "/echo", path, chunked=True)
    assert (reply.status, reply.sha256) == (200, digest)


@everyone
def test_what_is_not_there_is_a_404_and_what_is_not_allowed_a_405(client):
    reply = client("GET", "/nowhere")
    assert reply.status == 404 and reply.json["ok"] is False and reply.json["error"]
    reply = client("DELETE", "/hello")
    assert reply.status == 405 and {"GET", "HEAD"} <= {method.strip() for method in reply.headers["allow"].split(",")}


@everyone
def test_a_client_may_wait_for_a_second(client):
    reply = client("GET", "/wait?seconds=1")
    assert reply.status == 200
