// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
import Glibc
import Synchronization
import Testing
import Wire

@testable import Loop

// The event loop on a thread of its own: each test is red without the remedy that its name speaks of.

/// A loop that runs until `body` returns; `body` is on the test's side.
private func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
  let loop = try #require(EventLoop())
  let thread = startThread { loop.run() }
  do { try await body(loop) } catch {
    loop.submit { loop.end() }
    throw error
  }
  loop.submit { loop.end() }
  try await onThread { _ = pthread_join(thread, nil) }
}

private func pair() throws -> (Descriptor, Descriptor) {
  var pair: [Int32] = [-1, -1]
  try systemCall(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair))
  return (Descriptor(owning: pair[0]), Descriptor(owning: pair[1]))
}

private func isOn(_ loop: EventLoop) -> Bool { loop.isCurrent }

/// An actor that lives on Swift's own pool.
private actor Elsewhere {
  func number() -> Int { 1 }
}

/// An actor that lives on a loop.
private actor Resident {
  private let executor: LoopSerialExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private var count = 0
  init(_ loop: EventLoop) { executor = LoopSerialExecutor(loop) }
  func increase(_ loop: EventLoop) -> (Int, Bool) {
    count += 1
    return (count, loop.isCurrent)
  }
  /// Traps where the caller is not on the actor.
  nonisolated func countWithoutWaiting() -> Int { assumeIsolated { $0.count } }
}

/// Does something when it is told, and remembers what it was told.
private final class Teller: Waiter, @unchecked Sendable {  // its loop's thread's own
  var told: [Bool] = []
  var act: () -> Void = {}
  override func ready(toRead: Bool, toWrite: Bool) {
    told += [toRead, toWrite]
    act()
  }
}

@Suite(.timeLimit(.minutes(1))) struct EventLoopTests {
  @Test func a_timer_set_after_a_long_callback_is_counted_from_when_it_is_set() async throws {
    try await withLoop { loop in
      let took: Duration = await withCheckedContinuation { continuation in
        loop.submit {
          // libev still believes that it is 200 ms ago.
          usleep(200_000)
          let start = ContinuousClock.now
          _ = OneShot(on: loop, after: .milliseconds(50)) { continuation.resume(returning: ContinuousClock.now - start) }
        }
      }
      #expect(took >= .milliseconds(49))
    }
  }

  @Test func a_cancelled_timer_drops_its_closure_at_once() async throws {
    try await withLoop { loop in
      let dropped = await loop.perform { () -> Bool in
        final class Held {}
        var held: Held? = Held()
        weak let watched = held
        let timer = OneShot(on: loop, after: .seconds(3600)) { [held] in withExtendedLifetime(held) {} }
        held = nil
        guard watched != nil else { return false }
        timer.cancel()
        return watched == nil
      }
      #expect(dropped == true)
    }
  }

  @Test func a_long_turn_is_reported() async throws {
    let loop = try #require(EventLoop())
    let longest = Locked<Int64>(0)
    loop.turnWasLong = { length in longest.withLock { $0 = max($0, length) } }
    loop.submit { usleep(80_000) }
    loop.submit { loop.end() }
    try await onThread { loop.run() }
    #expect(longest.withLock { $0 } >= 80_000_000)
    #expect(loop.longestTurn.load(ordering: .relaxed) >= 80_000_000)
  }

  @Test func tasks_that_keep_each_other_going_do_not_keep_sockets_waiting() async throws {
    try await withLoop { loop in
      let ends = Locked(false)
      let spinners = (0..<3).map { _ in
        Task(executorPreference: loop) { while !ends.withLock({ $0 }) { await Task.yield() } }
      }
      let (near, far) = try pair()
      let teller = Teller()
      await withCheckedContinuation { (told: CheckedContinuation<Void, Never>) in
        loop.submit {
          teller.descriptor = near.number
          teller.act = {
            loop.forget(teller)
            told.resume()
          }
          loop.set(teller, reading: true, writing: false)
          var byte: UInt8 = 1
          send(far.number, &byte, 1, Int32(MSG_NOSIGNAL))
        }
      }
      ends.withLock { $0 = true }
      for spinner in spinners { await spinner.value }
    }
  }

  @Test func what_runs_later_on_the_thread_comes_in_order_and_after_what_is_on_the_stack() async throws {
    try await withLoop { loop in
      let order: [Int] = await withCheckedContinuation { continuation in
        loop.submit {
          let order = Locked<[Int]>([])
          loop.later { order.withLock { $0.append(2) } }
          loop.submit { order.withLock { $0.append(3) } }
          loop.later { continuation.resume(returning: order.withLock { $0 }) }
          order.withLock { $0.append(1) }
        }
      }
      #expect(order == [1, 2, 3])
    }
  }

  @Test func all_that_is_asked_from_elsewhere_is_done_once() async throws {
    try await withLoop { loop in
      let done = Locked(0)
      let threads = (0..<4).map { _ in
        startThread { for _ in 0..<5000 { #expect(loop.submit { done.withLock { $0 += 1 } }) } }
      }
      try await onThread { for thread in threads { pthread_join(thread, nil) } }
      await waitUntil("jobs are missing") { done.withLock { $0 } == 20_000 }
    }
  }

  @Test func an_immediate_task_begins_on_the_loop_and_is_back_on_it_after_each_wait() async throws {
    try await withLoop { loop in
      let places: [Bool] = await withCheckedContinuation { continuation in
        loop.submit {
          let atOnce = Locked(false)
          _ = Task.immediate(executorPreference: loop) {
            atOnce.withLock { $0 = true }
            var places = [isOn(loop)]
            try? await Task.sleep(for: .milliseconds(1))
            places.append(isOn(loop))
            for await _ in AsyncStream(
              Int.self,
              {
                $0.yield(1); $0.finish()
              })
            { places.append(isOn(loop)) }
            _ = await Elsewhere().number()
            places.append(isOn(loop))
            async let other = Elsewhere().number()
            _ = await other
            places.append(isOn(loop))
            continuation.resume(returning: places)
          }
          #expect(atOnce.withLock { $0 }, "it hopped before it began")
        }
      }
      #expect(places == [true, true, true, true, true])
    }
  }

  @Test func an_actor_on_the_loop_is_isolated_to_its_thread() async throws {
    try await withLoop { loop in
      let actor = Resident(loop)
      let (count, isThere) = await actor.increase(loop)
      #expect(count == 1 && isThere)
      #expect(await loop.perform { actor.countWithoutWaiting() } == 1)
    }
  }

  @Test func an_error_of_libev_is_told_as_readable_and_writable_so_that_a_system_call_says_why() async throws {
    try await withLoop { loop in
      let (near, _) = try pair()
      let told = await loop.perform { () -> [Bool] in
        let teller = Teller()
        teller.descriptor = near.number
        loop.set(teller, reading: true, writing: false)
        guard let raw = teller.watch else { return [] }
        ev_feed_event(loop.ev, door_watch_io(raw.assumingMemoryBound(to: door_watch.self)), Int32(bitPattern: 0x8000_0000))
        ev_invoke_pending(loop.ev)
        loop.forget(teller)
        return teller.told
      }
      #expect(told == [true, true])
    }
  }

  @Test func loops_leave_no_descriptor_behind() throws {
    try withPrivateDescriptors {
      for _ in 0..<20 {
        let loop = try #require(EventLoop())
        loop.submit { loop.end() }
        loop.run()
      }
      for _ in 0..<20 { _ = try #require(EventLoop()) }
    }
  }
}
