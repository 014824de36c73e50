// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// Work in proportion to the bytes, shown without a clock: what a call says need not be looked at again is destroyed before the next call,
// and the outcome stays what it is for the bytes as they were.

@Suite("Work in proportion to the bytes") struct LinearTests {
  /// Feeds `input` in pieces. Before each call what lies from `first` to `Need.scanned` is spoiled, but for LFs.
  private func feed(_ input: [UInt8], by step: Int, from first: Int = 1, spoil: UInt8, _ call: (UnsafeRawBufferPointer, Need?) -> Need?)
    -> (needs: Int, unread: Int)
  {
    var bytes = input
    var need: Need?
    var calls = 0
    var unread = 0
    var spoiled = first
    for count in stride(from: step, through: input.count, by: step) {
      let scanned = min(need?.scanned ?? 0, count)
      while spoiled < scanned {
        if bytes[spoiled] != 10 { bytes[spoiled] = spoil }
        spoiled += 1
      }
      unread += count - scanned  // Of a counted body nothing is ever left to look at.
      need = bytes.withUnsafeBytes { call(UnsafeRawBufferPointer(rebasing: $0[..<count]), need) }
      if need == nil { break }
      calls += 1
    }
    return (calls, unread)
  }

  @Test("A head that comes byte by byte is looked at once")
  func head() {
    let input = latin1("GET / HTTP/1.1\r\nHost: a\r\n" + (0..<1200).map { "x-\($0): \($0)\r\n" }.joined()).prefix(16384)
    // The request line is judged as a whole when its end is in: it is spoiled after that.
    let fed = feed(Array(input), by: 1, from: 16, spoil: 0) { bytes, need in
      if case .incomplete(let need) = HTTPWire().parse(bytes.bytes, resuming: need) { need } else { nil }
    }
    #expect(fed.needs == input.count)
    // One new byte for each call, and a CR once more with the byte behind it.
    #expect(fed.unread <= 2 * input.count)
  }

  @Test("A request line that comes byte by byte is looked at once until its end")
  func requestLine() {
    let input = latin1("GET /" + String(repeating: "a", count: 16000))
    let fed = feed(input, by: 1, spoil: 0) { bytes, need in
      if case .incomplete(let need) = HTTPWire().parse(bytes.bytes, resuming: need) { need } else { nil }
    }
    #expect(fed.needs == input.count)
    #expect(fed.unread <= 2 * input.count)
  }

  @Test("A body of 32 MB in pieces of 1 KB is counted: the head is not looked at again, nor is the body")
  func body() {
    let head = latin1("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n")
    let wire = HTTPWire()
    let input = head + [UInt8](repeating: 0, count: 33_554_431)
    let fed = feed(input, by: 1024, spoil: 0) { bytes, need in
      if case .incomplete(let need) = wire.parse(bytes.bytes, resuming: need) { need } else { nil }
    }
    #expect(fed.needs == input.count / 1024)
    #expect(fed.unread == 1024)
  }

  @Test("A line that comes byte by byte is looked at once")
  func line() {
    let input = [UInt8](repeating: 120, count: 65536)
    // A LF in what was looked at would end the line there.
    let fed = feed(input, by: 1, spoil: 10) { bytes, need in
      if case .incomplete(let need) = LineWire().parse(bytes.bytes, resuming: need) { need } else { nil }
    }
    #expect(fed.needs == input.count)
    #expect(fed.unread == input.count)
  }
}
