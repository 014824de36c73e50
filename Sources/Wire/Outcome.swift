// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What a parser may say about the bytes so far: not enough, a request, or a refusal. Nothing else.

/// What a parser makes of all bytes received so far.
///
/// Once it is not `incomplete`, more bytes never change it.
public enum Outcome<Request> {
  /// A beginning of a request; `Need` says what would help.
  case incomplete(Need)
  /// A whole request, which takes the first `consumed` bytes. What follows was not looked at.
  case complete(Request, consumed: Int)
  /// Never a request, whatever follows.
  case invalid(Refusal)
}

extension Outcome: Sendable where Request: Sendable {}

/// What an incomplete request waits for. Handed back with the next, longer beginning of the same bytes, it saves work and
/// changes nothing else.
public struct Need: Sendable, Equatable {
  /// How many more bytes are needed before another call can say anything new. At least 1.
  public var more: Int
  /// How many bytes, counted from the first, need not be looked at again.
  public var scanned: Int
  /// The client waits for leave to send its body (RFC 9110 10.1.1): true while the head is whole and no body byte is in.
  public var wantsContinue: Bool
  /// Whether what is missing will only be counted: `scanned` is then the length of the whole request.
  public var isCounting: Bool

  /// A need for `more` bytes.
  @inlinable
  public init(more: Int, scanned: Int = 0, wantsContinue: Bool = false, isCounting: Bool = false) {
    self.more = more
    self.scanned = scanned
    self.wantsContinue = wantsContinue
    self.isCounting = isCounting
  }
}

/// Why a request is not served, with the sentence its client is told. It never quotes bytes of the request.
///
/// The parser, the connection, the router and a handler (by throwing it) all refuse with this one type.
public struct Refusal: Error, Sendable, Hashable {
  /// HTTP's status for it (RFC 9110 15); other wires may ignore it.
  public var status: Int
  /// One sentence for the client.
  public var reason: String
  /// Seconds after which to try again, where that is known (RFC 9110 10.2.3).
  public var retryAfter: Int?

  /// The two classes of the contract.
  public enum Class: Sendable {
    /// A limit of size was passed.
    case tooLarge
    /// Anything else.
    case badRequest
  }

  /// A refusal with a status and a sentence.
  public init(_ status: Int, _ reason: String, retryAfter: Int? = nil) {
    self.status = status
    self.reason = reason
    self.retryAfter = retryAfter
  }

  /// Whether a limit of size was passed (413, 414, 431).
  public var refusalClass: Class { status == 413 || status == 414 || status == 431 ? .tooLarge : .badRequest }
}

// Refusals that are not the parser's: the connection says them when a limit of its own is reached.
extension Refusal {
  /// The arrival deadline passed with something received (RFC 9110 15.5.9).
  public static let arrivalTimeout = Refusal(408, "the request did not arrive in time")
  /// The handler did not answer before its deadline.
  public static let handlerTimeout = Refusal(503, "the answer was not ready in time")
  /// The server is stopping and the handler was still running at the drain deadline.
  public static let stopping = Refusal(503, "the server is stopping")
  /// As many connections are open as the server allows.
  public static let tooManyConnections = Refusal(503, "too many connections; try again later", retryAfter: 1)
  /// As many connections are open from this address as the server allows.
  public static let tooManyFromAddress = Refusal(503, "too many connections from this address", retryAfter: 1)
  /// The queue of the blocking pool is full.
  public static let poolFull = Refusal(503, "too much work is waiting; try again later", retryAfter: 1)
  /// A handler threw; the reason is in the log and not here.
  public static let handlerFailed = Refusal(500, "the server could not answer this request")
}
