// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// An answer's header lines.

/// Header lines of an answer: an ordered list of pairs, in which a name may stand more than once (`Set-Cookie`).
///
/// Values are written with every CR, LF and NUL byte as a space, so none can end its line.
public struct Headers: Sendable {
  var lines: [(name: String, value: String)] = []

  /// No lines.
  public init() {}

  /// Adds a line behind the others.
  /// - Throws: `HeaderError.invalidName` if `name` is not a token (RFC 9110 5.1).
  public mutating func add(_ name: String, _ value: String) throws(HeaderError) {
    guard Headers.isToken(name) else { throw .invalidName(name) }
    lines.append((name, value))
  }

  /// Replaces all lines of that name by one. It stands where the first of them stood.
  /// - Throws: `HeaderError.invalidName` if `name` is not a token (RFC 9110 5.1).
  public mutating func set(_ name: String, _ value: String) throws(HeaderError) {
    guard Headers.isToken(name) else { throw .invalidName(name) }
    guard let first = lines.firstIndex(where: { Headers.isSame($0.name, name) }) else {
      lines.append((name, value))
      return
    }
    lines[first] = (name, value)
    lines[(first + 1)...].removeAll { Headers.isSame($0.name, name) }
  }

  /// Removes all lines of that name.
  public mutating func remove(_ name: String) {
    lines.removeAll { Headers.isSame($0.name, name) }
  }

  /// The last value of that name, whatever the case of its letters; nil if there is none.
  public subscript(name: String) -> String? {
    lines.last { Headers.isSame($0.name, name) }?.value
  }

  /// For names this module wrote itself.
  mutating func appendUnchecked(_ name: String, _ value: String) { lines.append((name, value)) }

  static func isToken(_ name: String) -> Bool { !name.isEmpty && name.utf8.allSatisfy(\.isToken) }

  static func isSame(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && a.utf8.elementsEqual(b.utf8) { $0.lowered == $1.lowered }
  }

  /// Byte order of the names in lower case.
  static func precedes(_ a: String, _ b: String) -> Bool {
    a.utf8.lexicographicallyPrecedes(b.utf8) { $0.lowered < $1.lowered }
  }
}

extension Headers: RandomAccessCollection {
  /// Always 0.
  public var startIndex: Int { 0 }
  /// How many lines there are.
  public var endIndex: Int { lines.count }
  /// The line at `position`, as it was set.
  public subscript(position: Int) -> (name: String, value: String) { lines[position] }
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
