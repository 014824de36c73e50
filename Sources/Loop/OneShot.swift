// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// A timer for one closure. On the loop's thread.

/// Runs a closure once, on the loop's thread, unless it is cancelled, which drops the closure at once.
package final class OneShot: Waiter {
  private let poller: Poller
  private var body: (() -> Void)?
  /// Keeps it alive while libev holds its address.
  private var itself: OneShot?

  package convenience init(on poller: Poller, after delay: Duration, _ body: @escaping () -> Void) {
    self.init(on: poller, at: poller.now + delay.inNanoseconds, body)
  }

  package init(on poller: Poller, at deadline: Moment, _ body: @escaping () -> Void) {
    self.poller = poller
    self.body = body
    super.init()
    itself = self
    poller.set(self, deadline: deadline)
  }

  package var isOver: Bool { body == nil }

  package override func deadlineReached() {
    let body = body
    cancel()
    body?()
  }

  package func cancel() {
    body = nil
    guard itself != nil else { return }
    poller.forget(self)
    itself = nil
  }
}
