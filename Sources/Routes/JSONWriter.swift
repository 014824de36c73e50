// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

// Writes JSON's bytes. The text is UTF-8, without white space, and escapes only what RFC 8259 7 says must be.

/// A growing run of bytes in one allocation, which becomes the answer's body without a copy.
struct JSONWriter: ~Copyable {
  /// A header and its bytes in one allocation.
  private final class Block: ManagedBuffer<Void, UInt8> {}

  private var block: ManagedBuffer<Void, UInt8>
  private var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private var count = 0

  /// Room for a small answer: with the allocation's own words 256 bytes.
  init(capacity: Int = 224) {
    block = Block.create(minimumCapacity: capacity) { _ in }
    start = block.withUnsafeMutablePointerToElements { $0 }
    self.capacity = capacity
  }

  /// The bytes, which keep the block alive. Nothing writes to it after that.
  consuming func finish() -> Bytes { Bytes(unsafeStart: start, count: count, owner: block) }

  mutating func append(_ object: JSONObject) {
    append(UInt8(ascii: "{"))
    var isFirst = true
    for (name, value) in object.sorted {
      if !isFirst { append(UInt8(ascii: ",")) }
      isFirst = false
      append(quoted: name)
      append(UInt8(ascii: ":"))
      append(value.json)
    }
    append(UInt8(ascii: "}"))
  }

  private mutating func append(_ value: JSONValue) {
    switch value {
    case .null: append("null")
    case .bool(let value): append(value ? "true" : "false")
    case .int(let value): append(text: String(value))
    case .double(let value): append(value)
    case .string(let value): append(quoted: value)
    case .object(let value): append(value)
    case .array(let values):
      append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { append(UInt8(ascii: ",")) }
        append(value.json)
      }
      append(UInt8(ascii: "]"))
    }
  }

  /// As JSONEncoder writes it: the shortest digits that read back as the same number, a whole number without a point.
  private mutating func append(_ number: Double) {
    guard number.isFinite else { return append("null") }
    let text = number.description
    append(text: text.hasSuffix(".0") ? String(text.dropLast(2)) : text)
  }

  private mutating func append(text: String) {
    for byte in text.utf8 { append(byte) }
  }

  private mutating func append(quoted text: String) {
    var text = text
    text.withUTF8 { bytes in
      append(UInt8(ascii: "\""))
      for byte in bytes {
        if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { append(byte) } else { append(escaped: byte) }
      }
      append(UInt8(ascii: "\""))
    }
  }

  @inline(never)
  private mutating func append(escaped byte: UInt8) {
    append(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(byte)
    case 0x08: append(UInt8(ascii: "b"))
    case 0x09: append(UInt8(ascii: "t"))
    case 0x0a: append(UInt8(ascii: "n"))
    case 0x0c: append(UInt8(ascii: "f"))
    case 0x0d: append(UInt8(ascii: "r"))
    default:
      append("u00")
      append(UInt8(ascii: "0") + byte >> 4)
      append(byte & 15 < 10 ? UInt8(ascii: "0") + byte & 15 : UInt8(ascii: "a") - 10 + byte & 15)
    }
  }

  private mutating func append(_ literal: StaticString) {
    for index in 0..<literal.utf8CodeUnitCount { append(literal.utf8Start[index]) }
  }

  @inline(__always)
  private mutating func append(_ byte: UInt8) {
    if count == capacity { grow() }
    start[count] = byte
    count += 1
  }

  @inline(never)
  private mutating func grow() {
    let larger = JSONWriter.Block.create(minimumCapacity: capacity * 2) { _ in }
    let moved = larger.withUnsafeMutablePointerToElements { $0 }
    moved.update(from: start, count: count)
    block = larger
    start = moved
    capacity *= 2
  }
}
