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

/// An object of JSON: names and values, written in the order of the names. Of a repeated name the last value counts.
public struct JSONObject: Sendable, JSONRepresentable, ExpressibleByDictionaryLiteral {
  typealias Member = (String, any JSONRepresentable)

  var members: [Member]

  /// The members of a literal.
  public init(dictionaryLiteral elements: (String, any JSONRepresentable)...) { members = elements }

  /// Adds a member to those there are, or replaces it.
  public subscript(name: String) -> any JSONRepresentable {
    get { members.last { $0.0 == name }?.1 ?? JSONValue.null }
    set { members.append((name, newValue)) }
  }

  /// `.object`
  public var json: JSONValue { .object(self) }

  /// Lends the members as they are written, which a literal mostly is already. Without members, nothing happens.
  func withSorted(_ body: (borrowing Members) -> Void) {
    let isSorted = withMembers(members) { members in
      var index = 1
      while index < members.count, members.name(index - 1) < members.name(index) { index += 1 }
      return index >= members.count
    }
    _ = isSorted == false ? withMembers(rearranged, body) : withMembers(members, body)
  }

  private func withMembers<Result>(_ members: [Member], _ body: (borrowing Members) -> Result) -> Result? {
    members.withUnsafeBufferPointer { members in
      members.baseAddress.map { body(Members(start: UnsafeRawPointer($0), count: members.count)) }
    }
  }

  private var rearranged: [Member] {
    var last: [String: any JSONRepresentable] = [:]
    for (name, value) in members { last[name] = value }
    return last.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
  }

  /// A view of members that reads each half of a pair where it lies: copying a pair whose second half is an existential costs more
  /// (hundreds of instructions) than writing it. Swift's ABI lays a tuple out as it
  /// does a struct, its parts in order (TypeLayout, "Fragile Struct and Tuple Layout"), and both parts are aligned alike.
  struct Members: ~Copyable {
    let start: UnsafeRawPointer
    let count: Int

    func name(_ index: Int) -> String {
      (start + index * MemoryLayout<Member>.stride).assumingMemoryBound(to: String.self).pointee
    }

    func value(_ index: Int) -> JSONValue {
      let value = start + index * MemoryLayout<Member>.stride + MemoryLayout<String>.stride
      return value.assumingMemoryBound(to: (any JSONRepresentable).self).pointee.json
    }
  }
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
