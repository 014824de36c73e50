// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

/// Opens without notices.
private func open(_ endpoint: Endpoint, loops: Int = 1, deferAccept: Bool = false) throws -> [ListeningGroup] {
  try ListeningSocket.open(endpoint, loops: loops, deferAccept: deferAccept) { Issue.record("unexpected notice: \($0)") }
}

private func error(_ endpoint: Endpoint) -> ListenError? {
  do {
    _ = try ListeningSocket.open(endpoint, loops: 1, deferAccept: false) { _ in }
    return nil
  } catch { return error }
}

@Suite struct ListeningSocketTests {
  @Test func loopback_on_port_0_is_one_port_for_both_families() throws {
    try withPrivateDescriptors {
      let groups = try open(.loopback(port: 0))
      let addresses = groups.map(\.address)
      let port = try #require(addresses.first?.port)
      #expect(port != 0)
      #expect(addresses.map(\.description) == ["127.0.0.1:\(port)", "[::1]:\(port)"])
      for group in groups {
        let client = try connectClient(to: group.address)
        try waitUntilReadable(group.descriptors[0].number)
        let accepted = Descriptor(owning: try systemCall(accept(group.descriptors[0].number, nil, nil)))
        withExtendedLifetime((client, accepted)) {}
      }
    }
  }

  @Test func port_0_is_sought_again_when_the_second_family_has_it_in_use() throws {
    // Many at once: collisions between the families' own choices become likely, and none may surface.
    try withPrivateDescriptors {
      let held = try (0..<200).map { _ in try open(.tcp(host: "::1", port: 0)) }
      for _ in 0..<200 { #expect(try open(.loopback(port: 0)).count == 2) }
      withExtendedLifetime(held) {}
    }
  }

  @Test func a_port_in_use_is_an_error_that_names_the_address() throws {
    try withPrivateDescriptors {
      let first = try open(.tcp(host: "127.0.0.1", port: 0))
      let port = try #require(first[0].address.port)
      let failure = try #require(error(.tcp(host: "127.0.0.1", port: port)))
      #expect(failure == .addressInUse("127.0.0.1:\(port)"))
      #expect(failure.description.contains("127.0.0.1:\(port)"))
      #expect(error(.tcp(host: "0.0.0.0", port: port)) == .addressInUse("0.0.0.0:\(port)"))
    }
  }

  @Test func a_live_listener_is_not_stolen_through_SO_REUSEADDR_or_SO_REUSEPORT() throws {
    try withPrivateDescriptors {
      let first = try open(.tcp(host: "127.0.0.1", port: 0))
      guard case .tcp(let address) = first[0].address else { return }
      for option in [SO_REUSEADDR, SO_REUSEPORT] {
        #expect(throws: SystemError(code: EADDRINUSE)) {
          let thief = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
          try setSocketOption(thief.number, SOL_SOCKET, option, 1)
          try systemCall(address.withSocketAddress { bind(thief.number, $0, $1) } ?? -1)
          try systemCall(listen(thief.number, 1))
        }
      }
    }
  }

  @Test(arguments: [1, 3])
  func a_stranger_that_allows_sharing_its_port_is_not_joined(loops: Int) throws {
    try withPrivateDescriptors {
      let stranger = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
      try setSocketOption(stranger.number, SOL_SOCKET, SO_REUSEPORT, 1)
      try setSocketOption(stranger.number, SOL_SOCKET, SO_REUSEADDR, 1)
      try systemCall(PeerAddress(ipv4: 0x7f00_0001, port: 0).withSocketAddress { bind(stranger.number, $0, $1) } ?? -1)
      try systemCall(listen(stranger.number, 1))
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      try withUnsafeMutablePointer(to: &storage) { storage in
        try storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = try systemCall(getsockname(stranger.number, $0, &length)) }
      }
      let port = PeerAddress(&storage).port
      #expect(throws: ListenError.addressInUse("127.0.0.1:\(port)")) { try open(.tcp(host: "127.0.0.1", port: port), loops: loops) }
    }
  }

  @Test func several_loops_share_the_port_and_each_gets_connections() throws {
    try withPrivateDescriptors {
      for host in ["127.0.0.1", "::1"] {
        let group = try #require(try open(.tcp(host: host, port: 0), loops: 3).first)
        #expect(group.descriptors.count == 3)
        var clients: [Descriptor] = []
        var counts = [0, 0, 0]
        // The kernel spreads by a hash of the client's port: 120 leave a loop out once in 10^20 runs.
        for _ in 0..<120 { clients.append(try connectClient(to: group.address)) }
        for (loop, descriptor) in group.descriptors.enumerated() {
          while true {
            let accepted = accept(descriptor.number, nil, nil)
            guard accepted >= 0 else { break }
            close(accepted)
            counts[loop] += 1
          }
        }
        #expect(counts.reduce(0, +) == 120 && counts.allSatisfy { $0 > 0 }, "\(counts)")
      }
    }
  }

  @Test func connections_in_TIME_WAIT_do_not_keep_the_port() throws {
    try withPrivateDescriptors {
      var group = try open(.tcp(host: "127.0.0.1", port: 0))
      let port = try #require(group[0].address.port)
      for _ in 0..<2 {
        let client = try connectClient(to: group[0].address)
        try waitUntilReadable(group[0].descriptors[0].number)
        let accepted = Descriptor(owning: try systemCall(accept(group[0].descriptors[0].number, nil, nil)))
        // The side that closes first keeps the connection in TIME_WAIT.
        accepted.close()
        try waitUntilReadable(client.number)
        client.close()
        group = []
        group = try open(.tcp(host: "127.0.0.1", port: port))
      }
    }
  }

  @Test func sockets_have_the_options_that_serving_needs() throws {
    try withPrivateDescriptors {
      for (host, deferred) in [("127.0.0.1", true), ("::1", false)] {
        let groups = try open(.tcp(host: host, port: 0), deferAccept: deferred)
        let number = groups[0].descriptors[0]
        #expect(fcntl(number.number, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(number.number, F_GETFL) & O_NONBLOCK != 0)
        #expect(try socketOption(number.number, Int32(IPPROTO_TCP), TCP_NODELAY) == 1)
        #expect(try socketOption(number.number, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT) == (deferred ? 1 : 0))
        #expect(try socketOption(number.number, SOL_SOCKET, SO_REUSEPORT) == 0)
        if host == "::1" { #expect(try socketOption(number.number, Int32(IPPROTO_IPV6), IPV6_V6ONLY) == 1) }
      }
    }
  }

  @Test func the_wildcards_of_both_families_share_a_port() throws {
    try withPrivateDescriptors {
      // The port that was free for one family may be in use in the other.
      for attempt in 1... {
        let six = try open(.tcp(host: "::", port: 0))
        let port = try #require(six[0].address.port)
        do throws(ListenError) {
          let four = try ListeningSocket.open(.tcp(host: "0.0.0.0", port: port), loops: 1, deferAccept: false) { _ in }
          return #expect(four[0].address.port == port)
        } catch {
          if attempt == 16 { throw error }
        }
      }
    }
  }

  /// A network of the thread's own, whose loopback device is down: 127.0.0.1 can be bound there, ::1 cannot.
  @Test(.enabled(if: geteuid() == 0, "only root may unshare the network"))
  func a_family_that_is_missing_is_a_notice_by_default_and_an_error_where_it_was_asked_for() throws {
    try withPrivateDescriptors {
      try unshare(networks)
      let notices = Locked<[String]>([])
      let groups = try ListeningSocket.open(.loopback(port: 0), loops: 1, deferAccept: false) { notice in
        notices.withLock { $0.append(notice) }
      }
      #expect(groups.count == 1)
      let port = try #require(groups.first?.address.port)
      #expect(groups.map(\.address.description) == ["127.0.0.1:\(port)"])
      #expect(notices.withLock { $0 } == ["[::1]:\(port) is left out: this machine has no such address"])
      #expect(error(.tcp(host: "::1", port: 0)) == .addressNotAvailable("[::1]:0"))
    }
  }

  @Test func an_address_of_another_machine_is_not_available() throws {
    try withPrivateDescriptors {
      #expect(error(.tcp(host: "192.0.2.1", port: 0)) == .addressNotAvailable("192.0.2.1:0"))
      #expect(error(.tcp(host: "2001:db8::1", port: 0)) == .addressNotAvailable("[2001:db8::1]:0"))
    }
  }

  @Test func several_hosts_share_one_port_that_the_system_picks() async throws {
    let groups = try open(.tcp(hosts: ["127.0.0.1", "127.0.0.2", "127.0.0.1"], port: 0))
    defer { for group in groups { group.close() } }
    #expect(groups.count == 2)
    #expect(Set(groups.map(\.address.port)).count == 1)
  }

  @Test func a_name_is_looked_up_and_all_its_addresses_share_the_port() throws {
    try withPrivateDescriptors {
      let groups = try open(.tcp(host: "localhost", port: 0))
      #expect(!groups.isEmpty)
      #expect(Set(groups.map(\.address.port)).count == 1)
      #expect(Set(groups.map(\.address)).count == groups.count)
    }
  }

  @Test(arguments: ["", "1.2.3.4:80", "[::1]:80", "fe80::1%no-such-interface"])
  func what_is_neither_an_address_nor_a_name_is_an_unknown_host(host: String) throws {
    try withPrivateDescriptors {
      guard case .unknownHost(let named, let reason) = error(.tcp(host: host, port: 0)) else {
        Issue.record("not an unknown host")
        return
      }
      #expect(named == host && !reason.isEmpty)
    }
  }
}

@Suite struct InheritedSocketTests {
  @Test func an_inherited_listener_is_adopted_with_its_address() throws {
    try withPrivateDescriptors {
      let opened = try open(.tcp(host: "127.0.0.1", port: 0))
      let number = dup(opened[0].descriptors[0].number)
      try systemCall(fcntl(number, F_SETFL, 0))
      let adopted = try open(.inherited(descriptor: number), deferAccept: true)
      #expect(adopted.map(\.address) == opened.map(\.address))
      #expect(adopted[0].descriptors.map(\.number) == [number])
      #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0)
      #expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0)
      #expect(try socketOption(number, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT) == 1)
    }
  }

  @Test func what_is_not_a_listening_stream_socket_is_refused_and_left_open() throws {
    try withPrivateDescriptors {
      let unbound = Descriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
      let datagrams = Descriptor(owning: socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0))
      let file = Descriptor(owning: Glibc.open("/dev/null", O_RDWR))
      for number in [unbound.number, datagrams.number, file.number] {
        #expect(error(.inherited(descriptor: number)) == .notListening(number))
        #expect(fcntl(number, F_GETFD) >= 0)
      }
      #expect(error(.inherited(descriptor: 99_999)) == .notListening(99_999))
      #expect(error(.inherited(descriptor: -1)) == .notListening(-1))
    }
  }

  @Test(
    arguments: [
      ("77", "2", 2), ("77", "0", 0), ("78", "2", 0), (nil, "2", 0), ("77", nil, 0), ("77", "-1", 0), ("77", "x", 0), ("", "2", 0),
      ("77", "99999999", 0),
    ] as [(String?, String?, Int32)])
  func systemd_passes_sockets_to_the_process_it_names(pid: String?, count: String?, expected: Int32) {
    #expect(Endpoint.passedSockets(pid: pid, count: count, ownPID: 77) == expected)
  }
}
