// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

// Blocking clients, on threads of their own, so that a test that waits for its server does not hold up Swift's pool.

/// Runs `body` on a thread of its own.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    let thread = startThread { continuation.resume(with: Swift.Result { try body() }) }
    pthread_detach(thread)
  }
}

/// A blocking client; what it waits for has 10 seconds.
final class Client: Sendable {
  let socket: Descriptor

  /// - Parameter beforeConnect: Told the local TCP port, before the server can see the connection.
  init(_ address: BoundAddress, beforeConnect: ((UInt16) -> Void)? = nil) throws {
    socket = try beforeConnect.map { try Self.connect(to: address, $0) } ?? connectClient(to: address)
    var time = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(socket.number, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
  }

  private static func connect(to address: BoundAddress, _ beforeConnect: (UInt16) -> Void) throws -> Descriptor {
    guard case .tcp(let peer) = address else { return try connectClient(to: address) }
    let client = Descriptor(owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    var local = sockaddr_in()
    local.sin_family = sa_family_t(AF_INET)
    local.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &local) {
      try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try systemCall(bind(client.number, $0, length))
        try systemCall(getsockname(client.number, $0, &length))
      }
    }
    beforeConnect(UInt16(bigEndian: local.sin_port))
    try systemCall(peer.withSocketAddress { Glibc.connect(client.number, $0, $1) } ?? -1)
    return client
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(socket.number, $0.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw SystemError(code: errno) }
      sent += count
    }
  }

  /// Sends its end of stream.
  func end() { shutdown(socket.number, Int32(SHUT_WR)) }

  /// Leaves with a reset.
  func reset() {
    var off = linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket.number, SOL_SOCKET, SO_LINGER, &off, socklen_t(MemoryLayout<linger>.size))
    socket.close()
  }

  /// At most `count` bytes; none at the end of stream.
  func receive(_ count: Int = 65536) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: count)
    let got = recv(socket.number, &buffer, count, 0)
    guard got >= 0 else { throw SystemError(code: errno) }
    return Array(buffer.prefix(got))
  }

  /// Everything up to the end of stream.
  func rest() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let part = try receive()
      if part.isEmpty { return all }
      all += part
    }
  }

  func restText() throws -> String { String(decoding: try rest(), as: UTF8.self) }

  /// Everything up to and with the `count`th line feed.
  func lines(_ count: Int) throws -> String {
    var all: [UInt8] = []
    var left = count
    while left > 0 {
      let part = try receive()
      if part.isEmpty { break }
      left -= part.reduce(0) { $0 + ($1 == 10 ? 1 : 0) }
      all += part
    }
    return String(decoding: all, as: UTF8.self)
  }
}

/// Waits until `holds`, at most 10 seconds.
func waitUntil(_ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ holds: () -> Bool) async {
  let deadline = ContinuousClock.now + .seconds(10)
  while !holds() {
    guard ContinuousClock.now < deadline else {
      Issue.record(what, sourceLocation: sourceLocation)
      return
    }
    try? await Task.sleep(for: .milliseconds(1))
  }
}

extension Endpoint {
  /// A free port of 127.0.0.1.
  static var free: Endpoint { .tcp(host: "127.0.0.1", port: 0) }
}

extension Server {
  /// Its first address.
  func address() throws -> BoundAddress { try #require(addresses.first) }
}
