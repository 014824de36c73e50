// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

// Which Host names a door answers to. A door on loopback that took any name could be reached by a web page whose own name is made to
// resolve to 127.0.0.1 (DNS rebinding): the browser then sends the page's name. Judged on bytes; a request costs no String.

/// The accepted names. Pure.
struct Names: Sendable {
  /// Lower case; a pattern that began with `*.` begins with its dot.
  private let exact: [[UInt8]]
  private let suffixes: [[UInt8]]

  /// Accepts `names` as `--name` takes them, besides the loopback names; nil if every name is accepted.
  init?(_ names: [String]) {
    if names.contains("*") { return nil }
    exact = names.filter { !$0.hasPrefix("*.") }.map { Array($0.utf8) }
    suffixes = names.filter { $0.hasPrefix("*.") }.map { Array($0.utf8.dropFirst()) }
  }

  /// Whether a Host header's value names this door: a name or address, and perhaps a port, which is not looked at.
  func accepts(_ host: UnsafeRawBufferPointer) -> Bool {
    let name = UnsafeRawBufferPointer(rebasing: host[..<Names.endOfName(host)])
    // What nearly every local client says, first: nine bytes each, told by two comparisons.
    if name.count == 9 {
      let first = name.loadUnaligned(as: UInt64.self).littleEndian
      if first == 0x2E30_2E30_2E37_3231 && name[8] == UInt8(ascii: "1") { return true }  // "127.0.0.1"
      if first == 0x736F_686C_6163_6F6C && name[8] == UInt8(ascii: "t") { return true }  // "localhost"
    }
    return name.isEmpty || Names.isLoopback(name) || exact.contains { Names.matches(name, $0[...]) }
      || suffixes.contains { Names.isUnder(name, $0) }
  }

  /// `localhost`, `*.localhost`, 127.0.0.0/8, `[::1]`: names that lead to this machine whatever a name server says.
  private static func isLoopback(_ name: UnsafeRawBufferPointer) -> Bool {
    isLoopbackIPv4(name) || matches(name, localhost[1...]) || isUnder(name, localhost) || matches(name, loopback6[...])
  }

  private static let localhost = Array(".localhost".utf8)
  private static let loopback6 = Array("[::1]".utf8)

  /// Where a port begins, or the end. Colons inside brackets are the address's.
  private static func endOfName(_ host: UnsafeRawBufferPointer) -> Int {
    var index = host.count
    while index > 0 {
      index -= 1
      if host[index] == UInt8(ascii: ":") { return index }
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(host[index]) else { break }
    }
    return host.count
  }

  private static func matches(_ name: UnsafeRawBufferPointer, _ other: ArraySlice<UInt8>) -> Bool {
    name.count == other.count && zip(name, other).allSatisfy { lower($0) == $1 }
  }

  /// Whether `name` ends in `suffix` (with its dot) and has something before it.
  private static func isUnder(_ name: UnsafeRawBufferPointer, _ suffix: [UInt8]) -> Bool {
    name.count > suffix.count && matches(UnsafeRawBufferPointer(rebasing: name[(name.count - suffix.count)...]), suffix[...])
  }

  /// Four decimal numbers up to 255, the first 127. `127.0.0.1.example` is a name, not an address.
  private static func isLoopbackIPv4(_ name: UnsafeRawBufferPointer) -> Bool {
    guard name.count >= 9, name[0] == UInt8(ascii: "1"), name[1] == UInt8(ascii: "2"), name[2] == UInt8(ascii: "7") else { return false }
    var dots = 0
    var digits = 0
    var value = 0
    for byte in name {
      switch byte {
      case UInt8(ascii: "."):
        guard digits > 0 else { return false }
        dots += 1
        digits = 0
        value = 0
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        digits += 1
        value = value * 10 + Int(byte - UInt8(ascii: "0"))
        guard digits <= 3, value <= 255 else { return false }
      default: return false
      }
    }
    return dots == 3 && digits > 0
  }

  private static func lower(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
