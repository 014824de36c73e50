// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc
public import Wire

// A server from the outside: start, addresses, status, stop. What runs on each loop is a Worker's.

/// A server: one wire and one handler, on one or more loops, each a thread of its own. It may be started once. Any thread.
public final class Server: Sendable {
  let exchange: Exchange
  let configuration: Configuration
  let admission: Admission
  let budget: Budget
  let pool: BlockingPool
  let state = Locked(State())

  struct State {
    var phase = Phase.new
    var workers: [Worker] = []
    var groups: [ListeningGroup] = []
    var endpoints: [Endpoint] = []
    /// `stop` was called while it started.
    var mustStop = false
    /// Who waits for the end.
    var waiting: [CheckedContinuation<Void, Never>] = []
    var report = StopReport()
  }

  enum Phase { case new, starting, running, stopping, stopped }

  /// A server that speaks `wire` and answers with `handler`. Nothing is opened before `start` or `run`.
  @inlinable
  public convenience init<Format: WireFormat, Answering: Handler>(
    _ wire: Format, handler: Answering, configuration: Configuration = Configuration()
  ) where Answering.Request == Format.Request, Answering.Answer == Format.Answer {
    self.init(exchange: Exchange(wire, handler), configuration: configuration)
  }

  /// A server that answers at once, with what a closure returns. The closure runs on a loop's thread and must not block.
  @inlinable
  public convenience init<Format: WireFormat>(
    _ wire: Format, configuration: Configuration = Configuration(),
    handler: @escaping @Sendable (Format.Request) throws -> Format.Answer
  ) {
    self.init(wire, handler: PlainHandler(handler), configuration: configuration)
  }

  /// A server that answers with what an async closure returns. The closure runs on a loop's thread between its suspensions.
  @inlinable
  public convenience init<Format: WireFormat>(
    _ wire: Format, configuration: Configuration = Configuration(),
    handler: nonisolated(nonsending) @escaping @Sendable (Format.Request) async throws -> Format.Answer
  ) {
    self.init(wire, handler: AsyncHandler(handler), configuration: configuration)
  }

  @usableFromInline
  init(exchange: Exchange, configuration: Configuration) {
    self.exchange = exchange
    self.configuration = configuration
    admission = Admission(
      maximum: max(1, min(configuration.maximumConnections, connectionLimit())),
      perAddress: configuration.maximumPerAddress, allowed: configuration.allowed)
    budget = Budget(maximum: configuration.maximumBuffered)
    pool = BlockingPool(threads: configuration.poolThreads, queue: configuration.poolQueue)
  }

  // MARK: Start

  /// Listens on every endpoint and returns when all of them do; on an error nothing is left open. A started server runs until `stop`,
  /// also when nobody holds it.
  /// - Throws: `ListenError`, or what the handler's `validate` throws.
  @discardableResult
  public func start(on endpoints: Endpoint...) async throws -> Server { try await start(on: endpoints) }

  /// The same, from a list.
  @discardableResult
  public func start(on endpoints: [Endpoint]) async throws -> Server {
    try exchange.validate()
    let isNew = state.withLock { state in
      guard state.phase == .new else { return false }
      state.phase = .starting
      return true
    }
    guard isNew else { throw ServerError.startedTwice }
    do {
      let (workers, groups) = try await pool.run { [self] in try open(endpoints) }
      let mustStop = state.withLock { state in
        state.workers = workers
        state.groups = groups
        state.endpoints = endpoints
        state.phase = .running
        return state.mustStop
      }
      if mustStop { await stop() }
    } catch {
      let waiting = state.withLock { state in
        state.phase = .new
        defer { state.waiting.removeAll() }
        return state.waiting
      }
      for continuation in waiting { continuation.resume() }
      throw error
    }
    return self
  }

  /// Blocks: names are looked up.
  private func open(_ endpoints: [Endpoint]) throws -> ([Worker], [ListeningGroup]) {
    let groups = try endpoints.flatMap { try open($0) }
    let workers = try (0..<max(1, configuration.loops)).map { index in
      guard let worker = Worker(index: index, server: self) else {
        throw ListenError.system(call: "epoll_create", address: "loop \(index)", errno: errno)
      }
      return worker
    }
    let stations = workers.map(\.station)
    for group in groups { assign(group, to: workers, stations) }
    for (index, worker) in workers.enumerated() where !worker.start() {
      for started in workers[..<index] { started.loop.submit { started.loop.end() } }
      throw ListenError.system(call: "pthread_create", address: "loop \(index)", errno: EAGAIN)
    }
    return (workers, groups)
  }

  func open(_ endpoint: Endpoint) throws(ListenError) -> [ListeningGroup] {
    try ListeningSocket.open(
      endpoint, loops: max(1, configuration.loops), deferAccept: configuration.defersAccept && exchange.conversation.clientSpeaksFirst
    ) { configuration.watching.notice($0) }
  }

  /// Reuse-port siblings go to one loop each; a single socket is the first loop's, which hands out.
  func assign(_ group: ListeningGroup, to workers: [Worker], _ stations: [Station]) {
    for (worker, descriptor) in zip(workers, group.descriptors) {
      worker.listen(on: descriptor, of: group.address, crew: group.descriptors.count == 1 ? stations : [worker.station])
    }
  }

  /// Starts, and returns when the server has been stopped. Cancelling the task stops it gracefully.
  public func run(on endpoints: Endpoint...) async throws { try await run(on: endpoints) }

  /// The same, from a list.
  public func run(on endpoints: [Endpoint]) async throws {
    try await start(on: endpoints)
    await withTaskCancellationHandler {
      await finished()
    } onCancel: {
      Task { await stop() }
    }
  }

  // MARK: Looking at it

  /// Where it listens, in the order of the endpoints; empty before `start`.
  public var addresses: [BoundAddress] { state.withLock { $0.groups.map(\.address) } }

  /// A moment's view.
  public var status: ServerStatus {
    let workers = state.withLock { $0.workers }
    return ServerStatus(
      openConnections: admission.openConnections, bufferedBytes: budget.usedBytes, maximumConnections: admission.maximum,
      loops: workers.map(\.status))
  }

  // MARK: The server's own probe

  /// The peer with this address and port is let past gate and limits: the server's own probe.
  public func exempt(_ address: PeerAddress) { admission.exempt(address) }

  /// Takes that back.
  public func endExemption(_ address: PeerAddress) { admission.endExemption(address) }
}

/// A server used in a way it cannot be.
public enum ServerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// `start` or `run` was called a second time.
  case startedTwice

  /// One sentence.
  public var description: String { "a server can be started only once; make another one" }
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
  /// Bytes set aside for unfinished requests over 64 KiB.
  public var bufferedBytes = 0
  /// Connections allowed at the same time: the configured number, or what the descriptor limit leaves.
  public var maximumConnections = 0
  /// One entry for each loop.
  public var loops: [LoopStatus] = []
}

/// A moment's view of one loop.
public struct LoopStatus: Sendable {
  /// When it last came round, in nanoseconds of CLOCK_MONOTONIC; it does at least once a second.
  public var lastTurn: Int64 = 0
  /// Its longest turn so far.
  public var longestTurn: Duration = .zero
  /// Connections it has taken so far.
  public var accepted = 0
  /// Connections open on it now.
  public var openConnections = 0
}
