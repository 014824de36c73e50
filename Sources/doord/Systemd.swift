// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop

// What systemd wants to hear from a service: sd_notify(3) and sd_watchdog_enabled(3), without its library.

/// The service manager, as far as the environment tells of one.
struct ServiceManager: Sendable {
  /// Where to send notes; nil: nobody wants them.
  private let notifyPath: String?
  /// How often a sign of life is due: half of what systemd waits for. nil: none is wanted.
  let watchdogInterval: Duration?

  /// Reads `environment`. What is meant for another process is left alone.
  init(_ environment: @escaping (String) -> String? = { name in getenv(name).map { String(cString: $0) } }, process: Int32 = getpid()) {
    notifyPath = environment("NOTIFY_SOCKET")
    let interval = environment("WATCHDOG_USEC").flatMap { Int64($0) } ?? 0
    let isOurs = environment("WATCHDOG_PID").map { $0 == String(process) } ?? true
    watchdogInterval = interval > 0 && isOurs ? .microseconds(interval / 2) : nil
  }

  /// Tells the manager something: `READY=1`, `STOPPING=1`, `WATCHDOG=1`. Does not wait, and a manager that is gone is no error.
  func notify(_ state: String) {
    guard let notifyPath else { return }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var message = Array(state.utf8)
    _ = withUnixAddress(notifyPath, abstract: true) { address, length in
      sendto(descriptor, &message, message.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), address, length)
    }
  }
}
