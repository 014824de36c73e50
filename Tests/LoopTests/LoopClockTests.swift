// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

@testable import Loop

// Sleeping on a loop's own timers.

@Suite struct LoopClockTests {
  /// A loop on a thread of its own, and a task on it.
  private func onLoop<Result: Sendable>(_ body: @escaping @Sendable (EventLoop) async throws -> Result) async throws -> Result {
    let loop = try #require(EventLoop())
    startThread(named: "clock") { loop.run() }
    defer { loop.submit { loop.end() } }
    return try await Task(executorPreference: loop) { try await body(loop) }.value
  }

  @Test func a_task_that_sleeps_is_back_on_its_loop_and_not_too_early() async throws {
    let (early, isBack) = try await onLoop { loop in
      let clock = LoopClock()
      let begin = clock.now
      try await Task.sleep(for: .milliseconds(30), clock: clock)
      return (begin.duration(to: clock.now) < .milliseconds(30), loop.isCurrent)
    }
    #expect(!early)
    #expect(isBack)
  }

  @Test func a_cancelled_sleep_ends_at_once() async throws {
    let waited = try await onLoop { _ in
      let clock = LoopClock()
      let begin = clock.now
      let sleeping = Task { try await Task.sleep(for: .seconds(60), clock: clock) }
      let onLoop = Task.immediate { try await Task.sleep(for: .seconds(60), clock: clock) }
      sleeping.cancel()
      onLoop.cancel()
      await #expect(throws: CancellationError.self) { try await sleeping.value }
      await #expect(throws: CancellationError.self) { try await onLoop.value }
      return begin.duration(to: clock.now)
    }
    #expect(waited < .seconds(30))
  }

  @Test func sleepers_of_a_loop_that_ends_are_woken() async throws {
    let loop = try #require(EventLoop())
    startThread(named: "clock") { loop.run() }
    let sleeping = Task(executorPreference: loop) {
      loop.submit { loop.end() }
      try await Task.sleep(for: .seconds(60), clock: LoopClock())
    }
    await #expect(throws: CancellationError.self) { try await sleeping.value }
  }

  @Test func elsewhere_it_sleeps_too() async throws {
    let clock = LoopClock()
    let begin = clock.now
    try await clock.sleep(until: begin.advanced(by: .milliseconds(10)), tolerance: nil)
    #expect(begin.duration(to: clock.now) >= .milliseconds(10))
  }
}
