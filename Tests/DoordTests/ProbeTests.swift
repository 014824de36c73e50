// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Dispatch
import Glibc
import Loop
import Routes
import Testing
import Wire

@testable import doord

@Suite("The self-probe and systemd")
struct ProbeTests {
  private func makeServer(_ endpoint: Endpoint, _ body: @escaping @Sendable () -> HTTPAnswer = { .status(200) }) async throws -> Server {
    var router = Router()
    router.get("/hello") { _ in body() }
    return try await Server(HTTPWire(), handler: router).start(on: endpoint)
  }

  /// Waits until `condition` holds.
  private func until(_ condition: () -> Bool, within limit: Duration = .seconds(20)) async throws {
    let end = ContinuousClock.now + limit
    while !condition() {
      try #require(ContinuousClock.now < end, "not in time")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private func address(_ server: Server) throws -> PeerAddress {
    guard case .tcp(let address) = try #require(server.addresses.first) else { throw ListenError.notListening(0) }
    return address
  }

  @Test func an_answer_is_a_hit_and_a_limit_too() async throws {
    // An address of its own: on a shared one another test's server may get the port as soon as this one is closed.
    let host = "127.0.0.77"
    // A test on a thread with a descriptor table of its own holds copies of all sockets, this listener's too, until it is over.
    func isDeadSoon(_ address: PeerAddress) -> Bool { (0..<10).contains { _ in ProbeClient().ask(address) { $1() } == .dead } }
    for (status, expected) in [(200, Probe.Answer.hit), (503, .hit), (500, .silent), (404, .silent)] {
      let server = try await makeServer(.tcp(host: host, port: 0)) { .status(status) }
      let address = try address(server)
      let local = Locked<PeerAddress?>(nil)
      let answer = ProbeClient().ask(address) { from, body in
        local.withLock { $0 = from }
        return body()
      }
      #expect(answer == expected)
      #expect(local.withLock { $0?.host } == host && local.withLock { $0?.port ?? 0 } > 0)
      await server.stop()
      #expect(isDeadSoon(address))
    }
  }

  @Test func a_unix_socket_is_asked_by_its_path() async throws {
    let path = "/tmp/doord-probe-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
    let server = try await makeServer(.unix(path))
    #expect(ProbeClient().ask(unix: path) == .hit)
    await server.stop()
    #expect(ProbeClient().ask(unix: path) == .dead)
    #expect(ProbeClient().ask(unix: String(repeating: "x", count: 200)) == .unasked)
  }

  @Test func a_listener_that_accepts_and_says_nothing_is_silent() throws {
    let (descriptor, port) = try listen()
    defer { close(descriptor) }
    #expect(ProbeClient(timeout: 1).ask(PeerAddress(ipv4: 0x7f00_0001, port: port)) { $1() } == .silent)
  }

  @Test func a_dead_listener_is_reopened_after_two_misses() async throws {
    let server = try await makeServer(.tcp(host: "127.0.0.1", port: 0))
    let address = try address(server)
    let lines = Locked<[String]>([])
    let probe = Probe(
      server, interval: .milliseconds(50), manager: ServiceManager { _ in nil }, mark: ProbeMark(),
      pace: Probe.Pace(tick: .milliseconds(20))
    ) { line in lines.withLock { $0.append(line) } }
    probe.start()
    try await until { probe.state.first?.last == .hit }
    shutdown(try #require(listener(at: address)), Int32(SHUT_RDWR))
    try await until { probe.state.first?.reopened == 1 && probe.state.first?.last == .hit && probe.state.first?.misses == 0 }
    try await until { lines.withLock { $0 == ["\(address) answers again"] } }
    probe.finish()
    await server.stop()
  }

  @Test func a_loop_that_hangs_is_named_and_withholds_the_watchdog() async throws {
    let (notified, manager) = try makeManager("100000")
    defer { close(notified) }
    #expect(manager.watchdogInterval == .milliseconds(50))

    let gate = DispatchSemaphore(value: 0)
    let isStuck = Locked(false)
    let server = try await makeServer(.tcp(host: "127.0.0.1", port: 0)) {
      isStuck.withLock { $0 = true }
      gate.wait()
      return .status(200)
    }
    let lines = Locked<[String]>([])
    let probe = Probe(
      server, interval: .zero, manager: manager, mark: ProbeMark(),
      pace: Probe.Pace(tick: .milliseconds(20), stale: .seconds(2), patience: 1)
    ) { line in lines.withLock { $0.append(line) } }
    probe.start()
    #expect(receive(notified) == "WATCHDOG=1")
    let address = try address(server)
    startOwnThread("stuck") { _ = ProbeClient(timeout: 30).ask(address) { $1() } }
    try await until { isStuck.withLock { $0 } }
    try await until { !lines.withLock { $0.isEmpty } }
    #expect(lines.withLock { $0.first }?.hasPrefix("loop 0 hangs: it has not come round for ") == true)
    while receive(notified, wait: false) != nil {}
    try await Task.sleep(for: .milliseconds(300))
    #expect(receive(notified, wait: false) == nil)
    gate.signal()
    try await until { lines.withLock { $0.last == "loop 0 has come round again" } }
    #expect(receive(notified) == "WATCHDOG=1")
    probe.finish()
    await server.stop()
  }

  @Test func an_address_that_stays_dead_withholds_the_watchdog() async throws {
    let path = "/tmp/doord-dead-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
    let (notified, manager) = try makeManager("1000000")
    defer { close(notified) }
    let server = try await makeServer(.unix(path))
    let probe = Probe(
      server, interval: .milliseconds(50), manager: manager, mark: ProbeMark(), pace: Probe.Pace(tick: .milliseconds(20))
    ) { _ in }
    probe.start()
    #expect(receive(notified) == "WATCHDOG=1")
    // Its file is elsewhere: nobody finds the door, and its listener lives, so that there is nothing to reopen.
    try #require(rename(path, path + ".away") == 0)
    try await until { probe.state.first?.isLost == true }
    while receive(notified, wait: false) != nil {}
    try await Task.sleep(for: .milliseconds(1200))
    #expect(receive(notified, wait: false) == nil)
    try #require(rename(path + ".away", path) == 0)
    #expect(receive(notified) == "WATCHDOG=1")
    #expect(probe.state.first?.isLost == false)
    probe.finish()
    await server.stop()
  }

  @Test func a_watchdog_of_a_microsecond_does_not_spin() async throws {
    let (notified, manager) = try makeManager("1")
    defer { close(notified) }
    let server = try await makeServer(.tcp(host: "127.0.0.1", port: 0))
    let probe = Probe(server, interval: .zero, manager: manager, mark: ProbeMark()) { _ in }
    probe.start()
    let clock = ContinuousClock()
    let start = clock.now
    for _ in 0..<5 { #expect(receive(notified) == "WATCHDOG=1") }
    #expect(clock.now - start > .milliseconds(390))
    probe.finish()
    await server.stop()
  }

  @Test func the_environment_of_another_process_is_left_alone() {
    let manager = ServiceManager { ["WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"][$0] }
    #expect(manager.watchdogInterval == nil)
    #expect(ServiceManager { ["WATCHDOG_USEC": "3000000"][$0] }.watchdogInterval == .milliseconds(1500))
    for value in ["0", "-5", "x", ""] { #expect(ServiceManager { ["WATCHDOG_USEC": value][$0] }.watchdogInterval == nil) }
  }

  @Test func a_manager_that_is_gone_is_no_error() {
    ServiceManager { ["NOTIFY_SOCKET": "/nonexistent/socket"][$0] }.notify("READY=1")
    ServiceManager { ["NOTIFY_SOCKET": String(repeating: "x", count: 300)][$0] }.notify("READY=1")
    ServiceManager { ["NOTIFY_SOCKET": ""][$0] }.notify("READY=1")
  }

  /// A service manager whose watchdog waits for `microseconds`, and the socket it listens on.
  private func makeManager(_ microseconds: String) throws -> (descriptor: Int32, manager: ServiceManager) {
    let name = "@doord-test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(withUnixAddress(name, abstract: true) { bind(descriptor, $0, $1) } == 0)
    let environment = ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": microseconds, "WATCHDOG_PID": "\(getpid())"]
    return (descriptor, ServiceManager { environment[$0] })
  }

  private func receive(_ descriptor: Int32, wait: Bool = true) -> String? {
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var buffer = [UInt8](repeating: 0, count: 100)
    let count = recv(descriptor, &buffer, buffer.count, wait ? 0 : Int32(MSG_DONTWAIT))
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  /// A socket that listens and never accepts.
  private func listen() throws -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(PeerAddress(ipv4: 0x7f00_0001, port: 0).withSocketAddress { bind(descriptor, $0, $1) } == 0)
    try #require(Glibc.listen(descriptor, 8) == 0)
    return (descriptor, try #require(localAddress(descriptor)).port)
  }

  /// This process's listening socket at `address`.
  private func listener(at address: PeerAddress) -> Int32? {
    (3..<Int32(1024)).first { descriptor in
      var isListening: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0 && isListening == 1
        && localAddress(descriptor) == address
    }
  }
}
