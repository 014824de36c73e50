// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
import Glibc

// Listening sockets that a service manager opened and passed on, by systemd's protocol (sd_listen_fds(3)).

extension Endpoint {
  /// The listening sockets that systemd passed to this process (a `.socket` unit), in its order; empty if there are none. Call it once,
  /// before there are threads: it takes `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES` out of the environment, so that no child takes
  /// them for its own.
  public static func systemd() -> [Endpoint] {
    let count = passedSockets(
      pid: getenv("LISTEN_PID").map { String(cString: $0) }, count: getenv("LISTEN_FDS").map { String(cString: $0) }, ownPID: getpid())
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
    return (0..<count).map { .inherited(descriptor: 3 + $0) }
  }

  /// How many descriptors from 3 on are meant for the process `ownPID`. The variables may be another's: they pass through exec(3).
  static func passedSockets(pid: String?, count: String?, ownPID: pid_t) -> Int32 {
    guard let pid, pid_t(pid) == ownPID, let count = count.flatMap({ Int32($0) }), count > 0, count <= 4096 else { return 0 }
    return count
  }
}
