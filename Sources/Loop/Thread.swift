// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc

// Threads of our own, for loops, the blocking pool and whatever a daemon runs beside them.

/// Starts a thread that runs `body` with every signal blocked: signals, SIGPIPE too, are the business of whoever owns the
/// process. The name is cut to 15 bytes. False if the system has no thread to give.
/// - Parameter isJoined: Whether somebody joins it; else it is detached.
@discardableResult
package func startThread(named name: String, isJoined: Bool = false, _ body: @escaping @Sendable () -> Void) -> Bool {
  // A new thread has its creator's signal mask, so there is no moment without it.
  var all = sigset_t()
  var former = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_SETMASK, &all, &former)
  defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
  let start = Unmanaged.passRetained(ThreadStart(name, body))
  var thread = pthread_t()
  let result = pthread_create(
    &thread, nil,
    { raw in
      guard let raw else { return nil }
      let start = Unmanaged<ThreadStart>.fromOpaque(raw).takeRetainedValue()
      pthread_setname_np(pthread_self(), start.name)
      start.body()
      return nil
    }, start.toOpaque())
  guard result == 0 else {
    start.release()
    return false
  }
  if !isJoined { pthread_detach(thread) }
  return true
}

private final class ThreadStart: Sendable {
  let name: String
  let body: @Sendable () -> Void

  init(_ name: String, _ body: @escaping @Sendable () -> Void) {
    self.name = String(decoding: name.utf8.prefix(15), as: UTF8.self)
    self.body = body
  }
}
