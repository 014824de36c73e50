// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop

// What several parts of doord do with the process they are: its threads and its last word.

/// Starts a thread for work that blocks, with all signals blocked. It ends with `body`. Without it doord goes on, less one of its services.
func startOwnThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
  if !startThread(named: name, body) { say("doord: the thread \(name) cannot be started") }
}

/// One line on standard error, at once: for what must be said before the log runs or without it.
func say(_ line: String) {
  Array((line + "\n").utf8).withUnsafeBytes { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
}
