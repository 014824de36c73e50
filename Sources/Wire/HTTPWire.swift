// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// HTTP/1.x as a wire: one request with at most a Content-Length body, one answer, close. What is not plainly that is refused with the
// reason, never guessed at.

/// HTTP/1.1 and 1.0 (RFC 9112), one request per connection.
public struct HTTPWire: WireFormat {
  /// What a client asks.
  public typealias Request = HTTPRequest
  /// What it is told.
  public typealias Answer = HTTPAnswer

  /// Most bytes before the empty line that ends a head. 16 KiB: what the common clients and proxies stay far below.
  public var maximumHead = 16384
  /// Most bytes of a body. 32 MiB.
  public var maximumBody = 33_554_432

  /// The wire with its default limits.
  public init() {}

  /// One request, one answer, close.
  public var conversation: Conversation { .oneRequest }

  /// What the bytes so far are. See `WireFormat.parse`.
  ///
  /// While a body is under way `Need.more` is what is missing of it and `Need.scanned` the length of the whole request: a call that comes
  /// too early costs nothing, a head is not looked at again.
  public func parse(_ bytes: RawSpan, resuming: Need?) -> Outcome<HTTPRequest> {
    bytes.withUnsafeBytes { buffer in
      guard let start = buffer.baseAddress, buffer.count > 0 else { return .incomplete(Need(more: 1)) }
      do throws(Refusal) {
        return try parse(start, count: buffer.count, resuming: resuming)
      } catch {
        return .invalid(error)
      }
    }
  }

  @inline(__always)
  private func parse(_ bytes: UnsafeRawPointer, count: Int, resuming: Need?) throws(Refusal) -> Outcome<HTTPRequest> {
    var from = 0
    if let need = resuming {
      if !need.isCounting {
        from = need.scanned
      } else if need.scanned > count && !need.wantsContinue {
        return .incomplete(Need(more: need.scanned - count, scanned: need.scanned, isCounting: true))
      }
    }
    // Larger limits than these would not fit the table's 32-bit offsets, or the sums below.
    let headLimit = min(max(maximumHead, 0), 1 << 30)
    var scan = HeadScan()
    try scan.read(bytes, count: count, from: from, limit: headLimit)
    if scan.end > 0 && !scan.hasLine {
      // The head is whole and this scan has seen only its last part. Once more from the start, which also undoes a `from` that was wrong.
      scan = HeadScan()
      try scan.read(bytes, count: count, from: 0, limit: headLimit)
    }
    guard scan.end > 0 else { return .incomplete(Need(more: 1, scanned: scan.scanned)) }

    let block = try HeadBuilder.build(bytes, scan, bodyLimit: min(max(maximumBody, 0), 1 << 48))
    let request = HTTPRequest(block: block)
    let length = request.facts.contentLength
    let missing = scan.end + length - count
    guard missing > 0 else { return .complete(request, consumed: scan.end + length) }
    let wantsContinue = request.facts.expectsContinue && count == scan.end
    return .incomplete(Need(more: missing, scanned: scan.end + length, wantsContinue: wantsContinue, isCounting: true))
  }

  /// Where the body lies behind the head.
  public func bodyRange(of request: HTTPRequest) -> Range<Int> {
    let facts = request.facts
    return facts.received..<(facts.received &+ facts.contentLength)
  }

  /// Gives the request its body.
  public func attach(_ body: Bytes, to request: inout HTTPRequest) { request.body = body }

  /// Parses bytes that are all there, body included.
  public func request(in bytes: [UInt8]) -> Outcome<HTTPRequest> {
    let outcome = bytes.withUnsafeBytes { parse($0.bytes, resuming: nil) }
    guard case .complete(var request, let consumed) = outcome else { return outcome }
    let range = bodyRange(of: request)
    if !range.isEmpty { request.body = bytes.withUnsafeBytes { Bytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) } }
    return .complete(request, consumed: consumed)
  }

  /// Writes `100 Continue` (RFC 9110 15.2.1).
  public func writeContinue(into output: inout Output) { output.append(literal: "HTTP/1.1 100 Continue\r\n\r\n") }

  /// The refusal as JSON.
  public func refusal(_ refusal: Refusal) -> HTTPAnswer { .refusal(refusal) }

  /// The status that is written.
  public func status(of answer: HTTPAnswer) -> Int { 100...599 ~= answer.status ? answer.status : 500 }

  /// What it refuses for, also where a router or a middleware added to it (405 and its `Allow`).
  public func refusal(of answer: HTTPAnswer) -> Refusal? {
    answer.reason.map { Refusal(answer.status, $0, retryAfter: answer.headers["Retry-After"].flatMap { Int($0) }) }
  }

  /// Method and target, as they were sent.
  public func label(of request: HTTPRequest) -> Bytes { request.label }
}
