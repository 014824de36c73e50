// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Classes of bytes and searches over raw memory, eight bytes at a time where that pays. Callers keep every offset inside its memory.

extension UInt8 {
  static let tab: UInt8 = 0x09, lineFeed: UInt8 = 0x0A, carriageReturn: UInt8 = 0x0D, space: UInt8 = 0x20

  @inline(__always) var isDigit: Bool { self &- 0x30 < 10 }
  @inline(__always) var isBlank: Bool { self == .space || self == .tab }
  /// Unreserved bytes and sub-delimiters, of which a host's name is made (RFC 3986 2.2, 2.3).
  @inline(__always) var isHostByte: Bool { self < 128 && hostTable.utf8Start[Int(self)] != 0 }
  /// ASCII letters in lower case, every other byte as it is.
  @inline(__always) var lowered: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
  /// The token byte (RFC 9110 5.6.2) in lower case; 0 for a byte that is none.
  @inline(__always) var loweredToken: UInt8 { self < 128 ? tokenTable.utf8Start[Int(self)] : 0 }
  @inline(__always) var isToken: Bool { loweredToken != 0 }

  /// The value of a hex digit; nil for any other byte.
  var hexValue: UInt8? {
    if isDigit { return self &- 0x30 }
    let letter = lowered &- 0x61
    return letter < 6 ? letter &+ 10 : nil
  }
}

/// For each ASCII byte that may stand in a token the byte in lower case, and NUL for the others. A literal, so that it is neither
/// allocated nor initialised at run time.
private let tokenTable: StaticString = """
  \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
  \0!\0#$%&'\0\0*+\0-.\00123456789\0\0\0\0\0\0\
  \0abcdefghijklmnopqrstuvwxyz\0\0\0^_`abcdefghijklmnopqrstuvwxyz\0|\0~\0
  """

/// For each ASCII byte whether it may stand in a host's name.
private let hostTable: StaticString = """
  \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
  \0!\0\0$\0&'()*+,-.\00123456789\0;\0=\0\0\
  \0ABCDEFGHIJKLMNOPQRSTUVWXYZ\0\0\0\0_\0abcdefghijklmnopqrstuvwxyz\0\0\0~\0
  """

/// One byte value in all eight places of a word.
@inline(__always)
func eight(_ byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

/// The top bit of each byte of `word` that is zero. Exact for the lowest one, which is all that is used: a borrow only runs upwards.
@inline(__always)
func zeroBytes(_ word: UInt64) -> UInt64 { (word &- eight(1)) & ~word & eight(0x80) }

extension UnsafeRawPointer {
  @inline(__always)
  subscript(offset: Int) -> UInt8 { load(fromByteOffset: offset, as: UInt8.self) }

  /// Eight bytes, the first in the lowest place.
  @inline(__always)
  func word(_ offset: Int) -> UInt64 { UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }

  /// Four bytes, the first in the lowest place.
  @inline(__always)
  func half(_ offset: Int) -> UInt32 { UInt32(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self)) }

  /// The first control byte (NUL to 0x1F, DEL) in `range`, or its end.
  @inline(__always)
  func firstControl(from start: Int, to end: Int) -> Int {
    var at = start
    while at &+ 8 <= end {
      let word = word(at)
      let found = ((word &- eight(0x20)) & ~word & eight(0x80)) | zeroBytes(word ^ eight(0x7F))
      if found != 0 { return at &+ found.trailingZeroBitCount >> 3 }
      at &+= 8
    }
    while at < end && self[at] >= 0x20 && self[at] != 0x7F { at &+= 1 }
    return at
  }

  /// The first `byte` in `range`, or its end.
  @inline(__always)
  func first(_ byte: UInt8, from start: Int, to end: Int) -> Int {
    var at = start
    while at &+ 8 <= end {
      let found = zeroBytes(word(at) ^ eight(byte))
      if found != 0 { return at &+ found.trailingZeroBitCount >> 3 }
      at &+= 8
    }
    while at < end && self[at] != byte { at &+= 1 }
    return at
  }

  /// The first CR in the range, or its end. `seen` gathers the top bits of all bytes up to it, and of some behind it.
  @inline(__always)
  func firstReturn(from start: Int, to end: Int, seen: inout UInt64) -> Int {
    var at = start
    while at &+ 8 <= end {
      let word = word(at)
      seen |= word
      let found = zeroBytes(word ^ eight(.carriageReturn))
      if found != 0 { return at &+ found.trailingZeroBitCount >> 3 }
      at &+= 8
    }
    while at < end && self[at] != .carriageReturn {
      seen |= UInt64(self[at])
      at &+= 1
    }
    return at
  }

  /// Whether the bytes from `start` to `end` are `name`, whatever the case of ASCII letters. `name` is in lower case.
  func matches(_ name: StaticString, from start: Int, to end: Int) -> Bool {
    guard end - start == name.utf8CodeUnitCount else { return false }
    for index in 0..<(end - start) where self[start + index].lowered != name.utf8Start[index] { return false }
    return true
  }
}

extension UnsafeMutableRawPointer {
  /// Puts the token that begins here in lower case and returns its end. A byte that is none lies behind it somewhere.
  @inline(__always)
  func lowerToken() -> UnsafeMutableRawPointer {
    var at = self
    while true {
      let byte = at.load(as: UInt8.self).loweredToken
      if byte == 0 { return at }
      at.storeBytes(of: byte, as: UInt8.self)
      at += 1
    }
  }

  /// Makes each CR, LF and NUL among `count` bytes a space, so that none can end a line.
  func clean(count: Int) {
    let bytes = UnsafeRawPointer(self)
    var at = bytes.firstControl(from: 0, to: count)
    while at < count {
      let byte = bytes[at]
      if byte == .carriageReturn || byte == .lineFeed || byte == 0 { storeBytes(of: .space, toByteOffset: at, as: UInt8.self) }
      at = bytes.firstControl(from: at + 1, to: count)
    }
  }

  /// Stores a number in decimal, at most 20 digits, and moves behind it.
  @inline(__always)
  mutating func put(decimal number: UInt) {
    var digits = 1
    var rest = number
    while rest >= 10 {
      rest /= 10
      digits &+= 1
    }
    rest = number
    var at = digits
    while at > 0 {
      at &-= 1
      storeBytes(of: UInt8(truncatingIfNeeded: 48 &+ rest % 10), toByteOffset: at, as: UInt8.self)
      rest /= 10
    }
    self += digits
  }
}

/// Tells UTF-8 (RFC 3629) byte by byte: no overlong forms, no surrogates, nothing over U+10FFFF.
struct UTF8Check {
  private var missing = 0
  private var low: UInt8 = 0x80
  private var high: UInt8 = 0xBF

  /// Whether `byte` can follow what came before.
  mutating func take(_ byte: UInt8) -> Bool {
    if missing > 0 {
      guard byte >= low && byte <= high else { return false }
      (low, high) = (0x80, 0xBF)
      missing -= 1
      return true
    }
    switch byte {
    case 0..<0x80: break
    case 0xC2...0xDF: missing = 1
    case 0xE0...0xEF:
      missing = 2
      if byte == 0xE0 { low = 0xA0 }
      if byte == 0xED { high = 0x9F }
    case 0xF0...0xF4:
      missing = 3
      if byte == 0xF0 { low = 0x90 }
      if byte == 0xF4 { high = 0x8F }
    default: return false
    }
    return true
  }

  /// Whether no sequence is open.
  var isWhole: Bool { missing == 0 }

  /// Whether the bytes from `start` to `end` are UTF-8.
  static func isText(_ bytes: UnsafeRawPointer, from start: Int, to end: Int) -> Bool {
    var check = UTF8Check()
    for at in start..<end where !check.take(bytes[at]) { return false }
    return check.isWhole
  }
}
