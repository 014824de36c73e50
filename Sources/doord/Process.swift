// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop

// What several parts of doord do with the process they are: its threads and its last word.

/// Starts a thread for work that blocks, with all signals blocked. It ends with `body`. Says so and returns false if there is none to have:
/// doord can go on, less one of its services.
@discardableResult
func startOwnThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
  if startThread(named: name, body) { return true }
  say("doord: the thread \(name) cannot be started")
  return false
}

/// One line on standard error, at once: for what must be said before the log runs or without it. A pipe that nobody reads holds it up for
/// a second at most.
func say(_ line: String) {
  LogWriter(descriptor: STDERR_FILENO).write(Array((line + "\n").utf8), waiting: 1000)
}
