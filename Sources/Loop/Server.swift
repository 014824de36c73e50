// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// SKELETON: the shapes others build against. The real one follows.

/// A server: one wire and one handler, on one or more loops.
public final class Server: Sendable {
  /// A server that speaks `wire` and answers with `handler`. Nothing is opened before `start` or `run`.
  public init<Wire: WireFormat, Answering: Handler>(_ wire: Wire, handler: Answering, configuration: Configuration = Configuration())
  where Answering.Request == Wire.Request, Answering.Answer == Wire.Answer {}

  /// Listens on every endpoint and returns when all of them do.
  @discardableResult
  public func start(on endpoints: Endpoint...) async throws -> Server { self }
  /// The same, from a list.
  @discardableResult
  public func start(on endpoints: [Endpoint]) async throws -> Server { self }
  /// Starts, and returns when the server has been stopped (or its task cancelled, which stops it gracefully).
  public func run(on endpoints: Endpoint...) async throws {}
  /// Where it listens, in the order of the endpoints; empty before `start`.
  public var addresses: [BoundAddress] { [] }
  /// Stops gracefully: no new connections, what runs is finished until the drain deadline. Returns when every loop has ended.
  @discardableResult
  public func stop() async -> StopReport { StopReport() }
  /// Ends a graceful stop at once (a second signal). Any thread.
  public func cut() {}
  /// A moment's view. Any thread.
  public var status: ServerStatus { ServerStatus() }
  /// Peers connecting from this local TCP port are let past gate and limits: the server's own probe. Any thread.
  public func exempt(port: UInt16) {}
  /// Takes that back.
  public func endExemption(port: UInt16) {}
  /// Opens the listening socket at `address` anew, if it is dead. Any thread.
  public func reopen(_ address: BoundAddress) async throws {}
}

/// What `stop` found.
public struct StopReport: Sendable, Hashable {
  /// Answered 503 because their handler still ran at the drain deadline.
  public var cutHandlers = 0
  /// Tasks that did not end and were given up.
  public var abandonedTasks = 0
  /// Accepted from the kernel's queue after the stop began.
  public var acceptedLate = 0
}

/// A moment's view of a server.
public struct ServerStatus: Sendable {
  /// Connections open now.
  public var openConnections = 0
  /// Bytes of unfinished requests held now, as far as they are counted against the budget.
  public var bufferedBytes = 0
  /// One entry for each loop.
  public var loops: [LoopStatus] = []
}

/// A moment's view of one loop.
public struct LoopStatus: Sendable {
  /// When it last came round (it does at least once a second), as CLOCK_MONOTONIC nanoseconds.
  public var lastTurn: UInt64 = 0
  /// Its longest turn so far.
  public var longestTurn: Duration = .zero
  /// Connections it has accepted so far.
  public var accepted = 0
  /// Connections open on it now.
  public var openConnections = 0
}
