// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
import Glibc
import Synchronization

// A descriptor and its one owner. Any thread, but the watcher on it must have been stopped, on its loop, before it is closed.

/// A descriptor that is closed exactly once: by `close()`, or when its owner lets go of it.
package final class Descriptor: Sendable {
  private let held: Atomic<Int32>

  /// Takes over `number`, which nobody else may close from here on.
  package init(owning number: Int32) { held = Atomic(number) }

  deinit { close() }

  /// The number; -1 once it is closed or released, which every system call refuses.
  package var number: Int32 { held.load(ordering: .relaxed) }

  /// Whether it is a socket that listens. After `shutdown`, which a debugger can call, it no longer is.
  package var isListening: Bool {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value == 1
  }

  /// Takes TCP_DEFER_ACCEPT back, where it is set.
  package func stopDeferring() {
    var off: Int32 = 0
    _ = setsockopt(number, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT, &off, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Closes it, the first time. An error of close(2) is of no use: Linux has freed the number in any case, EINTR too.
  package func close() {
    let number = release()
    if number >= 0 { _ = Glibc.close(number) }
  }

  /// Gives the number away: the caller closes it.
  package func release() -> Int32 { held.exchange(-1, ordering: .acquiringAndReleasing) }
}
