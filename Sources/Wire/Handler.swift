// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The second plug point: what answers. And what it is told about the connection, without ever seeing a socket.

/// What answers requests: at once, later by a task on the loop, or by a task on the blocking pool.
public protocol Handler<Request, Answer>: Sendable {
  /// What is asked.
  associatedtype Request: Sendable
  /// What is told.
  associatedtype Answer: Sendable

  /// Answers, or says how the answer will come. Called on a loop's thread, so it must not block.
  ///
  /// The context is handed over, so that a handler that keeps it need not copy it.
  func respond(to request: Request, in context: consuming Context) -> Reply<Answer>

  /// Throws what is wrong with the handler before a server starts with it (a router's ambiguous patterns).
  func validate() throws
}

extension Handler {
  /// Nothing is wrong.
  public func validate() throws {}
}

/// How an answer comes.
public enum Reply<Answer: Sendable>: Sendable {
  /// What a task does for an answer. It runs where its caller does: every hop to another executor and back is asked of the task's record
  /// of its executor, under a lock.
  public typealias Work = nonisolated(nonsending) @Sendable () async throws -> Answer

  /// It is here.
  case now(Answer)
  /// A handler failed before there was an answer: a `Refusal` is answered as it is, anything else as a 500 whose detail is only logged.
  case failed(any Error)
  /// A task on the loop's thread makes it. It starts at once, without a hop.
  case later(Terms, Work)
  /// A task on the blocking pool makes it.
  case offloaded(Terms, Work)
}

/// The terms on which a later answer is waited for.
public struct Terms: Sendable {
  /// How long to wait before answering 503 by itself; nil: the server's default.
  public var deadline: Duration?
  /// Whether the handler waits for something to happen, so that the client's end of stream means it left and cancels it.
  public var waits: Bool

  /// Terms; by default the server's deadline, and a half-closed client still gets its answer.
  public init(deadline: Duration? = nil, waits: Bool = false) {
    self.deadline = deadline
    self.waits = waits
  }
}

/// What a handler knows of the connection its request came by. Any thread may use it, also after the connection is gone.
public struct Context: Sendable {
  /// The connection; a test gives one of its own, or none.
  public var link: (any ConnectionLink)?
  /// Who asks.
  public var peer: Peer
  /// Which request of the connection object this is; handed back in every call, so that a late one is not taken for a new one.
  public var ticket: UInt64

  /// Has a waiting stream asked again.
  public func wake() { link?.wake(ticket) }

  /// Runs `body` once after `delay`, on the loop's thread, unless the request is over by then. Returns at once.
  public func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) { link?.after(delay, ticket, body) }

  /// Says for whom the peer asked (a proxy's client), for observers.
  public func setOrigin(_ address: PeerAddress) { link?.setOrigin(address, ticket) }
}

extension Context {
  /// A context; the loop makes one for each request, and a test may.
  public init(peer: Peer = Peer(), link: (any ConnectionLink)? = nil, ticket: UInt64 = 0) {
    // Not field by field: the compiler then copies the finished value and destroys the first.
    self.init(link: link, peer: peer, ticket: ticket)
  }
}

/// The connection, as far as a handler may use it. Any thread; each call with a ticket that is over does nothing.
public protocol ConnectionLink: AnyObject, Sendable {
  /// See `Context.wake()`.
  func wake(_ ticket: UInt64)
  /// See `Context.after(_:_:)`.
  func after(_ delay: Duration, _ ticket: UInt64, _ body: @escaping @Sendable () -> Void)
  /// See `Context.setOrigin(_:)`. Only on the loop's thread.
  func setOrigin(_ address: PeerAddress, _ ticket: UInt64)
}

/// A handler made of a closure that answers at once.
public struct PlainHandler<Request: Sendable, Answer: Sendable>: Handler {
  @usableFromInline let answer: @Sendable (Request) throws -> Answer

  /// Answers with what `answer` returns.
  @inlinable
  public init(_ answer: @escaping @Sendable (Request) throws -> Answer) { self.answer = answer }

  /// Calls the closure.
  @inlinable
  public func respond(to request: Request, in context: Context) -> Reply<Answer> {
    do { return .now(try answer(request)) } catch { return .failed(error) }
  }
}

/// A handler made of a closure that answers later, in a task on the loop.
public struct AsyncHandler<Request: Sendable, Answer: Sendable>: Handler {
  @usableFromInline let answer: nonisolated(nonsending) @Sendable (Request) async throws -> Answer

  /// Answers with what `answer` returns.
  @inlinable
  public init(_ answer: nonisolated(nonsending) @escaping @Sendable (Request) async throws -> Answer) { self.answer = answer }

  /// Starts the closure.
  @inlinable
  public func respond(to request: Request, in context: Context) -> Reply<Answer> {
    .later(Terms()) { try await answer(request) }
  }
}
