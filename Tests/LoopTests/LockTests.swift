// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing

@testable import Loop

@Suite struct LockTests {
  struct Broken: Error {}

  @Test func increments_of_many_threads_are_all_counted() {
    let counter = Locked(0)
    let threads = (0..<4).map { _ in
      startThread {
        for _ in 0..<20_000 { counter.withLock { $0 += 1 } }
      }
    }
    for thread in threads { pthread_join(thread, nil) }
    #expect(counter.withLock { $0 } == 80_000)
  }

  @Test func an_error_leaves_the_lock_free() {
    let value = Locked("a")
    #expect(throws: Broken.self) { try value.withLock { (_: inout String) throws(Broken) in throw Broken() } }
    #expect(value.withLock { $0 } == "a")
  }
}
