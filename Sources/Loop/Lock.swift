// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc

// The one lock of Loop. Any thread. `Synchronization.Mutex` would do, but on Linux ThreadSanitizer cannot see it and reports races
// that are none, and it costs several times as much.

/// A value that is reached only while a lock is held.
///
/// `@unchecked Sendable` is right because `withLock` is the only way to the value. The mutex lies on the heap: pthread_mutex_t must keep
/// its address, which a stored property of Swift does not promise.
package final class Locked<State>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  // Behind a pointer too: a class property would add a check of exclusive access to every use.
  private let state: UnsafeMutablePointer<State>

  package init(_ initial: consuming sending State) {
    mutex = .allocate(capacity: 1)
    // Without attributes this cannot fail on Linux (pthread_mutex_init(3)).
    pthread_mutex_init(mutex, nil)
    state = .allocate(capacity: 1)
    state.initialize(to: initial)
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Calls `body` with the value, one caller at a time. Not recursive; `body` must be short and must not call code it does not know.
  package func withLock<Result, Failure: Error>(_ body: (inout State) throws(Failure) -> Result) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state.pointee)
  }
}
