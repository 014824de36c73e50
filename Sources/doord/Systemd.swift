// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc

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
    _ = withUnixAddress(notifyPath) { address, length in
      sendto(descriptor, &message, message.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), address, length)
    }
  }
}

/// Calls `body` with the address of a Unix-domain socket; a leading `@` means Linux's abstract names (unix(7)). nil if the path is too long.
func withUnixAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result? {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  var bytes = Array(path.utf8)
  guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
  let isAbstract = bytes[0] == UInt8(ascii: "@")
  if isAbstract { bytes[0] = 0 }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
  // An abstract name ends where the length says, a path at its NUL.
  let length = MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + bytes.count + (isAbstract ? 0 : 1) } ?? 0
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
  }
}
