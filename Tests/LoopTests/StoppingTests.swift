// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

/// Tells when it is freed.
private final class Token: Sendable {
  let freed: Locked<Bool>
  init(_ freed: Locked<Bool>) { self.freed = freed }
  deinit { freed.withLock { $0 = true } }
  func touch() {}
}

@Suite struct StoppingTests {
  @Test(.timeLimit(.minutes(1))) func a_server_that_has_stopped_is_freed() async throws {
    let freed = Locked(false)
    do {
      let token = Token(freed)
      let server = try await Server(LineWire()) { (line: Line) -> Line in
        token.touch()
        return line
      }.start(on: .free)
      let address = try server.address()
      let answer = try await onThread {
        let client = try Client(address)
        try client.send("a\n")
        return try client.lines(1)
      }
      #expect(answer == "a\n")
      await server.stop()
    }
    await waitUntil("the handler is still held") { freed.withLock { $0 } }
  }

  @Test(.timeLimit(.minutes(1))) func a_server_that_nobody_holds_goes_on() async throws {
    weak var server: Server?
    let address = try await {
      let started = try await Server(LineWire()) { (line: Line) -> Line in line }.start(on: .free)
      server = started
      return try started.address()
    }()
    for _ in 0..<3 {
      let answer = try await onThread {
        let client = try Client(address)
        try client.send("a\n")
        return try client.lines(1)
      }
      #expect(answer == "a\n")
    }
    await server?.stop()
    await waitUntil("the stopped server is still held") { server == nil }
  }

  @Test(.timeLimit(.minutes(1))) func a_stop_while_it_starts_stops_it() async throws {
    for _ in 0..<20 {
      let server = Server(LineWire()) { (line: Line) -> Line in line }
      async let started = server.start(on: .free)
      let stopping = Task { await server.stop() }
      _ = try? await started
      _ = await stopping.value
      await server.stop()
      #expect(server.addresses.isEmpty)
    }
  }

  @Test(.timeLimit(.minutes(1))) func a_cut_before_the_stop_makes_it_a_short_one() async throws {
    let valve = Valve()
    let server = try await Server(LineWire()) { (line: Line) async -> Line in
      await valve.pass()
      return line
    }.start(on: .free)
    let client = try Client(server.address())
    try client.send("a\n")
    await waitUntil("the handler did not start") { valve.arrived == 1 }
    server.cut()
    let start = ContinuousClock.now
    let report = await server.stop()
    #expect(ContinuousClock.now - start < .seconds(5))
    #expect(report.abandonedTasks == 1)
    valve.open()
  }

  @Test(.timeLimit(.minutes(1))) func a_task_that_yields_for_ever_does_not_hold_up_the_end() async throws {
    let ends = Locked(false)
    let began = Valve()
    began.open()
    var configuration = Configuration()
    configuration.drain = .milliseconds(50)
    let server = try await Server(LineWire(), configuration: configuration) { (line: Line) async -> Line in
      await began.pass()
      while !ends.withLock({ $0 }) { await Task.yield() }
      return line
    }.start(on: .free)
    let client = try Client(server.address())
    try client.send("a\n")
    await waitUntil("the handler did not start") { began.arrived == 1 }
    let report = await server.stop()
    #expect(report.cutHandlers == 1 && report.abandonedTasks == 1)
    let answer = try await onThread { try client.restText() }
    #expect(answer == "error: the server is stopping\n")
    // It goes on elsewhere, and can still come to its end.
    ends.withLock { $0 = true }
  }

  @Test(.timeLimit(.minutes(1))) func what_is_asked_of_a_loop_that_has_ended_is_refused_and_dropped() async throws {
    let loop = try #require(EventLoop())
    #expect(loop.submit { loop.end() })
    try await onThread { loop.run() }
    let freed = Locked(false)
    do {
      let token = Token(freed)
      #expect(!loop.submit { token.touch() })
    }
    #expect(freed.withLock { $0 })
    // A task that prefers it still runs.
    let ran = await Task(executorPreference: loop) { 1 }.value
    #expect(ran == 1)
  }

  @Test(.timeLimit(.minutes(1))) func a_second_start_throws() async throws {
    let server = try await Server(LineWire()) { (line: Line) -> Line in line }.start(on: .free)
    await #expect(throws: ServerError.startedTwice) { try await server.start(on: .free) }
    await server.stop()
    await #expect(throws: ServerError.startedTwice) { try await server.start(on: .free) }
  }
}
