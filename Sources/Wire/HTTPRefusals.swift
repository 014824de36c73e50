// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Every reason for which the HTTP parser refuses a request, in the order of judgement, each with its status and its sentence. RFC numbers
// are of RFC 9112 where not said otherwise.

extension Refusal {
  // Before and in the request line (2.2, 3).
  static var firstByte: Refusal { Refusal(400, "the first byte cannot begin a request") }
  static var controlByte: Refusal { Refusal(400, "a control byte in the request head") }
  static var carriageReturnAlone: Refusal { Refusal(400, "a CR without its LF") }
  static var lineFeedAlone: Refusal { Refusal(400, "a line ends in LF alone") }
  static var requestLine: Refusal { Refusal(400, "the request line is not METHOD PATH HTTP/1.x") }
  static var method: Refusal { Refusal(400, "the method is not a token") }
  static var version: Refusal { Refusal(505, "only HTTP/1.x is spoken here") }
  static var connect: Refusal { Refusal(501, "this is not a proxy; CONNECT is not spoken here") }

  // Target (3.2).
  static var targetByte: Refusal { Refusal(400, "the target has a byte that must be percent-encoded") }
  static var targetForm: Refusal { Refusal(400, "the target is neither a path nor an http:// URL") }
  static var asterisk: Refusal { Refusal(400, "the target * belongs to OPTIONS only") }
  static var authority: Refusal { Refusal(400, "the target's authority is not a host and port") }
  static var escape: Refusal { Refusal(400, "a percent escape in the target is not two hex digits") }
  static var escapedText: Refusal { Refusal(400, "the target's escapes are not UTF-8") }
  static var escapedNUL: Refusal { Refusal(400, "the target carries an escaped NUL") }
  static var escapedSlash: Refusal { Refusal(400, "the path carries an escaped slash") }

  // Size of the head.
  static func requestLineTooLong(_ limit: Int) -> Refusal { Refusal(414, "the request line is over \(limit) bytes") }
  static func headTooLong(_ limit: Int) -> Refusal { Refusal(413, "the request head is over \(limit) bytes") }

  // Header lines (5).
  static var leadingBlank: Refusal { Refusal(400, "a header line begins with white space") }
  static var noColon: Refusal { Refusal(400, "a header line has no colon") }
  static var fieldName: Refusal { Refusal(400, "a header name is not a token") }
  static var headText: Refusal { Refusal(400, "the request head is not UTF-8") }

  // Host (3.2).
  static var hostMissing: Refusal { Refusal(400, "an HTTP/1.1 request needs a Host") }
  static var hostRepeated: Refusal { Refusal(400, "there is more than one Host") }
  static var host: Refusal { Refusal(400, "Host is not a host and port") }

  // Transfer-Encoding (6.1, 6.3).
  static var codingInHTTP10: Refusal { Refusal(400, "an HTTP/1.0 request cannot carry Transfer-Encoding") }
  static var coding: Refusal { Refusal(400, "chunked bodies are not spoken here; send Content-Length") }
  static var codingAndLength: Refusal { Refusal(400, "Transfer-Encoding and Content-Length do not go together") }

  // Content-Length (RFC 9110 8.6), size of the body, Expect (RFC 9110 10.1.1).
  static var lengthRepeated: Refusal { Refusal(400, "there is more than one Content-Length") }
  static var length: Refusal { Refusal(400, "Content-Length is not a number") }
  static var expectation: Refusal { Refusal(417, "the only expectation known here is 100-continue") }

  /// `digits` are the announced length without leading zeros; an absurd number of them is not said back.
  static func bodyTooLong(digits: UnsafeRawBufferPointer, limit: Int) -> Refusal {
    if digits.count > 20 { return Refusal(413, "the body is too long, over \(limit)") }
    return Refusal(413, "the body is \(String(decoding: digits, as: UTF8.self)) bytes, over \(limit)")
  }
}
