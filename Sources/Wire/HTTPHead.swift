// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The head of one request in one block of memory: facts, a table of the header lines, the bytes of the head with the names in lower case,
// and the decoded path where it differs from the sent one. Written while it is parsed, never after.

/// What is known of a head. Offsets count from the copied head's first byte, the first of the request line.
struct HeadFacts {
  /// How many bytes the request's head took, with an empty line before it.
  var received: Int
  var contentLength = 0
  var fields = 0
  /// The row of the Host line; -1 if there is none.
  var host = -1
  /// Where the copied bytes begin in the block, behind the table.
  var bytes: Int
  /// The method's end.
  var method: Int
  var target: Int, targetEnd: Int
  var path: Int, pathEnd: Int
  /// Ends with the target.
  var query: Int
  var verb: HTTPVerb
  var isHTTP10: Bool
  var expectsContinue = false

  @inline(__always)
  init(_ line: RequestLine, _ scan: HeadScan, rows: Int) {
    received = scan.end
    bytes = rows &* MemoryLayout<HeadField>.stride
    method = line.target &- 1 &- scan.start
    target = line.target &- scan.start
    targetEnd = line.targetEnd &- scan.start
    path = line.path &- scan.start
    pathEnd = line.pathEnd &- scan.start
    query = line.query &- scan.start
    verb = line.verb
    isHTTP10 = line.isHTTP10
  }
}

/// One header line.
struct HeadField {
  var name: UInt32 = 0, nameEnd: UInt32 = 0
  var value: UInt32 = 0, valueEnd: UInt32 = 0
}

typealias HeadBlock = ManagedBuffer<HeadFacts, HeadField>

extension ManagedBuffer<HeadFacts, HeadField> {
  @inline(__always)
  var facts: UnsafeMutablePointer<HeadFacts> { withUnsafeMutablePointerToHeader { $0 } }

  @inline(__always)
  var table: UnsafeMutablePointer<HeadField> { withUnsafeMutablePointerToElements { $0 } }

  /// The first of the copied bytes. Valid while the block is alive.
  @inline(__always)
  var text: UnsafeMutableRawPointer { UnsafeMutableRawPointer(table) + facts.pointee.bytes }
}

/// Builds a block from a head that has been scanned to its end.
struct HeadBuilder {
  private let facts: UnsafeMutablePointer<HeadFacts>
  private let table: UnsafeMutablePointer<HeadField>
  private let text: UnsafeMutableRawPointer
  // How many lines of each name there are, and the row of the last one.
  private var hosts = 0, host = 0
  private var lengths = 0, length = 0
  private var codings = 0, coding = 0
  private var hasOtherExpectation = false

  private init(facts: UnsafeMutablePointer<HeadFacts>, table: UnsafeMutablePointer<HeadField>, text: UnsafeMutableRawPointer) {
    self.facts = facts
    self.table = table
    self.text = text
  }

  /// 5. Judges the header lines and what they say of the body, and keeps all of it.
  static func build(_ bytes: UnsafeRawPointer, _ scan: HeadScan, bodyLimit: Int) throws(Refusal) -> HeadBlock {
    let line = scan.line
    let count = scan.end &- scan.start
    let isAbsolute = line.authorityEnd > 0
    let rows = scan.fields &+ (isAbsolute ? 1 : 0)
    let room = count &+ (isAbsolute ? 4 : 0) &+ (line.hasEscapes ? line.pathEnd &- line.path : 0)
    let block = HeadBlock.create(minimumCapacity: rows &+ (room &+ 15) &>> 4) { _ in HeadFacts(line, scan, rows: rows) }
    let text = UnsafeMutableRawPointer(block.table + rows)
    text.copyMemory(from: bytes + scan.start, byteCount: count)

    var builder = HeadBuilder(facts: block.facts, table: block.table, text: text)
    try builder.readFields(from: scan.lineEnd &+ 2 &- scan.start, to: count &- 2)
    try builder.judge(bodyLimit: bodyLimit)
    if isAbsolute { builder.replaceHost(line.authority - scan.start, line.authorityEnd - scan.start, count) }
    if line.hasEscapes { builder.decodePath(to: count &+ (isAbsolute ? 4 : 0)) }
    return block
  }

  /// Each line: no white space first, a colon, a name that is a token, a value that is UTF-8. Names are put in lower case on the way.
  @inline(__always)
  private mutating func readFields(from start: Int, to end: Int) throws(Refusal) {
    let bytes = UnsafeRawPointer(text)
    var at = start
    var row = 0
    while at < end {
      let name = at
      let nameEnd = (text + name).lowerToken() - text
      at = nameEnd
      guard bytes[at] == UInt8(ascii: ":"), nameEnd > name else { throw HeadBuilder.nameFault(bytes, from: name, at: at) }
      var seen: UInt64 = 0
      at = bytes.firstReturn(from: at, to: end, seen: &seen)
      var value = nameEnd &+ 1
      var valueEnd = at
      while value < valueEnd && bytes[value].isBlank { value &+= 1 }
      while valueEnd > value && bytes[valueEnd &- 1].isBlank { valueEnd &-= 1 }
      if seen & eight(0x80) != 0 && !UTF8Check.isText(bytes, from: value, to: valueEnd) { throw .headText }

      table[row] = HeadField(
        name: UInt32(truncatingIfNeeded: name), nameEnd: UInt32(truncatingIfNeeded: nameEnd),
        value: UInt32(truncatingIfNeeded: value), valueEnd: UInt32(truncatingIfNeeded: valueEnd))
      switch (nameEnd &- name, bytes[name]) {
      case (4, UInt8(ascii: "h")):
        if bytes.half(name) == 0x7473_6F68 {  // "host"
          hosts &+= 1
          host = row
        }
      case (6, UInt8(ascii: "e")), (14, UInt8(ascii: "c")), (17, UInt8(ascii: "t")): note(row, bytes, from: name, to: nameEnd)
      default: break
      }
      row &+= 1
      at &+= 2
    }
    facts.pointee.fields = row
  }

  @inline(never)
  private static func nameFault(_ bytes: UnsafeRawPointer, from name: Int, at: Int) -> Refusal {
    if bytes[name].isBlank { return .leadingBlank }
    var at = at
    while bytes[at] != .carriageReturn {
      if bytes[at] == UInt8(ascii: ":") { return .fieldName }
      at += 1
    }
    return .noColon
  }

  /// Keeps the other lines that say how the request is to be read.
  @inline(never)
  private mutating func note(_ row: Int, _ bytes: UnsafeRawPointer, from name: Int, to nameEnd: Int) {
    if bytes.matches("content-length", from: name, to: nameEnd) {
      lengths += 1
      length = row
    } else if bytes.matches("transfer-encoding", from: name, to: nameEnd) {
      codings += 1
      coding = row
    } else if bytes.matches("expect", from: name, to: nameEnd) {
      let (value, valueEnd) = value(row)
      if bytes.matches("100-continue", from: value, to: valueEnd) {
        facts.pointee.expectsContinue = true
      } else {
        hasOtherExpectation = true
      }
    }
  }

  private func value(_ row: Int) -> (start: Int, end: Int) { (Int(table[row].value), Int(table[row].valueEnd)) }

  /// Host, Transfer-Encoding, Content-Length, size of the body, Expect: in this order.
  private mutating func judge(bodyLimit: Int) throws(Refusal) {
    let bytes = UnsafeRawPointer(text)
    guard hosts == 1 || (hosts == 0 && facts.pointee.isHTTP10) else { throw hosts == 0 ? .hostMissing : .hostRepeated }
    if hosts > 0 { facts.pointee.host = host }
    guard hosts == 0 || isAuthority(bytes, from: value(host).start, to: value(host).end, mayBeEmpty: true) else { throw .host }

    if codings > 0 {
      if facts.pointee.isHTTP10 { throw .codingInHTTP10 }
      guard codings == 1, bytes.matches("identity", from: value(coding).start, to: value(coding).end) else { throw .coding }
      if lengths > 0 { throw .codingAndLength }
    }
    if lengths > 0 {
      guard lengths == 1 else { throw .lengthRepeated }
      try readLength(bytes, bodyLimit: bodyLimit)
    }
    // RFC 9110 10.1.1: a 100-continue in HTTP/1.0 is to be ignored.
    if hasOtherExpectation && !facts.pointee.isHTTP10 { throw .expectation }
    if facts.pointee.isHTTP10 { facts.pointee.expectsContinue = false }
  }

  /// RFC 9110 8.6: digits only, of any number. Leading zeros are skipped first, so that they do not count as size.
  private mutating func readLength(_ bytes: UnsafeRawPointer, bodyLimit: Int) throws(Refusal) {
    var (at, end) = value(length)
    guard at < end else { throw .length }
    for at in at..<end where !bytes[at].isDigit { throw .length }
    while at < end && bytes[at] == UInt8(ascii: "0") { at += 1 }
    let digits = at
    var number = 0
    while at < end && number <= bodyLimit {  // the limit is far below the largest Int
      number = number * 10 + Int(bytes[at] - 0x30)
      at += 1
    }
    guard number <= bodyLimit else {
      throw .bodyTooLong(digits: UnsafeRawBufferPointer(start: bytes + digits, count: end - digits), limit: bodyLimit)
    }
    facts.pointee.contentLength = number
  }

  /// RFC 9112 3.2.2: the authority of an absolute-form target replaces the Host.
  private func replaceHost(_ start: Int, _ end: Int, _ count: Int) {
    let value = UInt32(truncatingIfNeeded: start)
    let valueEnd = UInt32(truncatingIfNeeded: end)
    if hosts > 0 {
      table[host].value = value
      table[host].valueEnd = valueEnd
      return
    }
    text.storeBytes(of: UInt32(0x7473_6F68).littleEndian, toByteOffset: count, as: UInt32.self)
    let name = UInt32(truncatingIfNeeded: count)
    table[facts.pointee.fields] = HeadField(name: name, nameEnd: name + 4, value: value, valueEnd: valueEnd)
    facts.pointee.host = facts.pointee.fields
    facts.pointee.fields += 1
  }

  /// Decodes the path once, behind the head.
  private func decodePath(to target: Int) {
    let bytes = UnsafeRawPointer(text)
    var at = facts.pointee.path
    var to = target
    while at < facts.pointee.pathEnd {
      var byte = bytes[at]
      if byte == UInt8(ascii: "%"), let decoded = bytes.escaped(at, end: facts.pointee.pathEnd) {
        byte = decoded
        at += 2
      }
      text.storeBytes(of: byte, toByteOffset: to, as: UInt8.self)
      at += 1
      to += 1
    }
    facts.pointee.path = target
    facts.pointee.pathEnd = to
  }
}
