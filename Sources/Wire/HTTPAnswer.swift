// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What a handler answers.

/// An HTTP answer: status, header lines, body. The wire adds `Connection: close`, `Content-Length` and `Date` itself.
public struct HTTPAnswer: Sendable {
  /// The status, 100 to 599; anything else is written as 500.
  public var status: Int
  /// The value of `Content-Type`, unless `headers` has one; nil or empty for none. It stands apart because nearly every answer has one and nothing else.
  public var contentType: String?
  /// The body. It is left out where HTTP has none: after HEAD and with the statuses 1xx, 204, 205 and 304.
  public var body: Body
  /// Header lines. Written in the order of their names in lower case, equal names in their own order. `Connection`, `Content-Length` and
  /// `Transfer-Encoding` are the wire's and are left out.
  public var headers: Headers
  /// Why it refuses, if it was made by `refusal(_:)`; for observers, not sent.
  public internal(set) var reason: String?
}

extension HTTPAnswer {
  /// An answer.
  public init(status: Int = 200, contentType: String? = nil, headers: Headers = Headers(), body: Body = .empty) {
    // Not field by field: the compiler then copies the finished value and destroys the first (200 instructions).
    self.init(status: status, contentType: contentType, body: body, headers: headers, reason: nil)
  }

  /// Text, as `text/plain; charset=utf-8`.
  public static func text(_ text: String, status: Int = 200) -> HTTPAnswer {
    HTTPAnswer(status: status, contentType: "text/plain; charset=utf-8", body: .text(text))
  }

  /// Bytes of any type.
  public static func bytes(_ bytes: Bytes, contentType: String, status: Int = 200) -> HTTPAnswer {
    HTTPAnswer(status: status, contentType: contentType, body: .bytes(bytes))
  }

  /// A status without a body.
  public static func status(_ status: Int) -> HTTPAnswer { HTTPAnswer(status: status) }

  /// The answer to a request that is not served: `{"error":"…","ok":false}`, with `Retry-After` where it is known.
  public static func refusal(_ refusal: Refusal) -> HTTPAnswer {
    var answer = HTTPAnswer(
      status: refusal.status, contentType: "application/json", body: .text(#"{"error":"\#(jsonEscaped(refusal.reason))","ok":false}"#))
    answer.reason = refusal.reason
    if let seconds = refusal.retryAfter { answer.headers.appendUnchecked("Retry-After", String(max(seconds, 0))) }
    return answer
  }
}

extension HTTPAnswer {
  /// The body as text, for tests: what is not UTF-8 is repaired, and a stream, which only a connection pulls, is empty.
  public var bodyText: String {
    switch body {
    case .empty, .stream: ""
    case .text(let text): text
    case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
    }
  }
}

/// An answer's body.
public enum Body: Sendable {
  /// None.
  case empty
  /// The UTF-8 of a text.
  case text(String)
  /// Bytes. Over `Output.copyLimit` they are sent from where they lie.
  case bytes(Bytes)
  /// A stream that is pulled. Its length is not known beforehand, so the end of the connection is its end.
  case stream(any OutputSource)
}

/// The inside of a JSON string (RFC 8259 7).
private func jsonEscaped(_ text: String) -> String {
  var escaped = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"", "\\": escaped += "\\\(scalar)"
    case "\u{0}"..."\u{1F}":
      let digits = String(scalar.value, radix: 16)
      escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: escaped.unicodeScalars.append(scalar)
    }
  }
  return escaped
}
