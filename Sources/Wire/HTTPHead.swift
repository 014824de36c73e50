// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The head of one request in one block of memory: facts, a table of the header lines, the bytes of the head with the names in lower case,
// and the decoded path where it differs from the sent one. Written while it is parsed, never after.

/// What is known of a head. Offsets count from the copied head's first byte, the first of the request line.
struct HeadFacts {
  /// How many bytes the request's head took, with an empty line before it.
  var received = 0
  var contentLength = 0
  var fields = 0
  /// Where the copied bytes begin in the block, behind the table.
  var bytes = 0
  var method = 0
  var target = 0, targetEnd = 0
  var path = 0, pathEnd = 0
  var query = 0
  var verb = HTTPVerb.other
  var isHTTP10 = false
  var expectsContinue = false
}

/// One header line.
struct HeadField {
  var name: UInt32 = 0, nameEnd: UInt32 = 0
  var value: UInt32 = 0, valueEnd: UInt32 = 0
}

typealias HeadBlock = ManagedBuffer<HeadFacts, HeadField>

extension ManagedBuffer<HeadFacts, HeadField> {
  @inline(__always)
  var table: UnsafeMutablePointer<HeadField> { withUnsafeMutablePointerToElements { $0 } }

  /// The first of the copied bytes. Valid while the block is alive.
  @inline(__always)
  var text: UnsafeMutableRawPointer { UnsafeMutableRawPointer(table) + header.bytes }
}

/// Builds a block from a head that has been scanned to its end.
struct HeadBuilder {
  private var facts = HeadFacts()
  private var hosts = 0, host = HeadField()
  private var lengths = 0, length = HeadField()
  private var codings = 0, coding = HeadField()
  private var hasOtherExpectation = false

  /// 5. Judges the header lines and what they say of the body, and keeps all of it.
  static func build(_ bytes: UnsafeRawPointer, _ scan: HeadScan, _ line: RequestLine, bodyLimit: Int) throws(Refusal) -> HeadBlock {
    var builder = HeadBuilder()
    let count = scan.end &- scan.start
    let isAbsolute = line.authorityEnd > 0
    let rows = scan.fields &+ (isAbsolute ? 1 : 0)
    let room = count &+ (isAbsolute ? 4 : 0) &+ (line.hasEscapes ? line.pathEnd &- line.path : 0)
    let block = HeadBlock.create(minimumCapacity: rows &+ (room &+ 15) / 16) { _ in HeadFacts() }
    let table = unsafe(block)
    let text = UnsafeMutableRawPointer(table + rows)
    text.copyMemory(from: bytes + scan.start, byteCount: count)

    builder.facts.received = scan.end
    builder.facts.bytes = rows &* 16
    builder.facts.isHTTP10 = line.isHTTP10
    builder.facts.verb = line.verb
    builder.facts.method = line.methodEnd &- scan.start
    builder.facts.target = line.target &- scan.start
    builder.facts.targetEnd = line.targetEnd &- scan.start
    builder.facts.path = line.path &- scan.start
    builder.facts.pathEnd = line.pathEnd &- scan.start
    builder.facts.query = line.query &- scan.start

    try builder.readFields(text, from: scan.lineEnd &+ 2 &- scan.start, to: count &- 2, into: table)
    try builder.judge(text, bodyLimit: bodyLimit)
    if isAbsolute { builder.replaceHost(text, line, scan.start, count, table) }
    if line.hasEscapes { builder.decodePath(text, at: count &+ (isAbsolute ? 4 : 0)) }
    block.withUnsafeMutablePointerToHeader { $0.pointee = builder.facts }
    return block
  }

  private static func unsafe(_ block: HeadBlock) -> UnsafeMutablePointer<HeadField> { block.table }

  /// Each line: no white space first, a colon, a name that is a token, a value that is UTF-8. Names are put in lower case on the way.
  @inline(__always)
  private mutating func readFields(
    _ text: UnsafeMutableRawPointer, from start: Int, to end: Int, into table: UnsafeMutablePointer<HeadField>
  ) throws(Refusal) {
    let bytes = UnsafeRawPointer(text)
    let mayBeOther = bytes.hasNonASCII(from: start, to: end)
    var at = start
    while at < end {
      let name = at
      while true {
        let byte = bytes[at].loweredToken
        if byte == 0 { break }
        text.storeBytes(of: byte, toByteOffset: at, as: UInt8.self)
        at &+= 1
      }
      let nameEnd = at
      guard bytes[at] == UInt8(ascii: ":"), nameEnd > name else { throw HeadBuilder.nameFault(bytes, from: name, at: at) }
      at = bytes.first(.carriageReturn, from: at, to: end)
      var value = nameEnd &+ 1
      var valueEnd = at
      while value < valueEnd && bytes[value].isBlank { value &+= 1 }
      while valueEnd > value && bytes[valueEnd &- 1].isBlank { valueEnd &-= 1 }
      if mayBeOther && !UTF8Check.isText(bytes, from: value, to: valueEnd) { throw .headText }

      let field = HeadField(
        name: UInt32(truncatingIfNeeded: name), nameEnd: UInt32(truncatingIfNeeded: nameEnd),
        value: UInt32(truncatingIfNeeded: value), valueEnd: UInt32(truncatingIfNeeded: valueEnd))
      table[facts.fields] = field
      note(bytes, field, name, nameEnd &- name)
      facts.fields &+= 1
      at &+= 2
    }
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

  /// Keeps the lines that say how the request is to be read.
  @inline(__always)
  private mutating func note(_ bytes: UnsafeRawPointer, _ field: HeadField, _ name: Int, _ length: Int) {
    switch length {
    case 4:
      guard bytes.half(name) == 0x7473_6F68 else { return }  // "host"
      hosts &+= 1
      host = field
    case 6:
      if bytes.matches("expect", from: name, to: name &+ 6) { noteExpectation(bytes, field) }
    case 14:
      guard bytes.matches("content-length", from: name, to: name &+ 14) else { return }
      lengths &+= 1
      self.length = field
    case 17:
      guard bytes.matches("transfer-encoding", from: name, to: name &+ 17) else { return }
      codings &+= 1
      coding = field
    default: return
    }
  }

  private mutating func noteExpectation(_ bytes: UnsafeRawPointer, _ field: HeadField) {
    if bytes.matches("100-continue", from: Int(field.value), to: Int(field.valueEnd)) {
      facts.expectsContinue = true
    } else {
      hasOtherExpectation = true
    }
  }

  /// Host, Transfer-Encoding, Content-Length, size of the body, Expect: in this order.
  private mutating func judge(_ text: UnsafeMutableRawPointer, bodyLimit: Int) throws(Refusal) {
    let bytes = UnsafeRawPointer(text)
    guard hosts == 1 || (hosts == 0 && facts.isHTTP10) else { throw hosts == 0 ? .hostMissing : .hostRepeated }
    guard hosts == 0 || isAuthority(bytes, from: Int(host.value), to: Int(host.valueEnd), mayBeEmpty: true) else { throw .host }

    if codings > 0 {
      if facts.isHTTP10 { throw .codingInHTTP10 }
      guard codings == 1, bytes.matches("identity", from: Int(coding.value), to: Int(coding.valueEnd)) else { throw .coding }
      if lengths > 0 { throw .codingAndLength }
    }
    if lengths > 0 {
      guard lengths == 1 else { throw .lengthRepeated }
      try readLength(bytes, bodyLimit: bodyLimit)
    }
    // RFC 9110 10.1.1: a 100-continue in HTTP/1.0 is to be ignored.
    if hasOtherExpectation && !facts.isHTTP10 { throw .expectation }
    if facts.isHTTP10 { facts.expectsContinue = false }
  }

  /// RFC 9110 8.6: digits only, of any number. Leading zeros are skipped first, so that they do not count as size.
  private mutating func readLength(_ bytes: UnsafeRawPointer, bodyLimit: Int) throws(Refusal) {
    var at = Int(length.value)
    let end = Int(length.valueEnd)
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
    facts.contentLength = number
  }

  /// RFC 9112 3.2.2: the authority of an absolute-form target replaces the Host.
  private mutating func replaceHost(
    _ text: UnsafeMutableRawPointer, _ line: RequestLine, _ start: Int, _ count: Int, _ table: UnsafeMutablePointer<HeadField>
  ) {
    let value = UInt32(truncatingIfNeeded: line.authority - start)
    let valueEnd = UInt32(truncatingIfNeeded: line.authorityEnd - start)
    if hosts > 0 {
      for row in 0..<facts.fields where table[row].name == host.name {
        table[row].value = value
        table[row].valueEnd = valueEnd
      }
      return
    }
    text.storeBytes(of: UInt32(0x7473_6F68).littleEndian, toByteOffset: count, as: UInt32.self)
    let name = UInt32(truncatingIfNeeded: count)
    table[facts.fields] = HeadField(name: name, nameEnd: name + 4, value: value, valueEnd: valueEnd)
    facts.fields += 1
  }

  /// Decodes the path once, behind the head.
  private mutating func decodePath(_ text: UnsafeMutableRawPointer, at target: Int) {
    let bytes = UnsafeRawPointer(text)
    var at = facts.path
    var to = target
    while at < facts.pathEnd {
      var byte = bytes[at]
      if byte == UInt8(ascii: "%"), let decoded = bytes.escaped(at, end: facts.pathEnd) {
        byte = decoded
        at += 2
      }
      text.storeBytes(of: byte, toByteOffset: to, as: UInt8.self)
      at += 1
      to += 1
    }
    facts.path = target
    facts.pathEnd = to
  }
}
