// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// A parsed request. Its head is one block that every copy shares; Strings and dictionaries are made only when asked for.

/// An HTTP/1.x request: method, target, header lines and body (RFC 9112).
///
/// `@unchecked Sendable` is right because the block is written only before the first request over it exists.
public struct HTTPRequest: @unchecked Sendable {
  let block: HeadBlock
  /// The body, empty if there is none: the connection's own buffer, handed over. At most `HTTPWire.maximumBody` bytes.
  public var body = Bytes()

  init(block: HeadBlock) { self.block = block }

  @inline(__always)
  var facts: HeadFacts { _read { yield block.facts.pointee } }

  /// The method as it was sent; methods are case-sensitive.
  public var method: String { text(0, facts.method) }
  /// The method to switch on, without a String.
  public var verb: HTTPVerb { facts.verb }
  /// The target as it was sent, escapes and all.
  public var target: Bytes { slice(facts.target, facts.targetEnd) }
  /// Whether the client speaks HTTP/1.0 only.
  public var isHTTP10: Bool { facts.isHTTP10 }
  /// The path, percent-decoded once; `*` for the asterisk form, `/` for an absolute form without a path. Dot segments and empty segments
  /// are kept as they came: a route that maps paths to files must check them.
  public var path: String { text(facts.path, facts.pathEnd) }
  /// Method and target as they were sent, with the space between them.
  public var label: Bytes { slice(0, facts.targetEnd) }

  /// Calls `body` with the decoded path's bytes, which are valid only inside the call. No String is made.
  @inlinable
  public func withPath<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    defer { withExtendedLifetime(self) {} }
    return try body(pathBytes)
  }

  /// Calls `body` with the bytes of the host asked for and its port, as Host or an absolute target says them; they are valid only inside
  /// the call. nil where HTTP/1.0 says none.
  @inlinable
  public func withHost<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    defer { withExtendedLifetime(self) {} }
    guard let host = hostBytes else { return nil }
    return try body(host)
  }

  /// Valid while this request is alive.
  @usableFromInline
  var hostBytes: UnsafeRawBufferPointer? {
    guard facts.host >= 0 else { return nil }
    let field = block.table[facts.host]
    return bytes(Int(field.value), Int(field.valueEnd))
  }

  /// Valid while this request is alive.
  @usableFromInline
  var pathBytes: UnsafeRawBufferPointer { bytes(facts.path, facts.pathEnd) }

  @inline(__always)
  func bytes(_ start: Int, _ end: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: block.text + start, count: end &- start)
  }

  func text(_ start: Int, _ end: Int) -> String {
    defer { withExtendedLifetime(block) {} }
    return String(decoding: bytes(start, end), as: UTF8.self)
  }

  func slice(_ start: Int, _ end: Int) -> Bytes {
    Bytes(unsafeStart: block.text + start, count: end - start, owner: block)
  }
}

extension HTTPRequest {
  /// A request made by hand, for calling a router in a test: written as bytes and parsed like one from a client. A missing `Host` and, for a
  /// body, a missing `Content-Length` are added.
  public init(
    method: String = "GET", target: String, headers: [(String, String)] = [], body: Bytes = Bytes()
  ) throws(Refusal) {
    var text = "\(method) \(target) HTTP/1.1\r\n"
    var names = Headers()
    for (name, value) in headers {
      text += "\(name): \(value)\r\n"
      names.appendUnchecked(name, value)
    }
    if names["host"] == nil { text += "Host: localhost\r\n" }
    if names["content-length"] == nil && body.count > 0 { text += "Content-Length: \(body.count)\r\n" }
    let head = Array((text + "\r\n").utf8)
    switch HTTPWire().request(in: head + Array(body)) {
    case .complete(let request, let consumed) where consumed == head.count + body.count: self = request
    case .invalid(let refusal): throw refusal
    case .complete, .incomplete: throw Refusal(400, "the parts do not make one request")
    }
  }
}
