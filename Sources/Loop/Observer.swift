// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// What a server lets its user see. A log and metrics are built on this and on nothing else.

/// Sees what happens in a server. Called on the loop that it happens on, so it must be quick and must not block. What an observer does
/// not implement, it does not see.
///
/// One method for each event, and not one value for all: three events a request, each copied into an enum of 150 bytes, were a tenth of
/// a request's cost. A class, because any other value would be copied for each call.
public protocol Observer: AnyObject, Sendable {
  /// A connection was accepted.
  func accepted(_ peer: Peer)
  /// A request was answered and its bytes handed to the kernel, or a refusal was.
  func answered(_ answer: AnswerRecord)
  /// A connection is over.
  func closed(_ peer: Peer, _ reason: CloseReason)
  /// A connection was reset before any state existed: the gate does not let its network in, or a limit that the wire cannot say.
  func turnedAway(_ address: PeerAddress, _ reason: TurnAwayReason)
  /// A handler threw, and its client was told 500.
  func handlerFailed(_ peer: Peer, _ error: any Error)
  /// One turn of a loop took longer than 50 ms: something in it blocks.
  func turnWasLong(loop: Int, _ duration: Duration)
  /// Something that wants an operator's eye, once per spell: descriptors ran out, a listener was reopened.
  func notice(_ text: String)
}

extension Observer {
  /// Nothing.
  public func accepted(_ peer: Peer) {}
  /// Nothing.
  public func answered(_ answer: AnswerRecord) {}
  /// Nothing.
  public func closed(_ peer: Peer, _ reason: CloseReason) {}
  /// Nothing.
  public func turnedAway(_ address: PeerAddress, _ reason: TurnAwayReason) {}
  /// Nothing.
  public func handlerFailed(_ peer: Peer, _ error: any Error) {}
  /// Nothing.
  public func turnWasLong(loop: Int, _ duration: Duration) {}
  /// Nothing.
  public func notice(_ text: String) {}
}

/// One answered request.
public struct AnswerRecord: Sendable {
  /// Who asked.
  public var peer: Peer
  /// For whom, if a handler said so (`Context.setOrigin`).
  public var origin: PeerAddress?
  /// What was asked, as the wire labels it; empty if no request was made out. Bytes a peer sent.
  public var label: Bytes
  /// The answer's status; 0 where the wire has none.
  public var status: Int
  /// The answer's bytes, head and all.
  public var bytes: Int
  /// Why it was refused, where it was.
  public var refusal: Refusal?
  /// From the first byte of the request (on a new connection: from accept) to the answer's last byte handed to the kernel.
  public var duration: Duration
}

extension AnswerRecord {
  /// A record; a server makes one for each answer, and a test of an observer may.
  public init(
    peer: Peer, origin: PeerAddress? = nil, label: Bytes, status: Int, bytes: Int, duration: Duration, refusal: Refusal? = nil
  ) {
    // Not field by field: the compiler then copies the finished value and destroys the first.
    self.init(peer: peer, origin: origin, label: label, status: status, bytes: bytes, refusal: refusal, duration: duration)
  }
}

/// How a connection ended.
public enum CloseReason: String, Sendable, CaseIterable {
  /// After its answer, in order.
  case done
  /// The client closed without an unfinished request.
  case clientClosed
  /// The client closed in the middle of a request, which was dropped.
  case cutRequest
  /// Nothing came within the idle deadline.
  case idle
  /// A request did not arrive in time (and 408 was said).
  case arrival
  /// The client took too little of its answer in time.
  case stall
  /// The client did not close within the linger deadline.
  case linger
  /// The connection was reset or failed.
  case reset
  /// The server stopped.
  case stopped
}

/// Why a connection was turned away.
public enum TurnAwayReason: String, Sendable, CaseIterable {
  /// Its network is not among the allowed ones.
  case gate
  /// A limit of connections, on a wire that speaks only when spoken to or cannot say it.
  case limit
  /// The process is out of descriptors.
  case descriptors
}
