// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// JSON written by hand, for answers that are put together where they are given: `.json(["ok": true, "name": name])`. It costs a small part of
// what JSONEncoder does. Values of a type of their own go through Codable (JSONAnswer.swift).

/// What can stand in a `JSONObject`. A type of yours may conform by saying what it is as a `JSONValue`.
public protocol JSONRepresentable: Sendable {
  /// The value as JSON.
  var json: JSONValue { get }
}

/// A value of JSON (RFC 8259).
public enum JSONValue: Sendable, JSONRepresentable {
  /// `null`
  case null
  /// `true` or `false`
  case bool(Bool)
  /// An integer. Readers that take every number for a double lose digits beyond 2^53.
  case int(Int)
  /// A number. What is not finite becomes `null`.
  case double(Double)
  /// Text.
  case string(String)
  /// A list.
  case array([any JSONRepresentable])
  /// An object.
  case object(JSONObject)

  /// Itself.
  public var json: JSONValue { self }
}

/// An object of JSON: names and values, written in the order of the names' bytes. Of a repeated name the last value counts.
public struct JSONObject: Sendable, JSONRepresentable, ExpressibleByDictionaryLiteral {
  var members: [(String, any JSONRepresentable)]

  /// The members of a literal.
  public init(dictionaryLiteral elements: (String, any JSONRepresentable)...) { members = elements }

  /// Adds a member to those there are, or replaces it.
  public subscript(name: String) -> any JSONRepresentable {
    get { members.last { $0.0 == name }?.1 ?? JSONValue.null }
    set { members.append((name, newValue)) }
  }

  /// `.object`
  public var json: JSONValue { .object(self) }

  /// The members as they are written. A literal is mostly short and often in order already.
  var sorted: [(String, any JSONRepresentable)] {
    let isSorted = members.count < 2 || zip(members, members.dropFirst()).allSatisfy { JSONObject.precedes($0.0, $1.0) }
    if isSorted { return members }
    var last: [String: any JSONRepresentable] = [:]
    for (name, value) in members { last[name] = value }
    return last.map { ($0.key, $0.value) }.sorted { JSONObject.precedes($0.0, $1.0) }
  }

  private static func precedes(_ a: String, _ b: String) -> Bool { a.utf8.lexicographicallyPrecedes(b.utf8) }
}

extension Bool: JSONRepresentable {
  /// `.bool`
  public var json: JSONValue { .bool(self) }
}

extension Int: JSONRepresentable {
  /// `.int`
  public var json: JSONValue { .int(self) }
}

extension Double: JSONRepresentable {
  /// `.double`
  public var json: JSONValue { .double(self) }
}

extension String: JSONRepresentable {
  /// `.string`
  public var json: JSONValue { .string(self) }
}

extension Optional: JSONRepresentable where Wrapped: JSONRepresentable {
  /// The value's, or `.null`.
  public var json: JSONValue { self?.json ?? .null }
}

extension Array: JSONRepresentable where Element: JSONRepresentable {
  /// `.array`
  public var json: JSONValue { .array(self) }
}

extension Dictionary: JSONRepresentable where Key == String, Value: JSONRepresentable {
  /// `.object`
  public var json: JSONValue {
    var object: JSONObject = [:]
    for (name, value) in self { object[name] = value }
    return .object(object)
  }
}
