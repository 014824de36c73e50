// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
import Glibc
package import Wire

// Opens listening sockets: what each option is for, and what of the addresses asked for may be missing. Runs at start, on a thread
// that may block (a name is looked up); accepting is Listener's.

/// The listening sockets of one address: one for each loop where the loops share a TCP port, else exactly one.
package final class ListeningGroup: Sendable {
  package let address: BoundAddress
  package let descriptors: [Descriptor]
  /// A Unix-domain socket's file, if it is ours to remove.
  private let file: UnixSocketFile?

  init(address: BoundAddress, descriptors: [Descriptor], file: UnixSocketFile? = nil) {
    self.address = address
    self.descriptors = descriptors
    self.file = file
  }

  deinit { close() }

  /// Removes a Unix-domain socket's file, so that nobody new finds it; who has connected already waits in the queue and can be accepted.
  package func withdraw() { file?.remove() }

  /// Closes every socket; their watchers are stopped by then. The file goes first: as long as the socket is open, its inode's number
  /// cannot become somebody else's.
  package func close() {
    withdraw()
    for descriptor in descriptors { descriptor.close() }
  }
}

package enum ListeningSocket {
  /// Connections the kernel may hold for accept. It lowers the number to net.core.somaxconn, whose default this is.
  static let backlog: Int32 = 4096
  /// How often a free port is looked for that several addresses can share, if port 0 is asked for.
  static let portAttempts = 16

  /// Opens what `endpoint` says, or nothing: on an error, sockets opened on the way are closed again.
  /// - Parameters:
  ///   - loops: How many sockets share a TCP port; at least 1.
  ///   - deferAccept: Whether TCP connections are accepted only once they have sent something.
  ///   - notice: Told of an address that was left out.
  package static func open(
    _ endpoint: Endpoint, loops: Int, deferAccept: Bool, notice: (String) -> Void
  ) throws(ListenError) -> [ListeningGroup] {
    let options = TCPOptions(loops: loops, deferAccept: deferAccept)
    switch endpoint.kind {
    case .loopback(let port):
      let hosts = [PeerAddress(ipv4: 0x7f00_0001, port: port), PeerAddress(family: .ipv6, high: 0, low: 1, port: port)]
      let (groups, missing) = try onePort(hosts, options, leavesOutMissing: true)
      for address in missing { notice("\(address) is left out: this machine has no such address") }
      return groups
    case .tcp(let hosts, let port):
      return try onePort(try lookUp(hosts, port: port), options, leavesOutMissing: false).groups
    case .unix(let path, let mode):
      return [try UnixSocketFile.open(path: path, mode: mode)]
    case .inherited(let descriptor):
      return [try adopt(descriptor, options)]
    }
  }

  /// Listens on all `hosts`, which name the same port. Port 0 is one port for all: the first address finds it, and if another program
  /// has it on a later address, all begin anew.
  private static func onePort(
    _ hosts: [PeerAddress], _ options: TCPOptions, leavesOutMissing: Bool
  ) throws(ListenError) -> (groups: [ListeningGroup], missing: [PeerAddress]) {
    var attempt = 1
    while true {
      do {
        return try onePortOnce(hosts, options, leavesOutMissing: leavesOutMissing)
      } catch {
        guard case .addressInUse = error, hosts.first?.port == 0, attempt < portAttempts else { throw error }
        attempt += 1
      }
    }
  }

  private static func onePortOnce(
    _ hosts: [PeerAddress], _ options: TCPOptions, leavesOutMissing: Bool
  ) throws(ListenError) -> (groups: [ListeningGroup], missing: [PeerAddress]) {
    var groups: [ListeningGroup] = []
    var missing: [PeerAddress] = []
    for host in hosts {
      var address = host
      if let port = groups.first?.address.port { address.port = port }
      do {
        groups.append(try options.group(at: address))
      } catch {
        guard case .addressNotAvailable = error, leavesOutMissing, missing.count + 1 < hosts.count else { throw error }
        missing.append(address)
      }
    }
    return (groups, missing)
  }

  /// The addresses of all `hosts`, each once. Blocks.
  package static func lookUp(_ hosts: [String], port: UInt16) throws(ListenError) -> [PeerAddress] {
    var addresses: [PeerAddress] = []
    for host in hosts {
      for address in try lookUp(host, port: port) where !addresses.contains(address) { addresses.append(address) }
    }
    return addresses
  }

  /// The addresses of a host: itself if it is numeric, else what the system's resolver says. Blocks.
  private static func lookUp(_ host: String, port: UInt16) throws(ListenError) -> [PeerAddress] {
    if var address = PeerAddress(host: host) {
      address.port = port
      return [address]
    }
    guard !host.isEmpty, !host.utf8.contains(0) else { throw .unknownHost(host, "it is no name") }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, nil, &hints, &list)
    guard result == 0 else {
      throw .unknownHost(host, result == EAI_SYSTEM ? errorText(errno) : String(cString: gai_strerror(result)))
    }
    defer { freeaddrinfo(list) }
    var addresses: [PeerAddress] = []
    for entry in sequence(first: list, next: { $0?.pointee.ai_next }) {
      guard let raw = entry?.pointee.ai_addr else { continue }
      var address = PeerAddress(socketAddress: UnsafeRawPointer(raw))
      address.port = port
      if !addresses.contains(address) { addresses.append(address) }
    }
    return addresses
  }

  /// A socket that somebody else opened. What is not a listening stream socket is refused and left open: it may be anything.
  private static func adopt(_ number: Int32, _ options: TCPOptions) throws(ListenError) -> ListeningGroup {
    guard option(number, SO_ACCEPTCONN) == 1, option(number, SO_TYPE) == Int32(SOCK_STREAM.rawValue) else { throw .notListening(number) }
    let address: BoundAddress
    switch localAddress(number) {
    case .some(let found) where found.family == .unix: address = .unix(path: UnixSocketFile.boundPath(number))
    case .some(let found) where found.family != .unknown: address = .tcp(found)
    default: throw .notListening(number)
    }
    let name = address.description
    try succeed("fcntl", name, fcntl(number, F_SETFD, FD_CLOEXEC))
    try succeed("fcntl", name, fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK))
    if case .tcp = address { options.apply(to: number) }
    return ListeningGroup(address: address, descriptors: [Descriptor(owning: number)])
  }
}

/// How TCP sockets are opened.
private struct TCPOptions {
  let loops: Int
  let deferAccept: Bool

  /// Listens on one address, `loops` times. Only the first socket finds out whether the port is free: it binds without SO_REUSEPORT, with
  /// which any program of this user could share it, ours as well as an old one that was forgotten. Once it listens it lets its siblings
  /// join.
  func group(at address: PeerAddress) throws(ListenError) -> ListeningGroup {
    let first = try bind(address, joining: false)
    guard let bound = localAddress(first.number) else { throw failure("getsockname", address.description) }
    var descriptors = [first]
    if loops > 1 {
      try set(first.number, SOL_SOCKET, SO_REUSEPORT, 1, bound)
      for _ in 1..<loops { descriptors.append(try bind(bound, joining: true)) }
    }
    return ListeningGroup(address: .tcp(bound), descriptors: descriptors)
  }

  private func bind(_ address: PeerAddress, joining: Bool) throws(ListenError) -> Descriptor {
    let name = address.description
    let family = address.family == .ipv6 ? AF_INET6 : AF_INET
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let socket = Descriptor(owning: try succeed("socket", name, Glibc.socket(family, type, 0)))
    // One socket for both families would show IPv4 peers in IPv6's spelling, and its port could not be told from IPv4's own.
    if family == AF_INET6 { try set(socket.number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1, address) }
    if joining { try set(socket.number, SOL_SOCKET, SO_REUSEPORT, 1, address) }
    // So that connections of the last run in TIME_WAIT do not keep the port; on Linux a socket that listens keeps it in any case. With
    // port 0 it comes after bind, which would else offer ports that are bound already. Accepted sockets inherit it, for the next run.
    if address.port != 0 { try set(socket.number, SOL_SOCKET, SO_REUSEADDR, 1, address) }
    try succeed("bind", name, address.withSocketAddress { Glibc.bind(socket.number, $0, $1) } ?? -1)
    if address.port == 0 { try set(socket.number, SOL_SOCKET, SO_REUSEADDR, 1, address) }
    apply(to: socket.number)
    try succeed("listen", name, listen(socket.number, ListeningSocket.backlog))
    return socket
  }

  /// What accepted sockets inherit, and when they are accepted. Without either the server still serves, so errors do not count.
  func apply(to number: Int32) {
    // Answers are written whole; Nagle's algorithm would only hold their last segment back.
    setOption(number, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    // 1 second is the least the kernel knows: a client that is silent longer is accepted all the same, and its deadlines begin.
    setOption(number, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT, deferAccept ? 1 : 0)
  }

  private func set(_ number: Int32, _ level: Int32, _ name: Int32, _ value: Int32, _ address: PeerAddress) throws(ListenError) {
    try succeed("setsockopt", address.description, setOption(number, level, name, value))
  }
}

// MARK: - System calls, as opening needs them

/// -1 becomes the error it means.
@discardableResult
func succeed(_ call: String, _ address: String, _ result: Int32) throws(ListenError) -> Int32 {
  if result < 0 { throw failure(call, address) }
  return result
}

/// What `errno` means for somebody who wants to listen. Directly after the call.
func failure(_ call: String, _ address: String) -> ListenError {
  switch errno {
  case EADDRINUSE: .addressInUse(address)
  case EADDRNOTAVAIL, EAFNOSUPPORT: .addressNotAvailable(address)
  case let code: .system(call: call, address: address, errno: code)
  }
}

@discardableResult
private func setOption(_ number: Int32, _ level: Int32, _ name: Int32, _ value: Int32) -> Int32 {
  var value = value
  return setsockopt(number, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
}

private func option(_ number: Int32, _ name: Int32) -> Int32? {
  var value: Int32 = 0
  var length = socklen_t(MemoryLayout<Int32>.size)
  return getsockopt(number, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
}

package func localAddress(_ number: Int32) -> PeerAddress? {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  let result = withUnsafeMutablePointer(to: &storage) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
  }
  return result == 0 ? PeerAddress(&storage) : nil
}
