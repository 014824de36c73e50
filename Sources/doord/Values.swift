// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CSystem
import Loop

// What flags take: times, sizes, numbers, networks, names. Read strictly: digits are ASCII digits, and there is no sign.

/// Readers of flag values; each throws what it would have taken. And writers, for --help.
enum Value {
  static func text(_ text: String, _ accepted: String) throws(Unacceptable) -> String {
    if text.isEmpty { throw Unacceptable(accepted: accepted) }
    return text
  }

  /// The path of a Unix-domain socket. A leading `@` is how abstract names are written (unix(7)); a file of such a name is `./@name`.
  static func socketPath(_ text: String) throws(Unacceptable) -> String {
    if text.hasPrefix("@") { throw Unacceptable(accepted: "a path (abstract sockets are not supported)") }
    return try self.text(text, "a path")
  }

  static func integer(_ text: String, in range: ClosedRange<Int>, _ accepted: String) throws(Unacceptable) -> Int {
    guard let number = digits(text.utf8), range.contains(number) else { throw Unacceptable(accepted: accepted) }
    return number
  }

  /// `30` and `30s` are seconds; `500ms`, `2m`, `1h`.
  static func time(_ text: String, zero: Bool = false) throws(Unacceptable) -> Duration {
    let units: [(String, Int)] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("", 1000)]
    let day = 86_400_000
    for (suffix, milliseconds) in units where text.hasSuffix(suffix) {
      guard let number = digits(text.utf8.dropLast(suffix.utf8.count)) else { break }
      let (total, overflow) = number.multipliedReportingOverflow(by: milliseconds)
      if !overflow && (zero ? 0 : 1)...day ~= total { return .milliseconds(total) }
      break
    }
    throw Unacceptable(accepted: "a time like 30, 30s, 500ms or 2m, \(zero ? "0" : "1ms") to 24h")
  }

  /// Bytes, or with K, M or G units of 1024.
  static func size(_ text: String, in range: ClosedRange<Int>) throws(Unacceptable) -> Int {
    let units: [(String, Int)] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("", 1)]
    for (suffix, unit) in units where text.hasSuffix(suffix) {
      guard let number = digits(text.utf8.dropLast(suffix.utf8.count)) else { break }
      let (total, overflow) = number.multipliedReportingOverflow(by: unit)
      if !overflow && range.contains(total) { return total }
      break
    }
    throw Unacceptable(accepted: "a size like 1000, 16K, 32M or 1G, from \(size(range.lowerBound)) to \(size(range.upperBound))")
  }

  static func mode(_ text: String) throws(Unacceptable) -> UInt16 {
    let octal = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
    guard octal, let mode = UInt16(text, radix: 8), mode <= 0o777 else {
      throw Unacceptable(accepted: "permissions in octal like 600 or 660")
    }
    return mode
  }

  static func loops(_ text: String) throws(Unacceptable) -> Int {
    text == "auto" ? processors() : try integer(text, in: 1...256, "a number from 1 to 256, or auto")
  }

  static func networks(_ text: String) throws(Unacceptable) -> [Network] {
    try list(text, "a network like 10.0.0.0/8 or 2001:db8::/32, or an address") { Network($0) }
  }

  /// Lower-cased; brackets of an IPv6 address stay.
  static func names(_ text: String) throws(Unacceptable) -> [String] {
    try list(text, "a host name without a port, *.NAME or *") { name in
      let host = name.hasPrefix("*.") ? name.dropFirst(2) : name[...]
      let isAddress = host.hasPrefix("[") && host.hasSuffix("]")
      let odd = host.utf8.contains { $0 <= 0x20 || $0 >= 0x7f || "/?#@,".utf8.contains($0) || ($0 == UInt8(ascii: ":") && !isAddress) }
      return host.isEmpty || odd || (host.contains("*") && name != "*") ? nil : name.lowercased()
    }
  }

  /// How a time is written on the command line.
  static func time(_ duration: Duration) -> String {
    duration.milliseconds % 1000 == 0 ? "\(duration.milliseconds / 1000)s" : "\(duration.milliseconds)ms"
  }

  /// How a size is written on the command line.
  static func size(_ bytes: Int) -> String {
    for (unit, letter) in [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")] where bytes >= unit && bytes % unit == 0 {
      return "\(bytes / unit)\(letter)"
    }
    return "\(bytes)"
  }

  private static func list<Element>(
    _ text: String, _ accepted: String, _ read: (String) -> Element?
  ) throws(Unacceptable) -> [Element] {
    var elements: [Element] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let element = read(String(part)) else { throw Unacceptable(accepted: accepted) }
      elements.append(element)
    }
    return elements
  }

  /// ASCII digits only: `Int("+5")` is 5.
  private static func digits(_ text: some Collection<UInt8>) -> Int? {
    guard !text.isEmpty else { return nil }
    var number = 0
    for byte in text {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      let (tens, tooLong) = number.multipliedReportingOverflow(by: 10)
      let (sum, tooLarge) = tens.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
      if tooLong || tooLarge { return nil }
      number = sum
    }
    return number
  }

  /// Processors this process may run on, which can be fewer than the machine has.
  private static func processors() -> Int {
    var set = [UInt64](repeating: 0, count: 128)  // 8192 processors: more than the kernel can be built for
    guard sched_getaffinity(0, set.count * 8, &set) == 0 else { return 1 }
    return min(max(set.reduce(0) { $0 + $1.nonzeroBitCount }, 1), 256)
  }
}
