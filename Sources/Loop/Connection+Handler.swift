// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// The connection as handlers and their tasks see it.

// MARK: For the exchange, on the loop's thread

extension Connection {
  @usableFromInline package var output: UnsafeMutablePointer<Output> { station.output }
  @usableFromInline package var isObserved: Bool { station.isObserved }
  @usableFromInline package var context: Context { Context(peer: peer, link: self, ticket: ticket) }

  /// A task on the loop is about to start.
  @usableFromInline
  package func run(_ terms: Terms) -> Run { begin(terms, isOffloaded: false) }

  /// Where its task runs.
  @usableFromInline package var loopExecutor: any TaskExecutor { station.executor }

  /// A task on the pool is about to start there; nil if too much is waiting.
  @usableFromInline
  package func offload(_ terms: Terms) -> (Run, any TaskExecutor)? {
    guard let pool = station.pool, pool.admit() else { return nil }
    return (begin(terms, isOffloaded: true), pool)
  }

  private func begin(_ terms: Terms, isOffloaded: Bool) -> Run {
    let allowed = terms.deadline?.inNanoseconds ?? station.handlerDeadline
    life.handlerRuns(until: station.now + allowed, waits: terms.waits)
    justRead = false
    station.taskBegan()
    return Run(ticket: ticket, isOffloaded: isOffloaded)
  }

  /// The task, which may have ended already.
  @usableFromInline
  package func runs(_ task: Task<Void, any Error>, _ run: Run) {
    if ticket == run.ticket && life.state == .handling { self.task = task }
  }

  /// The task has ended. Called once for each run, also when nobody waits for its answer any more.
  @usableFromInline
  package func ended(_ run: Run) {
    if run.isOffloaded { station.pool?.leave() }
    station.taskEnded()
  }

  /// Whether the run's answer is still waited for. Then it may be written, and `endAnswer` follows.
  @usableFromInline
  package func beginAnswer(_ run: Run) -> Bool {
    guard ticket == run.ticket, life.state == .handling else { return false }
    task = nil
    life.answered()
    return true
  }

  @usableFromInline
  package func endAnswer() {
    if isAdvancing { return }
    flush()
    settle()
  }

  /// Runs `body` on the loop's thread. Any thread.
  @usableFromInline
  package func onLoop(_ body: @escaping @Sendable () -> Void) { station.poller.submit(body) }

  @usableFromInline
  package func note(_ refusal: Refusal) { if isObserved { requestRecord.refusal = refusal } }
  @usableFromInline
  package func note(status: Int) { self.status = status }
  @usableFromInline
  package func note(label: consuming Bytes) { requestRecord.label = label }

  @usableFromInline
  package func handlerFailed(_ error: any Error) {
    note(.handlerFailed)
    station.observer.handlerFailed(peer, error)
  }

  private var requestRecord: RequestRecord {
    if let record { return record }
    let made = RequestRecord()
    record = made
    return made
  }

  func observeAnswer() {
    guard isObserved else { return }
    let record = requestRecord
    station.observer.answered(
      AnswerRecord(
        peer: peer, origin: record.origin, label: record.label, status: status, bytes: answerBytes,
        duration: .nanoseconds(station.now - began), refusal: record.refusal))
  }
}

// MARK: For handlers, any thread

extension Connection: ConnectionLink {
  @usableFromInline
  package func wake(_ ticket: UInt64) {
    onThread {
      guard ticket == self.ticket, self.outbox?.source != nil else { return }
      self.pull()
      self.settle()
    }
  }

  @usableFromInline
  package func after(_ delay: Duration, _ ticket: UInt64, _ body: @escaping @Sendable () -> Void) {
    onThread {
      guard ticket == self.ticket else { return }
      let timer = OneShot(on: self.station.poller, after: delay, body)
      self.timers = (self.timers ?? []).filter { !$0.isOver } + [timer]
    }
  }

  @usableFromInline
  package func setOrigin(_ address: PeerAddress, _ ticket: UInt64) {
    guard ticket == self.ticket, isObserved else { return }
    requestRecord.origin = address
  }

  /// After what is on the stack now, so that no handler's call finds the connection in the middle of something.
  private func onThread(_ body: @escaping @Sendable () -> Void) {
    if station.poller.isCurrent { station.poller.later(body) } else { station.poller.submit(body) }
  }
}
