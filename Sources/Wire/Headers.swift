// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// An answer's header lines.

/// Header lines of an answer: an ordered list of pairs, in which a name may stand more than once (`Set-Cookie`).
///
/// Values are written with every CR, LF and NUL byte as a space, so none can end its line.
public struct Headers: Sendable {
  var lines: [HeaderLine] = []

  /// No lines.
  public init() {}

  /// Adds a line behind the others.
  /// - Throws: `HeaderError.invalidName` if `name` is not a token (RFC 9110 5.1).
  public mutating func add(_ name: String, _ value: String) throws(HeaderError) {
    lines.append(try HeaderLine(checking: name, value))
  }

  /// Replaces all lines of that name by one. It stands where the first of them stood.
  /// - Throws: `HeaderError.invalidName` if `name` is not a token (RFC 9110 5.1).
  public mutating func set(_ name: String, _ value: String) throws(HeaderError) {
    let line = try HeaderLine(checking: name, value)
    guard let first = lines.firstIndex(where: { $0.isNamed(name) }) else {
      lines.append(line)
      return
    }
    lines[first] = line
    lines[(first + 1)...].removeAll { $0.isNamed(name) }
  }

  /// Removes all lines of that name.
  public mutating func remove(_ name: String) {
    lines.removeAll { $0.isNamed(name) }
  }

  /// The last value of that name, whatever the case of its letters; nil if there is none.
  public subscript(name: String) -> String? {
    lines.last { $0.isNamed(name) }?.value
  }

  /// For names this module wrote itself.
  mutating func appendUnchecked(_ name: String, _ value: String) { lines.append(HeaderLine(name, value)) }
}

/// One line, with what the writer asks of its name each time.
struct HeaderLine: Sendable {
  let name: String
  let value: String
  /// The name's first eight bytes in lower case, the first in the highest place: nearly always enough to sort by.
  let key: UInt64
  /// Whether the wire writes lines of that name itself.
  let isOfWire: Bool

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
    key = HeaderLine.key(name)
    isOfWire = ["connection", "content-length", "transfer-encoding"].contains { HeaderLine.isSame($0, name) }
  }

  init(checking name: String, _ value: String) throws(HeaderError) {
    guard !name.isEmpty, name.utf8.allSatisfy(\.isToken) else { throw .invalidName(name) }
    self.init(name, value)
  }

  func isNamed(_ name: String) -> Bool { HeaderLine.isSame(self.name, name) }

  /// Whether this line's name in lower case comes before another one in byte order. `key` is that one's.
  func precedes(_ name: String, _ key: UInt64) -> Bool {
    if self.key != key { return self.key < key }
    return self.name.utf8.lexicographicallyPrecedes(name.utf8) { $0.lowered < $1.lowered }
  }

  static func key(_ name: String) -> UInt64 {
    var key: UInt64 = 0
    var room: UInt64 = 64
    for byte in name.utf8.prefix(8) {
      room -= 8
      key |= UInt64(byte.lowered) << room
    }
    return key
  }

  static func isSame(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && a.utf8.elementsEqual(b.utf8) { $0.lowered == $1.lowered }
  }
}

extension Headers: RandomAccessCollection {
  /// Always 0.
  public var startIndex: Int { 0 }
  /// How many lines there are.
  public var endIndex: Int { lines.count }
  /// The line at `position`, as it was set.
  public subscript(position: Int) -> (name: String, value: String) { (lines[position].name, lines[position].value) }
}

/// What is wrong with a header line that a handler set.
public enum HeaderError: Error, Hashable, CustomStringConvertible {
  /// The name is not a token (RFC 9110 5.6.2).
  case invalidName(String)

  /// A sentence for a log.
  public var description: String {
    switch self {
    case .invalidName(let name): "the header name \(name.debugDescription) is not a token"
    }
  }
}
