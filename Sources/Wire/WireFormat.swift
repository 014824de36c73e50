// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The first of the two plug points: one protocol on the wire. The second is Handler.

/// One protocol on the wire: how to tell a whole request from the bytes so far, and how to write an answer. Pure: no I/O and no clock.
public protocol WireFormat: Sendable {
  /// What a client asks.
  associatedtype Request: Sendable
  /// What it is told.
  associatedtype Answer: Sendable

  /// How a connection of this wire goes.
  var conversation: Conversation { get }

  /// What the bytes so far are. Pure: the same bytes give the same outcome.
  /// - Parameters:
  ///   - bytes: Everything received and not consumed yet.
  ///   - resuming: What an earlier call said of a shorter beginning of the same bytes. It may only save work.
  func parse(_ bytes: RawSpan, resuming: Need?) -> Outcome<Request>

  /// Where in the parsed bytes the request's body lies; empty if it has none.
  func bodyRange(of request: Request) -> Range<Int>

  /// Gives the request its body: the bytes of `bodyRange`, in memory that is not written again.
  func attach(_ body: Bytes, to request: inout Request)

  /// Writes one answer.
  /// - Parameters:
  ///   - answer: What to say.
  ///   - request: What it answers; nil if no request was made out.
  ///   - output: Where to.
  func write(_ answer: Answer, to request: Request?, into output: inout Output)

  /// Whether the answer to `request` leaves without its body, as to HTTP's HEAD. Asked where a handler answers later: if a deadline then
  /// answers in its stead, the request itself is no longer at hand.
  func omitsBody(for request: Request) -> Bool

  /// Writes an answer to a request that is no longer at hand, or was never made out.
  func write(_ answer: Answer, omittingBody: Bool, into output: inout Output)

  /// Writes the leave to go on that `Need.wantsContinue` asks for.
  func writeContinue(into output: inout Output)

  /// The answer that refuses a request with a reason.
  func refusal(_ refusal: Refusal) -> Answer

  /// The status of an answer, for observers; 0 where the protocol has none.
  func status(of answer: Answer) -> Int

  /// Why an answer refuses, for observers; nil if it does not, or does not say.
  func refusal(of answer: Answer) -> Refusal?

  /// What an observer may show of a request: for HTTP `GET /path?query`. Bytes a peer sent.
  func label(of request: Request) -> Bytes
}

extension WireFormat {
  /// False.
  @inlinable public func omitsBody(for request: Request) -> Bool { false }
  /// Writes it to no request.
  @inlinable public func write(_ answer: Answer, omittingBody: Bool, into output: inout Output) {
    write(answer, to: nil, into: &output)
  }
  /// No body.
  @inlinable public func bodyRange(of request: Request) -> Range<Int> { 0..<0 }
  /// Nothing: the request has no body.
  @inlinable public func attach(_ body: Bytes, to request: inout Request) {}
  /// Nothing.
  @inlinable public func writeContinue(into output: inout Output) {}
  /// 0.
  @inlinable public func status(of answer: Answer) -> Int { 0 }
  /// Nil.
  @inlinable public func refusal(of answer: Answer) -> Refusal? { nil }
  /// Empty.
  @inlinable public func label(of request: Request) -> Bytes { Bytes() }
}

/// How a connection of a wire goes.
public struct Conversation: Sendable, Equatable {
  /// Whether the connection stays open for more requests after an answer.
  public var staysOpen: Bool
  /// Whether nothing is to be sent before the client has spoken; the listener then defers accepting (`TCP_DEFER_ACCEPT`).
  public var clientSpeaksFirst: Bool

  /// A conversation.
  public init(staysOpen: Bool, clientSpeaksFirst: Bool = true) {
    self.staysOpen = staysOpen
    self.clientSpeaksFirst = clientSpeaksFirst
  }

  /// One request, one answer, close.
  public static let oneRequest = Conversation(staysOpen: false)
  /// Requests one after another; pipelined ones are answered in order.
  public static let manyRequests = Conversation(staysOpen: true)
}
