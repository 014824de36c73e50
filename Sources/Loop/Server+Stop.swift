// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc
internal import Wire

// How a server ends: listeners, connections, tasks, inbox, loop, in this order. And how a dead listener is opened anew.

extension Server {
  /// Stops gracefully: accepts what the kernel has queued, stops listening, and finishes what runs. At the drain deadline handlers that
  /// still run are answered 503. Returns when every loop has ended; a handler that blocks its loop's thread for ever
  /// holds it up for ever. A second call waits for the same end.
  @discardableResult
  public func stop() async -> StopReport {
    let running: (workers: [Worker], groups: [ListeningGroup])? = state.withLock { state in
      if state.phase == .starting { state.mustStop = true }
      guard state.phase == .running else { return nil }
      state.phase = .stopping
      return (state.workers, state.groups)
    }
    if let (workers, groups) = running {
      for group in groups { group.withdraw() }
      // Clients that have connected and whose first bytes are on the way: they get into the queue, and a moment for it.
      for worker in workers { _ = await worker.loop.perform { worker.stopDeferring() } }
      if configuration.defersAccept { await workers.first?.loop.pause(for: Self.deferredGrace) }
      // All listeners before any connection: one loop may still hand out to another.
      for worker in workers {
        let late = await worker.loop.perform { worker.closeListeners() } ?? 0
        state.withLock { $0.report.acceptedLate += late }
      }
      for worker in workers { worker.loop.submit { [drain = configuration.drain] in worker.drain(within: drain) } }
    }
    await finished()
    return state.withLock { $0.report }
  }

  /// What clients that the kernel holds back until they speak are given to do so.
  private static let deferredGrace: Duration = .milliseconds(20)

  /// Ends a graceful stop at once: what is not finished is reset. Before `stop` it only makes the later stop a short one. Any thread.
  public func cut() {
    for worker in state.withLock({ $0.workers }) { worker.loop.submit { worker.cut() } }
  }

  /// Returns when a server that was started has stopped; at once if it was not started.
  public func finished() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.phase == .new || state.phase == .stopped { return true }
        state.waiting.append(continuation)
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  /// A loop has ended. On its thread, which is about to end.
  func ended(_ worker: Worker) {
    let isLast = state.withLock { state in
      state.report.cutHandlers += worker.station.cutHandlers
      state.report.abandonedTasks += worker.abandoned
      state.workers.removeAll { $0 === worker }
      return state.workers.isEmpty
    }
    guard isLast else { return }
    pool.shutdown(within: .seconds(1))
    let waiting = state.withLock { state in
      state.phase = .stopped
      state.groups.removeAll()
      defer { state.waiting.removeAll() }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Opens the listening socket at `address` anew, if it is dead; says whether it was. Any thread.
  /// - Throws: `ListenError`, if somebody else has the address now.
  @discardableResult
  public func reopen(_ address: BoundAddress) async throws -> Bool {
    let (workers, group) = state.withLock { state in
      (state.phase == .running ? state.workers : [], state.groups.first { $0.address == address })
    }
    guard let group, !workers.isEmpty else { return false }
    // Also where an earlier attempt has closed it and could not open it.
    var isDead = group.descriptors.contains { !$0.isListening }
    for worker in workers where await worker.loop.perform({ worker.isDead(address) }) == true { isDead = true }
    guard isDead else { return false }
    for worker in workers { _ = await worker.loop.perform { worker.close(address) } }
    group.close()
    let endpoint = endpoint(of: address)
    let anew = try await pool.run { [self] in try open(endpoint) }
    // The server may have been stopped meanwhile.
    let isRunning = state.withLock { state in
      guard state.phase == .running, let place = state.groups.firstIndex(where: { $0 === group }) else { return false }
      state.groups.replaceSubrange(place...place, with: anew)
      return true
    }
    guard isRunning else {
      for group in anew { group.close() }
      return false
    }
    let stations = workers.map(\.station)
    for group in anew {
      let crew = group.descriptors.count == 1 ? stations : nil
      for (worker, descriptor) in zip(workers, group.descriptors) {
        _ = await worker.loop.perform { worker.listenAnew(on: descriptor, of: group.address, crew: crew ?? [worker.station]) }
      }
    }
    configuration.watching.notice("\(address) was dead and is open again")
    return true
  }

  /// Where to listen for it to be `address` again; a Unix-domain socket keeps the mode it was asked for with.
  private func endpoint(of address: BoundAddress) -> Endpoint {
    switch address {
    case .tcp(let address): .tcp(host: address.host, port: address.port)
    case .unix(let path):
      state.withLock { $0.endpoints }.first { if case .unix(path, _) = $0.kind { true } else { false } } ?? .unix(path)
    }
  }
}

extension EventLoop {
  /// Returns after `delay`, on the loop's own timers; at once if the loop has ended. The loop must not end meanwhile.
  func pause(for delay: Duration) async {
    await withCheckedContinuation { continuation in
      let isTaken = submit { [self] in _ = OneShot(on: self, after: delay) { continuation.resume() } }
      if !isTaken { continuation.resume() }
    }
  }

  /// Runs `body` on the loop's thread and waits for its result; nil if the loop has ended.
  func perform<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result? {
    await withCheckedContinuation { continuation in
      if !submit({ continuation.resume(returning: body()) }) { continuation.resume(returning: nil) }
    }
  }
}
