// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What connections and listeners stand on: somebody who waits for their descriptor and their deadline. The event loop is one such
// somebody, the simulation another. Everything here is on one thread, the loop's.

/// Waits for a descriptor and a deadline. Subclassed by what reacts.
@usableFromInline
package class Waiter {
  /// -1 when there is none.
  @exclusivity(unchecked) package final var descriptor: Int32 = -1
  /// What the poller was last told.
  @exclusivity(unchecked) package final var reads = false
  @exclusivity(unchecked) package final var writes = false
  @exclusivity(unchecked) package final var deadline = Moment.never
  /// The poller's own, made when this waiter first waits: a connection that is answered and closed in one sitting needs none.
  @exclusivity(unchecked) package final var watch: UnsafeMutableRawPointer?

  package init() {}

  /// The descriptor is ready for what was asked. A hang-up or an error counts as both. Reads come before writes.
  package func ready(toRead: Bool, toWrite: Bool) {}
  /// The deadline passed.
  package func deadlineReached() {}
}

/// Tells waiters when they are ready, on one thread.
///
/// `@unchecked Sendable`: but for `submit` and `isCurrent`, everything is used on that thread alone.
package class Poller: @unchecked Sendable {
  package init() {}

  /// The moment, read from the clock: a turn may have taken long, and deadlines are not counted from its start.
  package var now: Moment { .never }

  /// Has `waiter` told when its descriptor can be read or written, from the next turn on; neither stops that. A descriptor must be
  /// stopped before it is closed.
  package final func set(_ waiter: Waiter, reading: Bool, writing: Bool) {
    guard reading != waiter.reads || writing != waiter.writes else { return }
    waiter.reads = reading
    waiter.writes = writing
    interestChanged(waiter)
  }

  /// Has `waiter` told when `deadline` has passed, once. `.never` takes it back.
  package final func set(_ waiter: Waiter, deadline: Moment) {
    guard deadline != waiter.deadline else { return }
    waiter.deadline = deadline
    deadlineChanged(waiter)
  }

  /// Waits for nothing more.
  package final func stop(_ waiter: Waiter) {
    set(waiter, reading: false, writing: false)
    set(waiter, deadline: .never)
  }

  // MARK: For the subclass

  /// Runs the nonisolated code of handlers' tasks on the thread.
  package var executor: any TaskExecutor { LastResort.shared }
  /// Whether the caller is on the thread.
  package var isCurrent: Bool { true }
  /// Runs `body` on the thread, in this turn or the next. Any thread. False, and `body` is dropped, if there is no next.
  @discardableResult
  package func submit(_ body: @escaping @Sendable () -> Void) -> Bool { false }
  /// Runs `body` after what is on the stack now. On the thread.
  package func later(_ body: @escaping () -> Void) {}

  /// `reads` or `writes` changed.
  package func interestChanged(_ waiter: Waiter) {}
  /// `deadline` changed.
  package func deadlineChanged(_ waiter: Waiter) {}
  /// The waiter will never wait again, and what was made for it is freed.
  package func forget(_ waiter: Waiter) {}
}
