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

/// Where the parts of a request line lie, as offsets from the first byte received. The method ends at the space before the target.
struct RequestLine {
  var target = 0, targetEnd = 0
  /// Not decoded. In absolute form without a path it is a slash of the `http://`.
  var path = 0, pathEnd = 0
  /// Ends with the target.
  var query = 0
  /// Where the authority of an absolute-form target ends, which begins behind the `http://`; 0 in the other forms.
  var authorityEnd = 0
  var verb = HTTPVerb.other
  var isHTTP10 = false
  var hasEscapes = false

  /// Behind the `http://` of an absolute-form target.
  var authority: Int { target + 7 }

  /// Judges the line from `start` to its CR at `end`.
  mutating func read(_ bytes: UnsafeRawPointer, from start: Int, to end: Int) throws(Refusal) {
    // Parts. A line that ends in HTTP/1.1 behind the target's end has three of them.
    let isGET = end &- start >= 4 && bytes.half(start) == 0x2054_4547  // "GET "
    target = (isGET ? start &+ 3 : bytes.first(.space, from: start, to: end)) &+ 1
    var hasBadByte = false
    var question = -1
    targetEnd = target
    while true {
      targetEnd = bytes.skipPlain(from: targetEnd, to: end)
      guard targetEnd < end else { break }
      let byte = bytes[targetEnd]
      if byte == .space { break }
      if byte == UInt8(ascii: "%") {
        hasEscapes = true
      } else if byte != UInt8(ascii: "?") {
        hasBadByte = true
      } else if question < 0 {
        question = targetEnd
      }
      targetEnd &+= 1
    }
    let version = targetEnd &+ 1
    let isHTTP11 = version &+ 8 == end && bytes.word(version) == 0x312E_312F_5054_5448  // "HTTP/1.1"
    guard targetEnd > target, isHTTP11 || (version < end && bytes.first(.space, from: version, to: end) == end) else {
      throw .requestLine
    }

    // Method, version.
    if !isGET { for at in start..<(target &- 1) where !bytes[at].isToken { throw .method } }
    if !isHTTP11 { isHTTP10 = try RequestLine.isHTTP10(bytes, from: version, to: end) }
    verb = isGET ? .get : try RequestLine.verb(bytes, from: start, to: target &- 1)

    // Target.
    if hasBadByte { throw .targetByte }
    path = target
    pathEnd = question < 0 ? targetEnd : question
    query = question < 0 ? targetEnd : question &+ 1
    if bytes[target] != UInt8(ascii: "/") { try judgeOtherForm(bytes) }
    if hasEscapes { try judgeEscapes(bytes) }
  }

  /// Whether the version is HTTP/1.0; a larger minor one counts as 1.1 (RFC 9110 6.2).
  private static func isHTTP10(_ bytes: UnsafeRawPointer, from start: Int, to end: Int) throws(Refusal) -> Bool {
    guard end - start == 8, bytes.half(start) == 0x5054_5448, bytes[start + 4] == UInt8(ascii: "/"), bytes[start + 5].isDigit,
      bytes[start + 6] == UInt8(ascii: "."), bytes[start + 7].isDigit
    else { throw .requestLine }
    guard bytes[start + 5] == UInt8(ascii: "1") else { throw .version }
    return bytes[start + 7] == UInt8(ascii: "0")
  }

  /// The absolute form and `*`; CONNECT's authority form is not spoken (RFC 9112 3.2.2 to 3.2.4).
  @inline(never)
  private mutating func judgeOtherForm(_ bytes: UnsafeRawPointer) throws(Refusal) {
    if bytes.matches("*", from: target, to: targetEnd) {
      guard verb == .options else { throw .asterisk }
      return
    }
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
  /// The first byte in the range that means something in a target or may not stand in it: all but visible ASCII, and `#`, `%`, `?`.
  @inline(__always)
  fileprivate func skipPlain(from start: Int, to end: Int) -> Int {
    var at = start
    while at < end {
      let byte = self[at]
      if byte &- 0x40 >= 0x3F && (byte >= 0x40 || 0x7FFF_FFD6_0000_0000 &>> UInt64(byte) & 1 == 0) { break }
      at &+= 1
    }
    return at
  }

  /// What the escape at `offset` stands for; nil if there is no percent sign with two hex digits before `end`.
  func escaped(_ offset: Int, end: Int) -> UInt8? {
    guard offset + 2 < end, self[offset] == UInt8(ascii: "%"), let high = self[offset + 1].hexValue, let low = self[offset + 2].hexValue
    else { return nil }
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
      if bytes[at].isHostByte { at &+= 1 } else if bytes.escaped(at, end: end) != nil { at &+= 3 } else { break }
    }
    if at == start && !(at == end && mayBeEmpty) { return false }
  }
  guard at < end else { return true }
  guard bytes[at] == UInt8(ascii: ":") else { return false }
  at += 1
  while at < end && bytes[at].isDigit { at += 1 }
  return at == end
}
