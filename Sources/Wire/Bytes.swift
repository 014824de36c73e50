// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// A run of bytes that is never written again, shared without a copy: a request's body is the connection's buffer itself.

/// An immutable run of bytes with an owner that keeps its memory alive. Copying a `Bytes` or slicing it shares the memory.
///
/// `@unchecked Sendable` and the raw pointer are right because the memory is written only before the first `Bytes` over it exists.
public struct Bytes: @unchecked Sendable {
  @usableFromInline let owner: AnyObject?
  @usableFromInline let start: UnsafeRawPointer?
  /// How many bytes there are.
  public let count: Int

  /// No bytes.
  @inlinable
  public init() {
    owner = nil
    start = nil
    count = 0
  }

  /// A run of memory that `owner` keeps alive and that nobody writes to from here on.
  @inlinable
  public init(unsafeStart start: UnsafeRawPointer?, count: Int, owner: AnyObject?) {
    self.owner = owner
    self.start = start
    self.count = count
  }

  /// A copy of `bytes`.
  public init(copying bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress, bytes.count > 0 else {
      self.init()
      return
    }
    // One block of memory, owner and bytes together.
    let block = ManagedBuffer<Void, UInt8>.create(minimumCapacity: bytes.count) { _ in }
    let start = block.withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) }
    start.copyMemory(from: base, byteCount: bytes.count)
    self.init(unsafeStart: start, count: bytes.count, owner: block)
  }

  /// A copy of `bytes`.
  public init(_ bytes: some Sequence<UInt8>) {
    let array = ContiguousArray(bytes)
    self = array.withUnsafeBytes { Bytes(copying: $0) }
  }

  /// The UTF-8 of `text`, copied.
  public init(_ text: String) {
    var text = text
    self = text.withUTF8 { Bytes(copying: UnsafeRawBufferPointer($0)) }
  }

  /// The bytes of a literal, not copied.
  public init(literal text: StaticString) {
    guard text.hasPointerRepresentation else {
      self.init(text.description)
      return
    }
    self.init(unsafeStart: text.utf8Start, count: text.utf8CodeUnitCount, owner: nil)
  }

  /// Calls `body` with the memory, which is valid only inside the call.
  @inlinable
  public func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    defer { withExtendedLifetime(owner) {} }
    return try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// The part in `range` (offsets from this run's first byte, clamped to it), sharing the memory.
  public subscript(range: Range<Int>) -> Bytes {
    let range = range.clamped(to: 0..<count)
    return Bytes(unsafeStart: start.map { $0 + range.lowerBound }, count: range.count, owner: owner)
  }

  /// The bytes as text; what is not UTF-8 becomes U+FFFD.
  public var text: String {
    withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }
}

extension Bytes: RandomAccessCollection {
  /// Always 0.
  @inlinable public var startIndex: Int { 0 }
  /// `count`.
  @inlinable public var endIndex: Int { count }

  /// The byte at `position`.
  @inlinable
  public subscript(position: Int) -> UInt8 {
    precondition(position >= 0 && position < count, "index out of range")
    return withUnsafeBytes { $0[position] }
  }

  /// Lends the memory to algorithms that ask for it.
  @inlinable
  public func withContiguousStorageIfAvailable<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result? {
    try withUnsafeBytes { try $0.withMemoryRebound(to: UInt8.self, body) }
  }
}

extension Bytes: Equatable {
  /// Whether both hold the same bytes.
  public static func == (a: Bytes, b: Bytes) -> Bool {
    guard a.count == b.count, let x = a.start, let y = b.start else { return a.count == b.count }
    defer { withExtendedLifetime((a, b)) {} }
    var at = 0
    while at + 8 <= a.count {
      if x.word(at) != y.word(at) { return false }
      at += 8
    }
    while at < a.count && x[at] == y[at] { at += 1 }
    return at == a.count
  }
}

/// Memory with one owner, freed with it: the object and its bytes are one allocation. The header is their number. Written only by whoever
/// made it, and only until it is shared as `Bytes`.
public typealias ByteBlock = ManagedBuffer<Int, UInt8>

extension ManagedBuffer<Int, UInt8> {
  /// `capacity` bytes, not initialised.
  public static func bytes(_ capacity: Int) -> ByteBlock { create(minimumCapacity: capacity) { _ in capacity } }

  /// The first byte; at this address as long as the block lives.
  public var start: UnsafeMutableRawPointer { withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) } }

  /// How many bytes there are.
  public var byteCount: Int { withUnsafeMutablePointerToHeader { $0.pointee } }
}
