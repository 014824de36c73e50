// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import Wire

// What the kernel did not take at once: the rest of an answer, waiting for room. Most connections never have one.

/// In order: the rest of the buffer, the rest of a large run that is not copied, a stream to pull.
/// A class, so that a connection without one has only a reference to it.
final class Outbox {
  /// Answers to be sent after each other, each with its own large run.
  @exclusivity(unchecked) private var runs: [Bytes] = []
  @exclusivity(unchecked) private(set) var source: (any OutputSource)?

  /// What the client had taken when the stall window began.
  @exclusivity(unchecked) var takenBefore = 0

  var isEmpty: Bool { runs.isEmpty && source == nil }
  var hasBytes: Bool { !runs.isEmpty }

  /// Takes over what `output` holds beyond its first `sent` bytes.
  func take(_ output: inout Output, after sent: Int) {
    if sent < output.count {
      runs.append(Bytes(copying: UnsafeRawBufferPointer(rebasing: output.buffered[sent...])))
    }
    let sentOfTail = max(0, sent - output.count)
    if sentOfTail < output.tail.count { runs.append(output.tail[sentOfTail..<output.tail.count]) }
    if let more = output.source { source = more }
    output.removeAll()
  }

  /// Calls `send` with the next two runs; what it says was taken is forgotten. Its result, or -errno, is returned.
  func send(_ send: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Int) -> Int {
    let second = runs.count > 1 ? runs[1] : Bytes()
    let sent = runs[0].withUnsafeBytes { first in second.withUnsafeBytes { send(first, $0) } }
    var left = max(0, sent)
    while left > 0, let first = runs.first {
      if left >= first.count {
        left -= first.count
        runs.removeFirst()
      } else {
        runs[0] = first[left..<first.count]
        left = 0
      }
    }
    return sent
  }

  /// The stream came to its end, or is given up.
  func dropSource() -> (any OutputSource)? {
    defer { source = nil }
    return source
  }
}
