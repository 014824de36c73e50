// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What a route's pattern may look like, and what can be wrong with a router. Found while routes are added, thrown all at once by `validate()`.

/// A pattern taken apart. A path matches it segment by segment, on percent-decoded bytes; nothing is normalised, so `//`, `..` and a
/// trailing `/` are segments like others, and so is an `é` written in two ways.
struct RoutePattern: Sendable, Hashable {
  enum Segment: Sendable, Hashable {
    /// Exactly these bytes, possibly none: `/a/` ends in an empty literal.
    case literal([UInt8])
    /// `:name`: one segment that is not empty.
    case parameter(String)
    /// `*`: the rest of the path, also an empty one.
    case rest
  }

  let text: String
  let segments: [Segment]

  /// The pattern in `text`.
  init(_ text: String) throws(RouteProblem) {
    let bytes = Array(text.utf8)
    let bad = { (reason: RouteProblem.Reason) in RouteProblem.badPattern(text, reason) }
    guard bytes.first == UInt8(ascii: "/") else { throw bad(.noLeadingSlash) }
    if RoutePattern.hasEscape(bytes) { throw bad(.escaped) }
    var segments: [Segment] = []
    for part in bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      if segments.last == .rest { throw bad(.restNotLast) }
      if part.elementsEqual([UInt8(ascii: "*")]) {
        segments.append(.rest)
      } else if part.contains(UInt8(ascii: "*")) {
        throw bad(.restNotAlone)
      } else if part.first == UInt8(ascii: ":") {
        let name = part.dropFirst()
        if name.isEmpty { throw bad(.emptyName) }
        guard name.allSatisfy(RoutePattern.isNameByte) else { throw bad(.badName) }
        let parameter = Segment.parameter(String(decoding: name, as: UTF8.self))
        if segments.contains(parameter) { throw bad(.repeatedName) }
        segments.append(parameter)
      } else {
        segments.append(.literal(Array(part)))
      }
    }
    self.text = text
    self.segments = segments
  }

  /// Letters, digits, `_` and `-`.
  static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  private static func hasEscape(_ bytes: [UInt8]) -> Bool {
    bytes.indices.contains {
      bytes[$0] == UInt8(ascii: "%") && $0 + 2 < bytes.count && isHex(bytes[$0 + 1]) && isHex(bytes[$0 + 2])
    }
  }

  private static func isHex(_ byte: UInt8) -> Bool { Character(Unicode.Scalar(byte)).isHexDigit }
}

/// One thing that is wrong with a router. Each pattern is given in full, with the prefixes of its groups.
public enum RouteProblem: Error, Sendable, Hashable, CustomStringConvertible {
  /// Two routes answer the same method on the same paths.
  case duplicate(method: String, String)
  /// A parameter has two names in one place: the pattern that came first, the pattern that differs.
  case parameterNames(String, String)
  /// A pattern cannot be read.
  case badPattern(String, Reason)
  /// A group's prefix ends in `/` or contains `*`.
  case badPrefix(String)
  /// A method is not a token, or is CONNECT, which the wire refuses.
  case badMethod(String, pattern: String)
  /// A plain closure answers inline, so a deadline or `.waiting` says nothing: it should be async or `.offloaded`.
  case idleOption(method: String, String)

  /// What is wrong with a pattern.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// It does not begin with `/`.
    case noLeadingSlash = "it does not begin with /"
    /// `%41` and the like: patterns are written decoded.
    case escaped = "it has a percent escape; patterns are written decoded"
    /// Something follows `*`.
    case restNotLast = "* must be the last segment"
    /// `*` is only a part of a segment.
    case restNotAlone = "* must be a segment of its own"
    /// `:` alone.
    case emptyName = "a parameter has no name"
    /// A parameter's name has other bytes than letters, digits, `_` and `-`.
    case badName = "a parameter's name has other characters than a-z, A-Z, 0-9, _ and -"
    /// One name twice.
    case repeatedName = "two parameters have the same name"
  }

  /// One sentence that names the pattern.
  public var description: String {
    switch self {
    case .duplicate(let method, let pattern): "\(method) \(pattern) is there twice"
    case .parameterNames(let first, let second): "\(second) names a parameter otherwise than \(first) in the same place"
    case .badPattern(let pattern, let reason): "the pattern \"\(pattern)\" cannot be read: \(reason.rawValue)"
    case .badPrefix(let prefix): "the group's prefix \"\(prefix)\" must not end in / or contain *"
    case .badMethod(let method, let pattern): "\(pattern) cannot answer the method \"\(method)\""
    case .idleOption(let method, let pattern):
      "\(method) \(pattern) answers at once, so it has no deadline and cannot wait; make its closure async, or .offloaded"
    }
  }
}

/// Everything that is wrong with a router, in the order in which it was added. Thrown by `validate()`, and by a server's `start` and `run`.
public struct RouterError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong.
  public let problems: [RouteProblem]

  /// One line for each problem.
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}
