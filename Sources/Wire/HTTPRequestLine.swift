// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The request line (RFC 9112 3), judged as soon as its CRLF is in.

/// A request's method, as far as it can be told without a String.
public enum HTTPVerb: UInt8, Sendable, CaseIterable {
  /// The methods of RFC 9110 9.3 and PATCH (RFC 5789), as they are spelled there: methods are case-sensitive.
  case get, head, post, put, delete, patch, options, trace
  /// Any other token.
  case other
}

/// Where the parts of a request line lie, as offsets from the first byte received.
struct RequestLine {
  var verb = HTTPVerb.other
  var isHTTP10 = false
  var hasEscapes = false
  var methodEnd = 0
  var target = 0, targetEnd = 0
  /// Not decoded. In absolute form without a path it is a slash of the `http://`.
  var path = 0, pathEnd = 0
  var query = 0
  /// The authority of an absolute-form target; empty for the other forms.
  var authority = 0, authorityEnd = 0

  /// Judges the line from `start` to its CR at `end`.
  init(_ bytes: UnsafeRawPointer, from start: Int, to end: Int) throws(Refusal) {
    // Parts.
    methodEnd = bytes.first(.space, from: start, to: end)
    target = methodEnd &+ 1
    var at = target
    var hasBadByte = false
    var question = -1
    while at < end {
      let byte = bytes[at]
      if byte == .space { break }
      if byte == UInt8(ascii: "?") && question < 0 { question = at }
      if byte == UInt8(ascii: "%") { hasEscapes = true }
      if byte < 0x20 || byte > 0x7E || byte == UInt8(ascii: "#") { hasBadByte = true }
      at &+= 1
    }
    targetEnd = at
    let version = at &+ 1
    guard version < end, targetEnd > target, bytes.first(.space, from: version, to: end) == end else { throw .requestLine }

    // Method, version. After the version's length is known the line has at least 12 bytes, so a word can be read at its start.
    let isGET = bytes.half(start) == 0x2054_4547  // "GET "
    if !isGET { for at in start..<methodEnd where !bytes[at].isToken { throw .method } }
    guard end &- version == 8 else { throw .requestLine }
    let word = bytes.word(version)
    if word != 0x312E_312F_5054_5448 {  // "HTTP/1.1"
      guard word & 0x00FF_00FF_FFFF_FFFF == 0x002E_002F_5054_5448, bytes[version &+ 5].isDigit, bytes[version &+ 7].isDigit else {
        throw .requestLine
      }
      guard bytes[version &+ 5] == UInt8(ascii: "1") else { throw .version }
      isHTTP10 = bytes[version &+ 7] == UInt8(ascii: "0")
    }
    verb = isGET ? .get : try RequestLine.verb(bytes, from: start, to: methodEnd)

    // Target.
    if hasBadByte { throw .targetByte }
    path = target
    pathEnd = question < 0 ? targetEnd : question
    query = question < 0 ? targetEnd : question &+ 1
    if bytes[target] != UInt8(ascii: "/") { try judgeOtherForm(bytes) }
    if hasEscapes { try judgeEscapes(bytes) }
  }

  /// The absolute form and `*`; CONNECT's authority form is not spoken (RFC 9112 3.2.2 to 3.2.4).
  @inline(never)
  private mutating func judgeOtherForm(_ bytes: UnsafeRawPointer) throws(Refusal) {
    if bytes.matches("*", from: target, to: targetEnd) {
      guard verb == .options else { throw .asterisk }
      return
    }
    authority = target + 7
    guard authority <= targetEnd, bytes.matches("http://", from: target, to: authority) else { throw .targetForm }
    authorityEnd = min(bytes.first(UInt8(ascii: "/"), from: authority, to: pathEnd), pathEnd)
    guard isAuthority(bytes, from: authority, to: authorityEnd, mayBeEmpty: false) else { throw .authority }
    if authorityEnd < pathEnd {
      path = authorityEnd
    } else {
      path = authority - 1
      pathEnd = authority
    }
  }

  /// Every escape is two hex digits and none is NUL, nor a slash in the path; what they decode to is UTF-8 (RFC 3986 2.1, 2.5).
  @inline(never)
  private func judgeEscapes(_ bytes: UnsafeRawPointer) throws(Refusal) {
    var text = UTF8Check()
    var at = path
    while at < targetEnd {
      var byte = bytes[at]
      if byte == UInt8(ascii: "%") {
        guard let decoded = bytes.escaped(at, end: targetEnd) else { throw .escape }
        if decoded == 0 { throw .escapedNUL }
        if decoded == UInt8(ascii: "/") && at < pathEnd { throw .escapedSlash }
        byte = decoded
        at += 2
      }
      guard text.take(byte) else { throw .escapedText }
      at += 1
    }
    guard text.isWhole else { throw .escapedText }
  }

  private static func verb(_ bytes: UnsafeRawPointer, from start: Int, to end: Int) throws(Refusal) -> HTTPVerb {
    let length = end - start
    guard length < 8 else { return .other }
    switch bytes.word(start) & (1 << UInt64(length * 8) &- 1) {
    case 0x54_4547: return .get
    case 0x4441_4548: return .head
    case 0x5453_4F50: return .post
    case 0x54_5550: return .put
    case 0x4554_454C_4544: return .delete
    case 0x48_4354_4150: return .patch
    case 0x53_4E4F_4954_504F: return .options
    case 0x45_4341_5254: return .trace
    case 0x54_4345_4E4E_4F43: throw .connect
    default: return .other
    }
  }
}

extension UnsafeRawPointer {
  /// What the escape at the percent sign at `offset` stands for; nil if it is not two hex digits before `end`.
  func escaped(_ offset: Int, end: Int) -> UInt8? {
    guard offset + 2 < end, let high = self[offset + 1].hexValue, let low = self[offset + 2].hexValue else { return nil }
    return high << 4 | low
  }
}

/// Whether the bytes are a host and an optional port (RFC 3986 3.2.2, 3.2.3) without user information: a registered name or IPv4
/// address, or an IPv6 address in brackets.
func isAuthority(_ bytes: UnsafeRawPointer, from start: Int, to end: Int, mayBeEmpty: Bool) -> Bool {
  var at = start
  if at < end && bytes[at] == UInt8(ascii: "[") {
    at += 1
    while at < end, bytes[at].hexValue != nil || bytes[at] == UInt8(ascii: ":") || bytes[at] == UInt8(ascii: ".") { at += 1 }
    guard at < end, at > start + 1, bytes[at] == UInt8(ascii: "]") else { return false }
    at += 1
  } else {
    while at < end {
      let byte = bytes[at]
      if byte == UInt8(ascii: "%") {
        guard bytes.escaped(at, end: end) != nil else { return false }
      } else if !isHostByte(byte) {
        break
      }
      at += 1
    }
    if at == start && !(at == end && mayBeEmpty) { return false }
  }
  guard at < end else { return true }
  guard bytes[at] == UInt8(ascii: ":") else { return false }
  at += 1
  while at < end && bytes[at].isDigit { at += 1 }
  return at == end
}

/// Unreserved bytes and sub-delimiters (RFC 3986 2.2, 2.3).
private func isHostByte(_ byte: UInt8) -> Bool {
  let low: UInt64 = 0x2BFF_7FD2_0000_0000  // ! $ & ' ( ) * + , - . 0-9 ; =
  let high: UInt64 = 0x47FF_FFFE_87FF_FFFE  // A-Z _ a-z ~
  return byte < 128 && (byte < 64 ? low >> UInt64(byte) : high >> UInt64(byte & 63)) & 1 != 0
}
