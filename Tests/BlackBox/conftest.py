# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""Starts a doord for each test and holds every test to the same end: no descriptor more than at its start, and exit status 0."""

import hashlib
import pathlib
import random
import subprocess

import pytest

import daemon

HERE = pathlib.Path(__file__).parent
collect_ignore = ["soak"]


@pytest.fixture
def doord(tmp_path):
    """Starts doords: `door = doord("--idle", "300ms")`. Each is stopped at the end, and its descriptors and exit status checked."""
    doors = []

    def start(*flags, **options):
        door = daemon.Door(tmp_path, *flags, **options)
        doors.append(door)
        return door

    yield start
    failures = []
    for door in doors:
        try:
            door.finish()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, failures


@pytest.fixture
def door(doord):
    """A doord with its defaults on both loopback families."""
    return doord()


@pytest.fixture(scope="session")
def body(tmp_path_factory):
    """Random bytes in a file, the same in every run: `body(n)` is (path, bytes, SHA-256)."""
    folder, made = tmp_path_factory.mktemp("bodies"), {}

    def make(size):
        if size not in made:
            data = random.Random(size).randbytes(size)
            path = folder / str(size)
            path.write_bytes(data)
            made[size] = (path, data, hashlib.sha256(data).hexdigest())
        return made[size]

    return make


@pytest.fixture(scope="session")
def go_client(tmp_path_factory):
    """The client over Go's net/http, built once."""
    out = tmp_path_factory.mktemp("go") / "client"
    subprocess.run(["go", "build", "-o", out, HERE / "clients" / "client.go"], check=True, timeout=300)
    return str(out)
