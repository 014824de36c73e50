// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Routes
import Testing
import Wire

@testable import doord

@Suite("Host names and proxies")
struct FrontDoorTests {
  private func accepts(_ names: [String], _ host: String) -> Bool {
    guard let names = Names(names) else { return true }
    return Array(host.utf8).withUnsafeBytes { names.accepts($0) }
  }

  @Test(arguments: [
    "localhost", "LocalHost:8757", "a.localhost", "127.0.0.1", "127.255.0.3:80", "[::1]", "[::1]:8757", "", ":80", "localhost:",
  ])
  func loopback_names_are_accepted(host: String) {
    #expect(accepts([], host))
    #expect(accepts(["door.example"], host))
  }

  @Test(arguments: [
    "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost", ".localhost", "127.0.0.256", "127.0.0",
    "127.0.0.1.",
    "127..0.1", "128.0.0.1", "[::2]", "::1", "10.0.0.1", "localhost:80:80", "127.0.0.0001",
  ])
  func other_names_are_not(host: String) {
    #expect(!accepts([], host))
  }

  @Test func given_names_are_accepted_in_any_case_and_with_a_port() {
    #expect(accepts(["door.example"], "DOOR.example:80"))
    #expect(!accepts(["door.example"], "a.door.example"))
    #expect(!accepts(["door.example"], "door.example.org"))
    #expect(accepts(["*.example"], "a.b.example"))
    #expect(!accepts(["*.example"], "example") && !accepts(["*.example"], ".example"))
    #expect(accepts(["[fe80::1]"], "[FE80::1]:80"))
    #expect(accepts(["*"], "anything at all"))
  }

  @Test func the_client_is_the_rightmost_address_that_no_trusted_proxy_has() {
    let forwarded = Forwarded(trusted: ["10.0.0.0/8", "::1"].compactMap { Network($0) })
    func client(_ lines: String...) -> Forwarded.Client { forwarded.client(lines) }
    func address(_ text: String) -> Forwarded.Client { PeerAddress(text: text).map { .address($0) } ?? .peer }
    #expect(client() == .peer)
    #expect(client("", " , ") == .peer)
    #expect(client("203.0.113.9") == address("203.0.113.9"))
    #expect(client("1.1.1.1, 203.0.113.9,\t10.0.0.2 ") == address("203.0.113.9"))
    #expect(client("1.1.1.1", "10.0.0.2") == address("1.1.1.1"))
    #expect(client("1.1.1.1", "203.0.113.9", "10.0.0.2") == address("203.0.113.9"))
    #expect(client("10.0.0.3, ::1") == address("10.0.0.3"))
    #expect(client("[2001:db8::1]:4711, 10.0.0.2:80") == address("[2001:db8::1]:4711"))
    #expect(client("203.0.113.9, unknown, 10.0.0.2") == .unreadable)
    #expect(client("203.0.11 3.9") == .unreadable)
  }

  private final class Link: ConnectionLink {
    let origin = Locked<PeerAddress?>(nil)
    func wake(_ ticket: UInt64) {}
    func after(_ delay: Duration, _ ticket: UInt64, _ body: @escaping @Sendable () -> Void) {}
    func setOrigin(_ address: PeerAddress, _ ticket: UInt64) { origin.withLock { $0 = address } }
  }

  /// The status of /x, and the origin that was set.
  private func ask(
    _ headers: [(String, String)], from peer: String = "127.0.0.1:4000", names: [String] = ["*"], trust: [String] = [],
    allow: [String] = [],
    mark: ProbeMark = ProbeMark()
  ) throws -> (status: Int, origin: String?) {
    var router = Router()
    router.get("/x") { _ in .status(204) }
    let networks = { (texts: [String]) in texts.compactMap { Network($0) } }
    let door = FrontDoor(
      inner: router, names: Names(names), forwarded: trust.isEmpty ? nil : Forwarded(trusted: networks(trust)), allowed: networks(allow),
      mark: mark)
    let link = Link()
    let address = peer == "unix" ? PeerAddress.unix : try #require(PeerAddress(text: peer))
    let request = try HTTPRequest(target: "/x", headers: headers)
    switch door.respond(to: request, in: Context(peer: Peer(address: address), link: link)) {
    case .now(let answer): return (answer.status, link.origin.withLock { $0?.host })
    case .failed(let error as Refusal): return (error.status, link.origin.withLock { $0?.host })
    default: return (0, nil)
    }
  }

  @Test func another_host_is_421_but_not_on_a_unix_socket() throws {
    #expect(try ask([("Host", "evil.example")], names: []).status == 421)
    #expect(try ask([("Host", "evil.example")], from: "unix", names: []).status == 204)
    #expect(try ask([("Host", "localhost")], names: []).status == 204)
    #expect(Refusal.foreignName.reason.contains("--name"))
  }

  @Test func a_stranger_cannot_say_for_whom_it_asks() throws {
    let answer = try ask([("X-Forwarded-For", "10.0.0.1")], from: "192.0.2.1:1", trust: ["127.0.0.1"], allow: ["192.0.2.0/24"])
    #expect(answer == (204, nil))
  }

  @Test func a_proxys_client_is_let_in_or_not_and_noted_either_way() throws {
    let rules = (trust: ["127.0.0.1"], allow: ["203.0.113.0/24"])
    #expect(try ask([("X-Forwarded-For", "203.0.113.9")], trust: rules.trust, allow: rules.allow) == (204, "203.0.113.9"))
    #expect(try ask([("X-Forwarded-For", "203.0.113.9, 8.8.8.8")], trust: rules.trust, allow: rules.allow) == (403, "8.8.8.8"))
    #expect(try ask([("X-Forwarded-For", "junk")], trust: rules.trust, allow: rules.allow) == (403, nil))
    #expect(try ask([("X-Forwarded-For", "junk")], trust: rules.trust) == (204, nil))
    #expect(try ask([], trust: rules.trust, allow: rules.allow) == (403, nil))
  }

  @Test func the_probe_passes_while_it_asks() throws {
    let mark = ProbeMark()
    mark.set(try #require(PeerAddress(text: "127.0.0.1:4000")))
    #expect(try ask([("Host", "evil.example")], names: [], trust: ["127.0.0.1"], allow: ["10.0.0.0/8"], mark: mark).status == 204)
    #expect(try ask([("Host", "evil.example")], from: "127.0.0.2:4000", names: [], mark: mark).status == 421)
    mark.set(.unknown)
    #expect(try ask([("Host", "evil.example")], names: [], mark: mark).status == 421)
  }
}
