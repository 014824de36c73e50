// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing

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
      try unshareDescriptors()
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

/// unshare(2) with CLONE_FILES; its prototype needs _GNU_SOURCE.
private func unshareDescriptors() throws {
  typealias Unshare = @convention(c) (Int32) -> Int32
  let symbol = try #require(dlsym(nil, "unshare"))
  let cloneFiles: Int32 = 0x400
  try #require(unsafeBitCast(symbol, to: Unshare.self)(cloneFiles) == 0)
}
