// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing

@testable import Loop

/// Closed at first; whoever passes waits, blocking its thread, until it is opened.
private final class Gate: Sendable {
  private let state = Locked((isOpen: false, inside: 0))
  private let change = Condition()

  func pass() {
    state.withLock { $0.inside += 1 }
    change.broadcast()
    let passed: Bool? = state.wait(on: change, for: .seconds(20)) { (state, _) in state.isOpen ? true : nil }
    #expect(passed == true)
  }

  func open() {
    state.withLock { $0.isOpen = true }
    change.broadcast()
  }

  /// Blocks until `count` have come to the gate.
  func waitForArrivals(_ count: Int) -> Bool {
    state.wait(on: change, for: .seconds(20)) { (state, _) in state.inside >= count ? true : nil } ?? false
  }

  var arrivals: Int { state.withLock { $0.inside } }
}

/// How many threads of this process bear `name`; each test that counts gives its pool a name of its own.
private func threads(named name: String) -> Int {
  guard let directory = opendir("/proc/self/task") else { return -1 }
  defer { closedir(directory) }
  var count = 0
  while let entry = readdir(directory) {
    let id = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    guard id.first != ".", let file = fopen("/proc/self/task/\(id)/comm", "r") else { continue }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 32)
    if fgets(&line, 32, file) != nil, strcmp(line, name + "\n") == 0 { count += 1 }
  }
  return count
}

@Suite struct BlockingPoolTests {
  @Test func a_closure_runs_on_a_thread_of_the_pool_with_all_signals_blocked() async throws {
    let pool = BlockingPool(threads: 1, queue: 0)
    let (there, blocked) = try await pool.run {
      var mask = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &mask)
      return (onPool(), [SIGPIPE, SIGTERM, SIGINT].map { sigismember(&mask, $0) })
    }
    #expect(there)
    #expect(blocked == [1, 1, 1])
    #expect(pool.shutdown(within: .seconds(10)) == 0)
  }

  @Test func an_error_of_the_closure_is_thrown() async {
    let pool = BlockingPool(threads: 1, queue: 0)
    await #expect(throws: SystemError(code: 7)) { try await pool.run { throw SystemError(code: 7) } }
    pool.shutdown(within: .seconds(10))
  }

  @Test func blocked_threads_do_not_hold_up_tasks_outside() async throws {
    let pool = BlockingPool(threads: 8, queue: 0, name: "pool-blocked")
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 { group.addTask { try await pool.run { gate.pass() } } }
      // With any of the eight on Swift's own pool, it would have no thread left for this on a small machine.
      let deadline = ContinuousClock.now + .seconds(10)
      while gate.arrivals < 8, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(1)) }
      for _ in 0..<10 { try await Task.sleep(for: .milliseconds(1)) }
      #expect(gate.arrivals == 8 && threads(named: "pool-blocked") == 8)
      gate.open()
      try await group.waitForAll()
    }
    #expect(pool.shutdown(within: .seconds(10)) == 0)
    #expect(threads(named: "pool-blocked") == 0)
  }

  @Test func there_are_never_more_threads_than_allowed_and_what_waits_is_run() async throws {
    let pool = BlockingPool(threads: 3, queue: 0)
    let inside = Locked((now: 0, most: 0, done: 0))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<300 {
        group.addTask {
          try await pool.run {
            inside.withLock {
              $0.now += 1
              $0.most = max($0.most, $0.now)
            }
            sched_yield()
            inside.withLock {
              $0.now -= 1
              $0.done += 1
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(inside.withLock { $0.most } <= 3)
    #expect(inside.withLock { $0.done } == 300)
    #expect(pool.shutdown(within: .seconds(10)) == 0)
  }

  @Test func a_task_that_prefers_the_pool_comes_back_to_it_after_a_suspension() async throws {
    let pool = BlockingPool(threads: 2, queue: 0)
    let task = Task(executorPreference: pool) {
      let before = onPool()
      try await Task.sleep(for: .milliseconds(1))
      return before && onPool()
    }
    #expect(try await task.value)
    #expect(pool.shutdown(within: .seconds(10)) == 0)
  }

  @Test func places_are_those_of_threads_and_queue() {
    let pool = BlockingPool(threads: 2, queue: 3)
    for _ in 0..<5 { #expect(pool.admit()) }
    #expect(!pool.admit())
    pool.leave()
    #expect(pool.admit())
    #expect(!pool.admit())
  }

  @Test func idle_threads_end_by_themselves() async throws {
    do {
      let pool = BlockingPool(threads: 4, queue: 0, idle: .milliseconds(20), name: "pool-idle")
      try await pool.run {}
    }
    let deadline = ContinuousClock.now + .seconds(10)
    while threads(named: "pool-idle") > 0, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(2)) }
    #expect(threads(named: "pool-idle") == 0)
  }

  @Test func shutdown_finishes_what_is_enqueued_and_joins() async throws {
    let pool = BlockingPool(threads: 1, queue: 0)
    let gate = Gate()
    let done = Locked(0)
    let tasks = (0..<10).map { _ in
      Task(executorPreference: pool) {
        gate.pass()
        done.withLock { $0 += 1 }
      }
    }
    #expect(gate.waitForArrivals(1))
    gate.open()
    #expect(pool.shutdown(within: .seconds(10)) == 0)
    for task in tasks { await task.value }
    #expect(done.withLock { $0 } == 10)
  }

  @Test func shutdown_gives_up_what_does_not_end_and_later_work_is_still_done() async throws {
    let pool = BlockingPool(threads: 2, queue: 0, name: "pool-stuck")
    let gate = Gate()
    let stuck = Task(executorPreference: pool) { gate.pass() }
    #expect(gate.waitForArrivals(1))
    #expect(pool.shutdown(within: .milliseconds(10)) == 1)
    #expect(try await pool.run { onPool("pool-stuck") })
    gate.open()
    await stuck.value
    let deadline = ContinuousClock.now + .seconds(10)
    while threads(named: "pool-stuck") > 0, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(2)) }
    #expect(threads(named: "pool-stuck") == 0)
  }

  /// For ThreadSanitizer as well: threads start and end all the time while jobs come from everywhere.
  @Test func nothing_is_lost_while_threads_come_and_go() async throws {
    let pool = BlockingPool(threads: 4, queue: 0, idle: .zero, name: "pool-stress")
    let done = Locked(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<250 {
            try await pool.run { done.withLock { $0 += 1 } }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(done.withLock { $0 } == 2000)
    #expect(pool.shutdown(within: .seconds(10)) == 0)
    #expect(threads(named: "pool-stress") == 0)
  }
}

/// Whether the calling thread is a pool's of this name.
func onPool(_ name: String = "door-pool") -> Bool {
  guard let file = fopen("/proc/thread-self/comm", "r") else { return false }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 32)
  return fgets(&line, 32, file) != nil && strcmp(line, name + "\n") == 0
}
