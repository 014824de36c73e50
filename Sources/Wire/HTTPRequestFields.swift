// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// A request's header lines and query, read from the head's bytes when asked for.

extension HTTPRequest {
  /// The header lines in the order in which they came, every one of them, with names in lower case.
  public var headers: Fields { Fields(request: self) }

  /// A request's header lines.
  public struct Fields: RandomAccessCollection, Sendable {
    let request: HTTPRequest

    /// Always 0.
    public var startIndex: Int { 0 }
    /// How many lines there are.
    public var endIndex: Int { request.facts.fields }

    /// The line at `position`: its name in lower case, its value without white space around it.
    public subscript(position: Int) -> (name: String, value: String) {
      precondition(indices.contains(position), "index out of range")
      let field = request.block.table[position]
      return (request.text(Int(field.name), Int(field.nameEnd)), request.text(Int(field.value), Int(field.valueEnd)))
    }

    /// The last value of that name, whatever the case of its letters; nil if there is none.
    public subscript(name: String) -> String? {
      var name = name
      let row = name.withUTF8 { lastRow(of: UnsafeRawBufferPointer($0)) }
      guard row >= 0 else { return nil }
      let field = request.block.table[row]
      return request.text(Int(field.value), Int(field.valueEnd))
    }

    /// Calls `body` with the last value of that name as bytes, which are valid only inside the call; nil if there is none. No String is
    /// made.
    @inlinable
    public func withValue<Result, Failure: Error>(
      of name: StaticString, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
      defer { withExtendedLifetime(self) {} }
      guard let value = valueBytes(of: name) else { return nil }
      return try body(value)
    }

    /// Valid while the request is alive.
    @usableFromInline
    func valueBytes(of name: StaticString) -> UnsafeRawBufferPointer? {
      let row = lastRow(of: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
      guard row >= 0 else { return nil }
      let field = request.block.table[row]
      return request.bytes(Int(field.value), Int(field.valueEnd))
    }

    /// The last line with that name, or -1.
    @inline(__always)
    private func lastRow(of name: UnsafeRawBufferPointer) -> Int {
      let table = request.block.table
      let text = UnsafeRawPointer(request.block.text)
      var row = request.facts.fields &- 1
      while row >= 0 {
        let field = table[row]
        if Int(field.nameEnd &- field.name) == name.count && isName(text + Int(field.name), name) { break }
        row &-= 1
      }
      return row
    }

    @inline(__always)
    private func isName(_ sent: UnsafeRawPointer, _ name: UnsafeRawBufferPointer) -> Bool {
      for index in 0..<name.count where sent[index] != name[index].lowered { return false }
      return true
    }
  }
}

// The query: members between `&`, the first `=` splits, both sides percent-decoded once. Empty members are skipped, `+` is a plus.
extension HTTPRequest {
  /// The query as it was sent, without its question mark.
  public var queryBytes: Bytes { slice(facts.query, facts.targetEnd) }

  /// The decoded query; of a repeated name the last value. Made anew by each call.
  public var query: [String: String] {
    var query: [String: String] = [:]
    var at = facts.query
    while let member = nextMember(&at) {
      query[decoded(member.name, member.nameEnd)] = decoded(member.value, member.end)
    }
    return query
  }

  /// The last value of that name in the query, decoded; nil if there is none. No dictionary is made.
  public func query(_ name: String) -> String? {
    var found: (value: Int, end: Int)?
    var at = facts.query
    while let member = nextMember(&at) {
      if isName(name, member.name, member.nameEnd) { found = (member.value, member.end) }
    }
    return found.map { decoded($0.value, $0.end) }
  }

  private struct Member {
    var name: Int, nameEnd: Int, value: Int, end: Int
  }

  private func nextMember(_ at: inout Int) -> Member? {
    defer { withExtendedLifetime(block) {} }
    let bytes = UnsafeRawPointer(block.text)
    let end = facts.targetEnd
    while at < end && bytes[at] == UInt8(ascii: "&") { at += 1 }
    guard at < end else { return nil }
    let name = at
    at = bytes.first(UInt8(ascii: "&"), from: at, to: end)
    let nameEnd = bytes.first(UInt8(ascii: "="), from: name, to: at)
    return Member(name: name, nameEnd: nameEnd, value: min(nameEnd + 1, at), end: at)
  }

  /// One decoded byte; `at` goes to the next.
  private func next(_ at: inout Int, _ end: Int) -> UInt8 {
    let bytes = UnsafeRawPointer(block.text)
    let byte = bytes[at]
    defer { at += 1 }
    if byte == UInt8(ascii: "%"), let decoded = bytes.escaped(at, end: end) {
      at += 2
      return decoded
    }
    return byte
  }

  private func isName(_ name: String, _ start: Int, _ end: Int) -> Bool {
    var at = start
    for byte in name.utf8 {
      guard at < end, next(&at, end) == byte else { return false }
    }
    return at == end
  }

  private func decoded(_ start: Int, _ end: Int) -> String {
    String(unsafeUninitializedCapacity: end - start) { room in
      var at = start
      var count = 0
      while at < end {
        room[count] = next(&at, end)
        count += 1
      }
      return count
    }
  }
}
