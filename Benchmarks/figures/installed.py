# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""What `make install` puts on a machine: its size, and its memory after start."""

import pathlib
import tempfile

from . import servers, tools
from .tools import Row


def figure(binary, options):
    tools.say("the installed doord")
    with tempfile.TemporaryDirectory() as directory:
        tools.run("make", "--no-print-directory", "install", f"DESTDIR={directory}", "PREFIX=/usr")
        installed = pathlib.Path(directory) / "usr" / "bin" / "doord"
        size = installed.stat().st_size
        with servers.doord(installed) as server:
            rss = server.rss()
    yield Row("RSS after start", rss / 1e6, "MB", bar=10)
    yield Row("size of the binary", size / 1e6, "MB", bar=15)
