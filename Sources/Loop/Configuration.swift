// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

// Every limit and deadline of a server, with its reason.

/// A server's limits and deadlines. The defaults serve.
public struct Configuration: Sendable {
  /// How many loops, each a thread with its own listening sockets. 1: a loop handles tens of thousands of requests a second.
  public var loops = 1
  /// The deadlines of a connection.
  public var deadlines = Deadlines()
  /// How long a handler may take before the server answers 503 by itself.
  public var handlerDeadline: Duration = .seconds(60)
  /// How long `stop` waits for what runs.
  public var drain: Duration = .seconds(10)
  /// Connections at the same time, in all. Never above the descriptor limit less a reserve of 64.
  public var maximumConnections = 8192
  /// Connections at the same time from one address (an IPv6 /64 counts as one); nil: no such limit.
  public var maximumPerAddress: Int?
  /// Bytes of unfinished requests over 64 KiB, all connections together. Above it their reading pauses. 256 MiB.
  public var maximumBuffered = 256 << 20
  /// Networks that may connect; a peer outside is reset before any state exists. Empty: everyone. Unix-domain sockets do not check.
  public var allowed: [Network] = []
  /// Whether the listener waits for the first byte before it accepts (`TCP_DEFER_ACCEPT`), where the client speaks first.
  public var defersAccept = true
  /// Threads of the blocking pool.
  public var poolThreads = 8
  /// How much work may wait for the pool; beyond it requests are refused with 503.
  public var poolQueue = 1024
  /// Sees what happens. With nil, failed handlers, turns over 50 ms and notices are a line each on standard error, which is dropped where
  /// writing it would block; nothing else is said, and a request costs nothing for it.
  public var observer: (any Observer)?
  /// Stands in where there is no observer.
  package var fallback: any Observer = StandardErrorObserver()

  /// The defaults.
  public init() {}
}

/// The deadlines of a connection, each with a name of its own because each bounds something else.
public struct Deadlines: Sendable, Hashable {
  /// Silence before a request: from accept, or from the last answer on a connection that stays open. Then a silent close.
  public var idle: Duration = .seconds(30)
  /// A whole request, counted from accept (from its first byte on later requests) and pushed back by nothing. Then 408.
  public var arrival: Duration = .seconds(30)
  /// While an answer is sent: the window in which the client must take at least 30 KiB. Then the connection is cut.
  public var stall: Duration = .seconds(30)
  /// After the answer: how long the client may send nothing and not close.
  public var linger: Duration = .seconds(5)
  /// After the answer: how long in all.
  public var lingerInAll: Duration = .seconds(30)

  /// The defaults.
  public init() {}
}
