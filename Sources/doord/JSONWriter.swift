// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// JSON as bytes, its members in the order they are said: for /status, the log and `doord parse`, where the order is part of the output
// and bytes that are no text must go in unharmed. The output is ASCII, so nothing a peer sent can be anything but a string in it.

/// JSON that is written piece by piece. Commas come by themselves: between two elements the last byte is never an opening one.
struct JSONWriter {
  /// What has been written so far.
  var bytes: [UInt8] = []

  /// An object as the next value.
  mutating func object(_ fill: (inout JSONWriter) -> Void) { enclose("{", "}", fill) }

  /// An array as the next value.
  mutating func array(_ fill: (inout JSONWriter) -> Void) { enclose("[", "]", fill) }

  /// The name of a member; its value must follow.
  mutating func key(_ name: String) {
    string(name)
    bytes.append(UInt8(ascii: ":"))
  }

  mutating func string(_ text: String) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    for unit in text.utf16 { escape(unit) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Bytes that need not be text, one character for each.
  mutating func latin1(_ text: some Sequence<UInt8>) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    for byte in text { escape(UInt16(byte)) }
    bytes.append(UInt8(ascii: "\""))
  }

  mutating func number(_ value: some BinaryInteger) {
    separate()
    bytes.append(decimal: value)
  }

  /// A number with three decimals: milliseconds of seconds, microseconds of milliseconds.
  mutating func thousandths(_ value: Int) {
    separate()
    bytes.append(value, decimals: 3)
  }

  /// A number with six decimals: seconds of microseconds.
  mutating func millionths(_ value: Int) {
    separate()
    bytes.append(value, decimals: 6)
  }

  mutating func bool(_ value: Bool) {
    separate()
    bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
  }

  mutating func null() {
    separate()
    bytes.append(contentsOf: "null".utf8)
  }

  private mutating func enclose(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ fill: (inout JSONWriter) -> Void) {
    separate()
    bytes.append(UInt8(ascii: open))
    fill(&self)
    bytes.append(UInt8(ascii: close))
  }

  private mutating func separate() {
    switch bytes.last {
    case nil, UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"), UInt8(ascii: "\n"): break
    default: bytes.append(UInt8(ascii: ","))
    }
  }

  private mutating func escape(_ unit: UInt16) {
    switch unit {
    case 0x22, 0x5c: bytes.append(contentsOf: [0x5c, UInt8(truncatingIfNeeded: unit)])
    case 0x20...0x7e: bytes.append(UInt8(truncatingIfNeeded: unit))
    case 0x0a: bytes.append(contentsOf: "\\n".utf8)
    case 0x0d: bytes.append(contentsOf: "\\r".utf8)
    case 0x09: bytes.append(contentsOf: "\\t".utf8)
    default:
      bytes.append(contentsOf: "\\u".utf8)
      for shift in [12, 8, 4, 0] as [UInt16] { bytes.append(hexDigit(unit >> shift)) }
    }
  }
}

// Members with their values in one call.
extension JSONWriter {
  mutating func member(_ name: String, _ value: String) {
    key(name)
    string(value)
  }

  mutating func member(_ name: String, _ value: some BinaryInteger) {
    key(name)
    number(value)
  }

  mutating func member(_ name: String, _ value: Bool) {
    key(name)
    bool(value)
  }

  mutating func member(_ name: String, thousandths value: Int) {
    key(name)
    thousandths(value)
  }

  mutating func member(_ name: String, _ fill: (inout JSONWriter) -> Void) {
    key(name)
    object(fill)
  }
}

/// The lowest four bits as a hexadecimal digit.
func hexDigit(_ value: UInt16) -> UInt8 {
  let digit = UInt8(truncatingIfNeeded: value & 15)
  return digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
}

extension [UInt8] {
  /// Appends `value` in decimal, with leading zeros up to `width` digits.
  mutating func append(decimal value: some BinaryInteger, width: Int = 1) {
    if value < 0 { append(UInt8(ascii: "-")) }
    append(digits: UInt64(clamping: value.magnitude), width: width)
  }

  private mutating func append(digits value: UInt64, width: Int) {
    let (high, low) = value.quotientAndRemainder(dividingBy: 100_000_000)
    if high > 0 || width > 8 { append(digits: high, width: width - 8) }
    var rest = UInt32(low)
    var packed: UInt64 = 0  // the first digit ends up in the lowest byte
    var count = 0
    repeat {
      packed = packed << 8 | UInt64(UInt8(ascii: "0")) + UInt64(rest % 10)
      rest /= 10
      count += 1
    } while rest > 0 || count < Swift.min(high > 0 ? 8 : width, 8)
    for _ in 0..<count {
      append(UInt8(truncatingIfNeeded: packed))
      packed >>= 8
    }
  }

  /// Appends `value` / 10^`decimals` with that many decimals.
  mutating func append(_ value: Int, decimals: Int) {
    if value < 0 { append(UInt8(ascii: "-")) }
    var unit: UInt = 1
    for _ in 0..<decimals { unit *= 10 }
    append(decimal: value.magnitude / unit)
    append(UInt8(ascii: "."))
    append(decimal: value.magnitude % unit, width: decimals)
  }
}

extension Duration {
  /// Whole microseconds; the largest or smallest Int where there are more.
  var microseconds: Int {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    return Int(clamping: whole.addingReportingOverflow(attoseconds / 1_000_000_000_000).partialValue)
  }

  /// Whole milliseconds.
  var milliseconds: Int { microseconds / 1000 }
}
