// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// One connection: carries out what its life (ConnectionLife) decides, with the kernel's calls. All on the loop's thread, except what
// ConnectionLink says.
//
//   Connection          begin, deadlines, actions, the end
//   Connection+Input    read, parse, hand to the handler
//   Connection+Output   send, pull streams, what happens when all is sent
//   Connection+Handler  what handlers and their tasks use
//
// Each entry from outside (ready, deadlineReached, answer, wake) ends with `settle`, which tells the poller what to wait for. Memory:
// an idle connection is this object, its watch and the few bytes it has sent; ten thousand of them are to be cheap, so what only a
// running request needs is behind one reference each.

@usableFromInline
package final class Connection: Waiter, @unchecked Sendable {  // the loop's thread's own; what others call only posts to that thread
  @usableFromInline package let station: Station
  @exclusivity(unchecked) var life: ConnectionLife
  // Small ones stand here, where the layout has room for them.
  /// No time has passed since the socket was read empty, so nothing can be unread that is known of.
  @exclusivity(unchecked) var justRead = false
  /// `advance` is on the stack: an answer that comes meanwhile is sent by it.
  @exclusivity(unchecked) var isAdvancing = false
  @exclusivity(unchecked) var isStarved = false
  @exclusivity(unchecked) var saidContinue = false
  /// The request that is handled asks for a head only; known while its handler answers later.
  @exclusivity(unchecked) @usableFromInline package var omitsBody = false
  /// The answer's, for observers.
  @exclusivity(unchecked) var status = 0
  /// Observers know of the answer that is being sent.
  @exclusivity(unchecked) var isTold = false
  @exclusivity(unchecked) @usableFromInline package var peer = Peer()
  /// Which request this is; a task that comes back with another number is too late.
  @exclusivity(unchecked) @usableFromInline var ticket: UInt64 = 0
  /// Where the station keeps it; -1 while `begin` runs.
  @exclusivity(unchecked) var slot = 0

  /// Received and not consumed, beginning at its start; nil while there is nothing.
  @exclusivity(unchecked) var input: ByteBlock?
  @exclusivity(unchecked) var inputCount = 0
  /// What the parser waits for; nil before it has looked.
  @exclusivity(unchecked) @usableFromInline package var need: Need?
  /// Set aside from the shared budget for `input`.
  @exclusivity(unchecked) var charged = 0

  /// What the kernel did not take at once.
  @exclusivity(unchecked) var outbox: Outbox?
  /// The task that makes the answer.
  @exclusivity(unchecked) var task: Task<Void, any Error>?
  @exclusivity(unchecked) var timers: [OneShot]?
  /// What an observer is told of the request; only kept where there is one.
  @exclusivity(unchecked) var record: RequestRecord?

  /// The first byte of the request; accept, for the first one.
  @exclusivity(unchecked) var began: Moment
  /// Bytes handed to the kernel since all was sent last.
  @exclusivity(unchecked) var sentBytes = 0
  /// The size of the answer that is being sent.
  @exclusivity(unchecked) var answerBytes = 0

  init(_ station: Station) {
    self.station = station
    began = .never
    life = ConnectionLife(acceptedAt: .never, staysOpen: false, station.rules)
    super.init()
  }

  var isClosed: Bool { descriptor < 0 }
  var staysOpen: Bool { station.exchange.conversation.staysOpen }

  /// A descriptor was accepted. With a refusal, it is told and lingers; without, it is read at once: most requests are there already.
  func begin(_ descriptor: Int32, _ peer: Peer, _ refusal: Refusal?) {
    self.descriptor = descriptor
    self.peer = peer
    (sentBytes, answerBytes) = (0, 0)
    omitsBody = false
    began = station.now
    life = ConnectionLife(acceptedAt: began, staysOpen: staysOpen, station.rules)
    if let refusal {
      refuse(refusal)
    } else {
      if station.isStopping { perform(life.stop(at: began)) }
      if station.exchange.conversation.clientSpeaksFirst { readRequest() }
    }
    settle()
  }

  // MARK: Told by the poller

  package override func ready(toRead: Bool, toWrite: Bool) {
    if toRead && !isClosed && life.wantsRead { read() }
    if toWrite && !isClosed && life.wantsWrite { sendRest() }
    settle()
  }

  package override func deadlineReached() {
    perform(life.deadlinePassed(at: station.now, taken: takenSinceDeadlineWasSet(), station.rules))
    settle()
  }

  /// Goes on with what is here already, then tells the poller what this connection waits for. While a handler runs that waits for the
  /// end of the turn: many have answered by then, and no watcher is started and stopped for them.
  func settle() {
    goOn()
    if isClosed { return }
    if life.state == .handling { station.settleLater(self) } else { tellPoller() }
  }

  func tellPoller() {
    station.poller.set(self, reading: life.wantsRead && !isStarved, writing: life.wantsWrite)
    station.poller.set(self, deadline: life.deadline)
  }

  // MARK: Told by the server

  func stop() {
    perform(life.stop(at: station.now))
    // A stream is asked to come to its end, and pulled for it.
    if let source = outbox?.source {
      source.finish()
      pull()
    }
    settle()
  }

  func drainEnded() {
    if life.state == .handling { station.cutHandlers += 1 }
    perform(life.drainEnded())
    settle()
  }

  func cut() { perform(life.cut()) }

  // MARK: Actions

  func perform(_ action: ConnectionLife.Action) {
    switch action {
    case .nothing, .next: break
    case .refuse(let timeUp): refuse(timeUp.refusal)
    case .linger:
      station.kernel.shutdownWriting(descriptor)
      requestIsOver()
      discard()
    case .close(let reason): end(reason, reset: false)
    case .reset(let reason): end(reason, reset: true)
    }
  }

  /// Refuses what was asked for, or would have been. The handler that runs is cancelled, which is user code and so comes last.
  func refuse(_ refusal: Refusal) {
    let late = task
    task = nil
    ticket = station.nextTicket()
    let wasHandling = life.state == .handling
    life.answered(refusing: !wasHandling)
    isStarved = false
    // What follows a whole request is the next one, which may still be served.
    if !wasHandling {
      input = nil
      inputCount = 0
      need = nil
    }
    station.exchange.refuse(refusal, self)
    flush()
    late?.cancel()
  }

  /// The end: the watcher stops before the descriptor is closed, the descriptor is closed once, and user code comes last.
  private func end(_ reason: CloseReason, reset: Bool) {
    let late = task
    let source = outbox?.dropSource()
    if reads || writes || deadline != .never { station.poller.stop(self) }
    if reset { station.kernel.reset(descriptor) } else { station.kernel.close(descriptor) }
    descriptor = -1
    requestIsOver()
    outbox = nil
    need = nil
    input = nil
    inputCount = 0
    isStarved = false
    isTold = false
    saidContinue = false
    if isObserved { station.observer.closed(peer, reason) }
    station.remove(self)
    source?.cancel()
    late?.cancel()
  }

  /// What belonged to the request that was answered, or will not be.
  func requestIsOver() {
    task = nil
    status = 0
    if ticket != 0 { ticket = 0 }
    if let timers {
      self.timers = nil
      for timer in timers { timer.cancel() }
    }
    if charged > 0 {
      station.giveBack(charged, from: peer.id)
      charged = 0
    }
    record?.reset()
  }
}

/// What an observer is told of a request, collected while it is served.
final class RequestRecord {
  @exclusivity(unchecked) var label = Bytes()
  @exclusivity(unchecked) var refusal: Refusal?
  @exclusivity(unchecked) var origin: PeerAddress?

  func reset() {
    label = Bytes()
    refusal = nil
    origin = nil
  }
}
