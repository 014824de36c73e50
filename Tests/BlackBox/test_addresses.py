# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Where the door listens, what it says when it cannot, and its command line."""

import json
import os
import socket
import stat
import subprocess

import pytest

import daemon
import raw


def test_by_default_it_listens_on_both_loopback_families_at_one_port(door):
    assert sorted(host for host, _ in door.tcp) == ["127.0.0.1", "::1"]
    assert len({port for _, port in door.tcp}) == 1
    for address in door.tcp:
        assert raw.get(address, "/hello").status == 200


def test_several_hosts_can_be_given(doord):
    door = doord("--host", "127.0.0.1", "--host", "127.0.0.2")
    assert [host for host, _ in door.tcp] == ["127.0.0.1", "127.0.0.2"]
    for address in door.tcp:
        assert raw.get(address, "/hello").status == 200


def test_IPv6_any_takes_IPv6_only(doord):
    door = doord("--host", "::")
    assert raw.get(("::1", door.port), "/hello").status == 200
    with pytest.raises(ConnectionRefusedError):
        raw.connect(("127.0.0.1", door.port))


@pytest.mark.parametrize("loops", ["2", "auto"])
def test_several_loops_share_a_port_and_all_of_them_serve(doord, loops):
    door = doord("--loops", loops, "--host", "127.0.0.1")
    for _ in range(200):
        assert door.get("/hello").status == 200
    assert len(door.status()["loops"]) >= 2 or os.cpu_count() == 1


def test_several_loops_share_a_unix_socket(doord, tmp_path):
    door = doord("--loops", "2", "--unix", tmp_path / "door.sock")
    for _ in range(50):
        assert door.get("/hello").status == 200


def in_use(*flags):
    """Three tries to listen where somebody does already: what was said, and the shortest time it took."""
    tries = [raw.timed(lambda: daemon.run(*flags)) for _ in range(3)]
    (code, _, said), _ = tries[0]
    assert code == 1, said
    return said, min(seconds for _, seconds in tries)


def test_a_port_in_use_is_an_error_within_100_ms_that_names_the_address(door):
    said, seconds = in_use("--port", door.port)
    assert f"127.0.0.1:{door.port}" in said and "in use" in said
    # A debug build starts slower; the bar is the release build's.
    assert seconds <= (0.5 if daemon.is_debug() else 0.1)


def test_a_port_in_use_is_an_error_with_several_loops_too(doord):
    """The loops of one door share their port; a stranger on it must not."""
    door = doord("--host", "127.0.0.1", "--loops", "2")
    for loops in ("1", "2"):
        said, _ = in_use("--host", "127.0.0.1", "--port", door.port, "--loops", loops)
        assert f"127.0.0.1:{door.port}" in said


def test_a_port_in_use_by_a_stranger_in_one_family_is_an_error(doord):
    with socket.socket(socket.AF_INET6) as stranger:
        stranger.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        stranger.bind(("::1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        said, _ = in_use("--port", port)
        assert f"[::1]:{port}" in said


def test_an_address_of_another_machine_is_an_error_that_names_it():
    code, _, said = daemon.run("--host", "192.0.2.1", "--port", "0")
    assert code == 1 and "192.0.2.1" in said


def test_a_host_that_cannot_be_looked_up_is_an_error_that_names_it():
    code, _, said = daemon.run("--host", "nowhere.invalid", "--port", "0")
    assert code == 1 and "nowhere.invalid" in said


# Unix-domain sockets.

def test_a_unix_socket_is_for_its_user_only(doord, tmp_path):
    path = tmp_path / "door.sock"
    doord("--unix", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_unix_sockets_mode_can_be_given(doord, tmp_path):
    path = tmp_path / "door.sock"
    doord("--unix", path, "--unix-mode", "660")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_a_live_unix_socket_is_an_error_and_goes_on(doord, tmp_path):
    path = tmp_path / "door.sock"
    door = doord("--unix", path)
    said, _ = in_use("--unix", path)
    assert str(path) in said
    assert door.get("/hello").status == 200


def test_a_regular_file_at_the_path_is_an_error_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    code, _, said = daemon.run("--unix", path)
    assert code == 1 and str(path) in said and "not a socket" in said
    assert path.read_text() == "mine"


def test_a_directory_and_a_link_to_a_file_at_the_path_are_errors_and_left_alone(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    (tmp_path / "link").symlink_to(kept)
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        code, _, said = daemon.run("--unix", tmp_path / name)
        assert code == 1 and name in said
    assert kept.read_text() == "mine" and (tmp_path / "link").is_symlink() and (tmp_path / "folder").is_dir()


def path_of(length, folder):
    name = str(folder) + "/"
    return name + "s" * (length - len(name))


@pytest.fixture
def short(tmp_path_factory):
    """A folder with a short path, for paths of an exact length."""
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(dir="/tmp")
    yield folder
    shutil.rmtree(folder)


def test_a_unix_path_may_have_107_bytes(doord, short):
    path = path_of(107, short)
    assert doord("--unix", path).get("/hello").status == 200


def test_a_unix_path_of_108_bytes_is_refused_with_the_limit(short):
    code, _, said = daemon.run("--unix", path_of(108, short))
    assert code in (1, 2) and "107" in said and os.listdir(short) == []


def test_a_missing_folder_is_an_error_that_names_the_path(tmp_path):
    code, _, said = daemon.run("--unix", tmp_path / "missing" / "door.sock")
    assert code == 1 and "missing" in said


# The command line.

@pytest.mark.parametrize("flags", [
    ["--nonsense"], ["--port"], ["--port", "65536"], ["--port", "-1"], ["--port", "+80"], ["--port", "http"], ["--port", ""],
    ["--loops", "0"], ["--loops", "many"], ["--unix-mode", "888"], ["--unix-mode", "1000"], ["--allow", "10.0.0.0/33"], ["--allow", "here"],
    ["--trust", "::/129"], ["--max-body", "-1"], ["--max-body", "99999999999999999999"], ["--max-head", "x"], ["--idle", "0"],
    ["--idle", "soon"], ["--arrival", "1 s"], ["--drain", "-1s"], ["--stall", ""], ["--handler-deadline", "9" * 30],
    ["--max-connections", "0"], ["--per-address", "0"], ["--probe", "x"], ["--log", "xml"], ["--name", ""], ["--no-defer=1"],
    ["--max-body", "2M", "--max-buffered", "1M"], ["--unix", "@door"], ["run"], ["serve", "now"], ["parse", "--port", "1"],
], ids=" ".join)
def test_a_wrong_flag_or_value_exits_2_with_a_sentence(flags):
    code, out, said = daemon.run(*flags)
    assert code == 2 and out == b"" and 10 < len(said.strip()) < 400
    named = next((flag for flag in flags if flag.startswith("--")), flags[-1]).split("=")[0]
    assert named in said


@pytest.mark.parametrize("words", [[b"--host", b"\xff"], [b"parse", b"caf\xe9"], [b"\xc0\xaf"]])
def test_an_argument_that_is_not_UTF_8_exits_2_with_a_sentence(words):
    done = subprocess.run([daemon.binary(), *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    assert done.returncode == 2 and done.stdout == b"" and b"is not UTF-8" in done.stderr


def test_parse_ends_with_an_input_that_does_not():
    code, out, _ = daemon.run("parse", "/dev/zero")
    assert code == 1 and json.loads(out)["outcome"] == "invalid"


FLAGS = """--host --port --unix --unix-mode --loops --allow --trust --name --max-body --max-head --max-buffered --max-connections
 --per-address --idle --arrival --stall --drain --handler-deadline --no-defer --probe --log --help --version""".split()


def test_help_names_every_flag():
    code, out, said = daemon.run("--help")
    assert code == 0 and said == ""
    words = out.decode().replace("=", " ").replace(",", " ").split()
    assert [flag for flag in FLAGS if flag not in words] == []


def test_version_is_one_line_and_the_version_that_hello_tells(door):
    code, out, _ = daemon.run("--version")
    assert code == 0 and out.count(b"\n") == 1
    assert door.get("/hello").json["version"] in out.decode()


def test_serve_can_be_said(doord):
    assert doord("serve").get("/hello").status == 200


@pytest.mark.parametrize("descriptors", [4, 5, 6])
def test_too_few_descriptors_to_start_is_a_sentence_and_not_a_crash(descriptors):
    limit = f"--nofile={descriptors}:{descriptors}"
    ended = subprocess.run(["prlimit", limit, daemon.binary(), "--port", "0"], capture_output=True, text=True, timeout=20)
    assert ended.returncode == 1 and "Too many open files" in ended.stderr
