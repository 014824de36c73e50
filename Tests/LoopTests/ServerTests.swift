// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

// Servers over real sockets.

private let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

/// Starts a server, and stops it after `body`.
private func with(
  _ server: Server, on endpoints: [Endpoint] = [.free], _ body: @Sendable (BoundAddress) async throws -> Void
) async throws {
  try await server.start(on: endpoints)
  do { try await body(server.address()) } catch {
    server.cut()
    await server.stop()
    throw error
  }
  await server.stop()
  #expect(server.status.openConnections == 0 && server.status.bufferedBytes == 0)
}

@Suite(.timeLimit(.minutes(2))) struct ServerTests {
  @Test func sixty_thousand_pipelined_lines_are_answered_in_order() async throws {
    let server = Server(LineWire()) { (line: Line) -> Line in line }
    try await with(server) { address in
      let lines = (0..<60_000).map { "\($0)\n" }.joined()
      let client = try Client(address)
      // Both at once: a client that only sends would fill both directions.
      async let answer = onThread { try client.restText() }
      try await onThread {
        try client.send(lines)
        client.end()
      }
      #expect(try await answer == lines)
    }
  }

  @Test func sixty_thousand_pipelined_lines_for_an_async_handler_are_answered_in_order() async throws {
    let server = Server(LineWire()) { (line: Line) async -> Line in
      if line.bytes.last == UInt8(ascii: "7") { await Task.yield() }
      return line
    }
    try await with(server) { address in
      let lines = (0..<60_000).map { "\($0)\n" }.joined()
      let client = try Client(address)
      async let answer = onThread { try client.restText() }
      try await onThread {
        try client.send(lines)
        client.end()
      }
      #expect(try await answer == lines)
    }
  }

  @Test func a_line_without_its_end_is_dropped_at_a_half_close_and_those_before_it_are_answered() async throws {
    let server = Server(LineWire()) { (line: Line) -> Line in line }
    try await with(server) { address in
      let answer = try await onThread {
        let client = try Client(address)
        try client.send("a\nb\nc")
        client.end()
        return try client.restText()
      }
      #expect(answer == "a\nb\n")
    }
  }

  @Test func a_handler_that_ignores_cancellation_is_answered_for_and_its_late_answer_dropped() async throws {
    let valve = Valve()
    var configuration = Configuration()
    configuration.handlerDeadline = .milliseconds(100)
    let server = Server(LineWire(), configuration: configuration) { (line: Line) async -> Line in
      if line.text == "slow" { await valve.pass() }
      return line
    }
    try await with(server) { address in
      let client = try Client(address)
      let first = try await onThread {
        try client.send("slow\n")
        return try client.lines(1)
      }
      #expect(first == "error: the answer was not ready in time\n")
      #expect(valve.cancelled == 1)
      valve.open()
      let second = try await onThread {
        try client.send("fast\n")
        client.end()
        return try client.restText()
      }
      #expect(second == "fast\n")
    }
  }

  @Test func a_handler_that_waits_is_cancelled_when_its_client_leaves() async throws {
    let valve = Valve()
    let server = Server(
      HTTPWire(),
      handler: ReplyHandler { (_: HTTPRequest, _) in
        .later(Terms(waits: true)) {
          await valve.pass()
          return HTTPAnswer.status(200)
        }
      })
    try await with(server) { address in
      do {
        let client = try Client(address)
        try client.send(get)
        await waitUntil("the handler did not begin") { valve.arrived == 1 }
        client.end()
        let rest = try await onThread { try client.rest() }
        #expect(rest.isEmpty)
      }
      await waitUntil("the handler was not cancelled") { valve.cancelled == 1 }
      valve.open()
    }
  }

  @Test func a_half_closed_client_gets_its_answer() async throws {
    let valve = Valve()
    let server = Server(HTTPWire()) { (_: HTTPRequest) async -> HTTPAnswer in
      await valve.pass()
      return .text("late")
    }
    try await with(server) { address in
      let client = try Client(address)
      try client.send(get)
      client.end()
      await waitUntil("the handler did not begin") { valve.arrived == 1 }
      valve.open()
      let answer = try await onThread { try client.restText() }
      #expect(answer.hasSuffix("\r\n\r\nlate"))
    }
  }

  @Test func offloaded_work_runs_on_the_pool_and_is_refused_when_too_much_waits() async throws {
    var configuration = Configuration()
    configuration.poolThreads = 1
    configuration.poolQueue = 0
    let places = Locked<[Bool]>([])
    let valve = Valve()
    let server = Server(
      LineWire(),
      handler: ReplyHandler { (line: Line, _) in
        .offloaded(Terms()) {
          places.withLock { $0.append(onPool()) }
          if line.text == "wait" { await valve.pass() }
          return line
        }
      }, configuration: configuration)
    try await with(server) { address in
      let (one, two) = (try Client(address), try Client(address))
      try one.send("wait\n")
      await waitUntil("the work did not begin") { valve.arrived == 1 }
      let refused = try await onThread {
        try two.send("b\n")
        return try two.lines(1)
      }
      #expect(refused == "error: too much work is waiting; try again later\n")
      valve.open()
      #expect(try await onThread { try one.lines(1) } == "wait\n")
      let served = try await onThread {
        try two.send("c\n")
        return try two.lines(1)
      }
      #expect(served == "c\n")
      #expect(places.withLock { $0 } == [true, true])
    }
  }

  @Test func handlers_that_still_run_at_the_drain_deadline_are_answered_for() async throws {
    let valve = Valve()
    var configuration = Configuration()
    configuration.drain = .milliseconds(100)
    let server = try await Server(HTTPWire(), configuration: configuration) { (_: HTTPRequest) async -> HTTPAnswer in
      await valve.pass()
      return .status(200)
    }.start(on: .free)
    let client = try Client(server.address())
    try client.send(get)
    await waitUntil("the handler did not begin") { valve.arrived == 1 }
    async let answer = onThread { try client.restText() }
    let report = await server.stop()
    #expect(try await answer.contains("\"the server is stopping\""))
    #expect(report.cutHandlers == 1 && report.abandonedTasks == 1)
    valve.open()
  }

  @Test func one_more_than_allowed_from_an_address_is_told_so_and_the_probe_is_let_past() async throws {
    var configuration = Configuration()
    configuration.maximumPerAddress = 1
    let server = Server(LineWire(), configuration: configuration) { (line: Line) -> Line in line }
    try await with(server) { address in
      let first = try Client(address)
      try await onThread {
        try first.send("a\n")
        #expect(try first.lines(1) == "a\n")
      }
      let refused = try await onThread { try Client(address).restText() }
      #expect(refused == "error: too many connections from this address\n")
      // A socket whose local port is known before it connects.
      let probe = try Client(address, beforeConnect: { server.exempt(PeerAddress(ipv4: 0x7f00_0001, port: $0)) })
      let answer = try await onThread {
        try probe.send("p\n")
        return try probe.lines(1)
      }
      #expect(answer == "p\n")
    }
  }

  @Test func a_peer_outside_the_allowed_networks_is_reset_and_no_handler_sees_it() async throws {
    var configuration = Configuration()
    configuration.allowed = [try #require(Network("192.0.2.0/24"))]
    let server = Server(LineWire(), configuration: configuration) { (line: Line) -> Line in
      Issue.record("a handler was called")
      return line
    }
    try await with(server) { address in
      let client = try Client(address)
      try? client.send("a\n")
      await #expect(throws: SystemError(code: ECONNRESET)) { try await onThread { try client.rest() } }
    }
  }

  @Test func a_listener_that_died_is_opened_anew_at_its_address() async throws {
    let server = Server(LineWire()) { (line: Line) -> Line in line }
    try await with(server) { address in
      #expect(try await server.reopen(address) == false)
      let group = try #require(server.state.withLock { $0.groups.first })
      for descriptor in group.descriptors { shutdown(descriptor.number, Int32(SHUT_RDWR)) }
      #expect(try await server.reopen(address))
      #expect(server.addresses == [address])
      let answer = try await onThread {
        let client = try Client(address)
        try client.send("a\n")
        return try client.lines(1)
      }
      #expect(answer == "a\n")
    }
  }

  @Test func a_dead_listener_that_could_not_be_opened_is_tried_again() async throws {
    let server = Server(LineWire()) { (line: Line) -> Line in line }
    try await with(server) { address in
      let group = try #require(server.state.withLock { $0.groups.first })
      for descriptor in group.descriptors { shutdown(descriptor.number, Int32(SHUT_RDWR)) }
      let stranger = try await BlockingPool(threads: 1, queue: 0).run {
        let port = try #require(address.port)
        return try ListeningSocket.open(.tcp(host: "127.0.0.1", port: port), loops: 1, deferAccept: false) { _ in }
      }
      await #expect(throws: ListenError.self) { try await server.reopen(address) }
      for group in stranger { group.close() }
      #expect(try await server.reopen(address))
      let answer = try await onThread {
        let client = try Client(address)
        try client.send("a\n")
        return try client.lines(1)
      }
      #expect(answer == "a\n")
    }
  }

  @Test(arguments: [false, true])
  func one_socket_is_shared_out_over_all_loops(isInherited: Bool) async throws {
    let path = "/tmp/door-hand-out-\(getpid())-\(isInherited)"
    defer { unlink(path) }
    var endpoint = Endpoint.unix(path)
    if isInherited {
      let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      try systemCall(withUnixAddress(path) { bind(number, $0, $1) } ?? -1)
      try systemCall(listen(number, 16))
      endpoint = .inherited(descriptor: number)
    }
    var configuration = Configuration()
    configuration.loops = 3
    let server = Server(LineWire(), configuration: configuration) { (line: Line) -> Line in line }
    try await with(server, on: [endpoint]) { _ in
      try await onThread {
        for index in 0..<9 {
          let client = try Client(.unix(path: path))
          try client.send("\(index)\n")
          #expect(try client.lines(1) == "\(index)\n")
        }
      }
      #expect(server.status.loops.map(\.accepted) == [3, 3, 3])
    }
  }

  @Test func of_a_storm_during_the_stop_everyone_accepted_is_answered() async throws {
    var configuration = Configuration()
    configuration.loops = 2
    for _ in 0..<5 {
      let server = try await Server(LineWire(), configuration: configuration) { (line: Line) -> Line in line }.start(on: .free)
      let address = try server.address()
      let (answered, begun) = (Locked(0), Locked(0))
      let threads = (0..<4).map { _ in
        startThread {
          while let client = try? Client(address) {
            begun.withLock { $0 += 1 }
            guard (try? client.send("a\n")) != nil, let line = try? client.lines(1) else { continue }
            if line == "a\n" { answered.withLock { $0 += 1 } } else { #expect(line.isEmpty) }
          }
        }
      }
      await waitUntil("no storm") { answered.withLock { $0 } > 200 }
      await server.stop()
      try await onThread { for thread in threads { pthread_join(thread, nil) } }
      // A client between the last accept and the close of the socket is refused by the kernel; each thread has at most a few of those.
      #expect(begun.withLock { $0 } - answered.withLock { $0 } <= 8)
    }
  }
}
