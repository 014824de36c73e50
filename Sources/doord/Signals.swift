// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc

// Signals have one owner: a thread that waits for them with sigwait(3). Nothing runs in a signal handler, and no library installs one.

enum Signals {
  /// Blocks what `onStop` waits for, and ignores SIGHUP and SIGPIPE: a terminal that closes does not end the door, and neither does a
  /// reader of the log that left. Before any other thread exists: they inherit the mask.
  static func prepare() {
    signal(SIGHUP, SIG_IGN)
    signal(SIGPIPE, SIG_IGN)
    var set = stopping
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Calls `body` for each SIGTERM and SIGINT, with 1 for the first. On a thread of its own; false if there is none to have, and then
  /// these signals are lost.
  static func onStop(_ body: @escaping @Sendable (Int) -> Void) -> Bool {
    startOwnThread("doord-signals") {
      var set = stopping
      var count = 0
      while true {
        var number: Int32 = 0
        guard sigwait(&set, &number) == 0 else { continue }
        count += 1
        body(count)
      }
    }
  }

  private static var stopping: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    return set
  }
}
