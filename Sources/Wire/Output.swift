// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What a wire writes its answers into. One per loop, reused for every answer, so that an answer costs no allocation.

/// Bytes on their way to the socket: a buffer, then at most one large run that is not copied, then at most one source that is pulled.
///
/// Used on one thread at a time.
public struct Output: ~Copyable {
  /// Bodies of at most this many bytes are copied behind their head; a larger one is sent from where it lies. 16 KiB: below it the
  /// copy is cheaper than a second element in `sendmsg`.
  public static let copyLimit = 16 << 10

  @usableFromInline var base: UnsafeMutableRawPointer
  @usableFromInline var capacity: Int
  /// Bytes in the buffer.
  public private(set) var count: Int
  /// A run to be sent after the buffer, without a copy.
  public private(set) var tail: Bytes
  /// A stream to be pulled after that.
  public private(set) var source: (any OutputSource)?
  /// The line `Date: …` with its CRLF, kept current by the loop once a second; empty without one.
  public var dateLine: [UInt8]

  /// An empty output with room for `capacity` bytes before it grows.
  public init(capacity: Int = 4096) {
    base = .allocate(byteCount: max(capacity, 64), alignment: 16)
    self.capacity = max(capacity, 64)
    count = 0
    tail = Bytes()
    source = nil
    dateLine = []
  }

  deinit { base.deallocate() }

  /// Whether nothing has been written.
  public var isEmpty: Bool { count == 0 && tail.count == 0 && source == nil }

  /// Bytes in the buffer and the tail.
  public var size: Int { count + tail.count }

  /// The buffer's bytes; valid until the next call.
  public var buffered: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  /// Forgets everything but the date line. A buffer that grew over 1 MiB is given back.
  public mutating func removeAll() {
    count = 0
    if tail.count > 0 { tail = Bytes() }
    if source != nil { source = nil }
    if capacity > 1 << 20 {
      base.deallocate()
      capacity = 64 << 10
      base = .allocate(byteCount: capacity, alignment: 16)
    }
  }

  /// Takes the whole run back to `count` bytes: what was written after that is forgotten.
  public mutating func truncate(to count: Int) {
    if count < self.count { self.count = count }
    if tail.count > 0 { tail = Bytes() }
    source = nil
  }

  /// Appends the bytes at `start`.
  @inline(__always)
  public mutating func append(_ start: UnsafeRawPointer, count added: Int) {
    let room = reserve(added)
    room.copyMemory(from: start, byteCount: added)
    count += added
  }

  /// Appends `bytes`.
  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    if let start = bytes.baseAddress { append(start, count: bytes.count) }
  }

  /// Appends one byte.
  public mutating func append(_ byte: UInt8) {
    reserve(1).storeBytes(of: byte, as: UInt8.self)
    count += 1
  }

  /// Appends the bytes of a literal. It has a label because a literal without one is taken for a `String`, which costs more.
  @inline(__always)
  public mutating func append(literal: StaticString) {
    append(literal.utf8Start, count: literal.utf8CodeUnitCount)
  }

  /// Appends the UTF-8 of `text`.
  public mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends `bytes`: copied when short, referred to when over `copyLimit`.
  public mutating func append(_ bytes: Bytes) {
    if bytes.count > Output.copyLimit {
      flattenTail()
      tail = bytes
    } else {
      bytes.withUnsafeBytes { append($0) }
    }
  }

  /// Appends `number` in decimal.
  public mutating func append(decimal number: Int) {
    var to = reserve(20)
    if number < 0 {
      to.storeBytes(of: UInt8(ascii: "-"), as: UInt8.self)
      to += 1
    }
    to.put(decimal: number.magnitude)
    fill(to: to)
  }

  /// Makes each CR, LF and NUL in the buffer from `start` on a space, so that none can end a line.
  mutating func clean(from start: Int) { (base + start).clean(count: count - start) }

  /// Hands over a stream to be pulled when everything before it has been sent.
  public mutating func append(_ source: any OutputSource) {
    self.source = source
  }

  /// Room for `added` bytes behind the last one; a tail that was there is copied in first, to keep the order.
  @inline(__always)
  mutating func reserve(_ added: Int) -> UnsafeMutableRawPointer {
    if tail.count > 0 { flattenTail() }
    if count + added > capacity { grow(added) }
    return base + count
  }

  /// Ends at `end`, a place in the room that `reserve` has given.
  @inline(__always)
  mutating func fill(to end: UnsafeMutableRawPointer) { count = end - base }

  @inline(never)
  private mutating func flattenTail() {
    guard tail.count > 0 else { return }
    let moved = tail
    tail = Bytes()
    moved.withUnsafeBytes { append($0) }
  }

  @inline(never)
  private mutating func grow(_ added: Int) {
    let wanted = max(capacity * 2, count + added)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 16)
    larger.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = larger
    capacity = wanted
  }
}

/// A stream of bytes that is pulled: the loop asks for more whenever the socket has room. Called on the loop's thread only.
public protocol OutputSource: AnyObject, Sendable {
  /// Writes what is there, some tens of KiB at most, and says how it goes on. It must not block.
  func next(into output: inout Output) -> OutputSourceState
  /// The connection is gone, or cut by a server that stops: nothing will be asked again. Called once, unless `next` said `end`.
  func cancel()
  /// The server is stopping: `next` should come to its `end` soon. The connection is woken after this call.
  func finish()
}

/// How a stream goes on after a pull.
public enum OutputSourceState: Sendable {
  /// Ask again when the socket has room.
  case more
  /// Nothing now; `Context.wake()` will say when.
  case wait
  /// That was all.
  case end
}
