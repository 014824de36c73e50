// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

// What several suites use: threads of a test's own, and a descriptor table of its own.

/// Starts a thread, so that a test does not depend on how many Swift's pool has. Join it.
func startThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
  final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let box = Unmanaged.passRetained(Box(body)).toOpaque()
  let result = pthread_create(
    &thread, nil,
    { raw in
      if let raw { Unmanaged<Box>.fromOpaque(raw).takeRetainedValue().body() }
      return nil
    }, box)
  #expect(result == 0)
  return thread
}

/// Runs `body` on a thread whose descriptor table is a copy of its own (unshare(2)), so that tests running meanwhile neither see nor
/// disturb its descriptors, and expects it to leave exactly as many as it found.
func withPrivateDescriptors(_ body: @escaping @Sendable () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) throws {
  let outcome = Locked<Result<(before: Int, after: Int), any Error>?>(nil)
  let thread = startThread {
    let result = Result<(before: Int, after: Int), any Error> {
      try unshare(descriptorTable)
      let before = try #require(openDescriptors())
      try body()
      return (before, try #require(openDescriptors()))
    }
    outcome.withLock { $0 = result }
  }
  pthread_join(thread, nil)
  let counts = try #require(outcome.withLock { $0 }).get()
  #expect(counts.after == counts.before, "descriptors left open", sourceLocation: sourceLocation)
}

/// unshare(2)'s flags for the descriptor table and the network; they and the prototype need _GNU_SOURCE.
let descriptorTable: Int32 = 0x400
let networks: Int32 = 0x4000_0000

/// unshare(2): gives this thread a thing of its own.
func unshare(_ flags: Int32) throws {
  typealias Unshare = @convention(c) (Int32) -> Int32
  let symbol = try #require(dlsym(nil, "unshare"))
  try systemCall(unsafeBitCast(symbol, to: Unshare.self)(flags))
}

/// A blocking client socket connected to `address`; throws `errno` if it cannot connect.
func connectClient(to address: BoundAddress) throws -> Descriptor {
  switch address {
  case .tcp(let peer):
    let client = Descriptor(owning: socket(peer.family == .ipv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0))
    try systemCall(peer.withSocketAddress { connect(client.number, $0, $1) } ?? -1)
    return client
  case .unix(let path):
    let client = Descriptor(owning: socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0))
    try systemCall(withUnixAddress(path) { connect(client.number, $0, $1) } ?? -1)
    return client
  }
}

/// What a system call failed with.
struct SystemError: Error, Equatable { var code: Int32 }

@discardableResult
func systemCall(_ result: Int32) throws -> Int32 {
  guard result >= 0 else { throw SystemError(code: errno) }
  return result
}

/// An integer option of a socket.
func socketOption(_ number: Int32, _ level: Int32, _ name: Int32) throws -> Int32 {
  var value: Int32 = -1
  var length = socklen_t(MemoryLayout<Int32>.size)
  try systemCall(getsockopt(number, level, name, &value, &length))
  return value
}

@discardableResult
func setSocketOption(_ number: Int32, _ level: Int32, _ name: Int32, _ value: Int32) throws -> Int32 {
  var value = value
  return try systemCall(setsockopt(number, level, name, &value, socklen_t(MemoryLayout<Int32>.size)))
}

/// Waits until `number` is readable, at most 5 seconds.
func waitUntilReadable(_ number: Int32) throws {
  var poll = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
  try #require(Glibc.poll(&poll, 1, 5000) == 1, "not readable in time")
}
