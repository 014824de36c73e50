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
    object.withSorted { members in
      for index in 0..<members.count {
        append(quoted: members.name(index), behind: index > 0 ? UInt8(ascii: ",") : nil)
        append(UInt8(ascii: ":"))
        append(members.value(index))
      }
    }
    append(UInt8(ascii: "}"))
  }

  private mutating func append(_ value: JSONValue) {
    switch value {
    case .null: append("null")
    case .bool(let value): if value { append("true") } else { append("false") }
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
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  private mutating func append(quoted text: String, behind separator: UInt8? = nil) {
    let done: Void? = text.utf8.withContiguousStorageIfAvailable { append(quoted: $0, behind: separator) }
    if done == nil { Array(text.utf8).withUnsafeBufferPointer { append(quoted: $0, behind: separator) } }
  }

  /// One check for room, and what needs no escape, as most text, in one go.
  private mutating func append(quoted bytes: UnsafeBufferPointer<UInt8>, behind separator: UInt8?) {
    let quote = UInt8(ascii: "\"")
    reserve(bytes.count + 3)
    var end = start + count
    if let separator {
      end.pointee = separator
      end += 1
    }
    end.pointee = quote
    end += 1
    var index = 0
    while index < bytes.count, !JSONWriter.needsEscape(bytes[index]) {
      end[index] = bytes[index]
      index += 1
    }
    end[index] = quote
    count = end + index - start
    if index < bytes.count { append(escaping: bytes, from: index) } else { count += 1 }
  }

  @inline(never)
  private mutating func append(escaping bytes: UnsafeBufferPointer<UInt8>, from index: Int) {
    for byte in bytes[index...] {
      if JSONWriter.needsEscape(byte) { append(escaped: byte) } else { append(byte) }
    }
    append(UInt8(ascii: "\""))
  }

  @inline(__always)
  private static func needsEscape(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
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

  /// Inlined, a literal becomes a store or two.
  @inline(__always)
  private mutating func append(_ literal: StaticString) {
    reserve(literal.utf8CodeUnitCount)
    UnsafeMutableRawPointer(start + count).copyMemory(from: literal.utf8Start, byteCount: literal.utf8CodeUnitCount)
    count += literal.utf8CodeUnitCount
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    UnsafeMutableRawPointer(start + count).copyMemory(from: first, byteCount: bytes.count)
    count += bytes.count
  }

  @inline(__always)
  private mutating func append(_ byte: UInt8) {
    reserve(1)
    start[count] = byte
    count += 1
  }

  @inline(__always)
  private mutating func reserve(_ added: Int) {
    if capacity - count < added { grow(added) }
  }

  @inline(never)
  private mutating func grow(_ added: Int) {
    capacity = max(capacity * 2, count + added)
    let larger = JSONWriter.Block.create(minimumCapacity: capacity) { _ in }
    let moved = larger.withUnsafeMutablePointerToElements { $0 }
    moved.update(from: start, count: count)
    block = larger
    start = moved
  }
}
