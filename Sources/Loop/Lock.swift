// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
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

extension Locked {
  /// Calls `body` until it gives a result, and waits for `condition` in between, without the lock. When `limit` has passed, `body` is
  /// called once more, with true, and what it gives then counts.
  package func wait<Result>(on condition: Condition, for limit: Duration, until body: (inout State, _ expired: Bool) -> Result?) -> Result?
  {
    var deadline = timespec()
    clock_gettime(CLOCK_MONOTONIC, &deadline)
    let (seconds, attoseconds) = limit.components
    let nanoseconds = deadline.tv_nsec + Int(attoseconds / 1_000_000_000)
    deadline.tv_sec += Int(clamping: seconds) + nanoseconds / 1_000_000_000
    deadline.tv_nsec = nanoseconds % 1_000_000_000
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    var expired = false
    while true {
      // The value is lent anew each time: while this thread waits, others change it.
      if let result = body(&state.pointee, expired) { return result }
      if expired { return nil }
      expired = pthread_cond_timedwait(condition.condition, mutex, &deadline) == ETIMEDOUT
    }
  }
}

/// What threads wait for that do not find a locked value as they need it.
///
/// `@unchecked Sendable` is right because POSIX makes it so. On the heap for the same reason as the mutex.
package final class Condition: @unchecked Sendable {
  fileprivate let condition: UnsafeMutablePointer<pthread_cond_t>

  package init() {
    condition = .allocate(capacity: 1)
    // Deadlines are of the monotonic clock: setting the time must not move them.
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
  }

  /// Wakes one that waits.
  package func signal() { pthread_cond_signal(condition) }

  /// Wakes all that wait.
  package func broadcast() { pthread_cond_broadcast(condition) }
}
