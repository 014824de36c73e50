// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

package import Wire

// The life of a connection, as a value: it is told what happened and when, and says what is to be done. No I/O, no clock of its own,
// so its tests move the time by hand and explore every order of events.
//
//   idle ──bytes──▶ arriving ──whole──▶ handling ──answer──▶ writing ──drained──▶ lingering ──EOF──▶ closed
//     ▲                 └──────────refusal, 408──────────────▶│ └──nothing unread──────────────────▶ closed
//     └───────────────── a wire that stays open ──────────────┘
//
// The five deadlines, each bounding something else:
//   idle     silence before a request, from accept or from the last answer. There is nobody to tell: a silent close.
//   arrival  one whole request, from accept (later ones: from their first byte). Bytes do not push it back, or a client that sends
//            one byte a minute would stay for ever. 408.
//   handler  the handler's own, set with the request. 503, and its late answer is dropped.
//   stall    a window in which the client must take `stallBytes` of the answer. One byte now and then is no progress. The kernel, too,
//            takes: megabytes, and then nothing until the client has read a good part of them. So at the deadline it is the client's
//            own taking that counts.
//   linger   after the answer, for a client that still sends: without a byte, and in all.

/// The deadlines in nanoseconds.
package struct LifeRules: Sendable {
  package var idle: Int64
  package var arrival: Int64
  package var stall: Int64
  package var linger: Int64
  package var lingerInAll: Int64

  package init(_ deadlines: Deadlines) {
    idle = deadlines.idle.inNanoseconds
    arrival = deadlines.arrival.inNanoseconds
    stall = deadlines.stall.inNanoseconds
    linger = deadlines.linger.inNanoseconds
    lingerInAll = deadlines.lingerInAll.inNanoseconds
  }
}

package struct ConnectionLife: Hashable, Sendable {
  /// What a client must take of its answer within one stall window: 30 KiB, 1 KiB/s with the default of 30 s.
  package static let stallBytes = 30 << 10
  /// Bytes kept that came after a whole request; then reading stops until it is answered.
  package static let extraLimit = 16 << 10
  /// What a client that has connected but sent nothing is still given when the server stops: its request may be on the way.
  package static let stoppingIdle: Int64 = 1_000_000_000

  package enum State: Hashable, Sendable { case idle, arriving, handling, writing, lingering, closed }

  /// What the caller must do now. What it must wait for is in `wantsRead`, `wantsWrite` and `deadline`.
  package enum Action: Hashable, Sendable {
    case nothing
    /// Refuse what was asked for, because time is up; then `answered`.
    case refuse(TimeUp)
    /// Shut down the sending side and discard what comes.
    case linger
    /// Go on with the next request of this connection.
    case next
    /// Close.
    case close(CloseReason)
    /// Close so that the peer is reset: what is queued is not worth sending.
    case reset(CloseReason)
  }

  /// What ran out. (Not the refusal itself: an action is a few bytes that need no counting of references.)
  package enum TimeUp: Hashable, Sendable {
    case arrival, handler, stopping

    package var refusal: Refusal {
      switch self {
      case .arrival: .arrivalTimeout
      case .handler: .handlerTimeout
      case .stopping: .stopping
      }
    }
  }

  package private(set) var state = State.idle
  /// When `deadlinePassed` is due; `.never` if nothing is.
  package private(set) var deadline: Moment
  /// The end of stream was read: nothing more will come, and reading on would spin.
  package private(set) var sawEnd = false
  /// The handler waits for something to happen: the client's end of stream means that it left.
  private var waits = false
  /// Whether the connection ends with this answer.
  private var closes: Bool
  /// The answer refuses a request that was not read to its end: more of it is to be expected.
  private var refusing = false
  /// The peer sent bytes beyond its request.
  private var extra: Int32 = 0
  /// The answer is a stream with nothing to send at the moment.
  private var sourceWaits = false
  private var blocked = false
  /// Bytes taken in this stall window.
  private var taken: Int32 = 0
  /// Start of what the state measures from: accept or the first byte (idle, arriving), the first moment of lingering.
  private var since: Moment
  /// Whether this is the connection's first request, or the wait for it.
  package private(set) var isFirst = true
  private var stopping = false

  /// A connection that was just accepted.
  package init(acceptedAt now: Moment, staysOpen: Bool, _ rules: LifeRules) {
    since = now
    deadline = now + rules.idle
    closes = !staysOpen
  }

  /// Whether another request is served after the one under way.
  package var goesOn: Bool { !closes }

  // MARK: What to wait for

  package var wantsRead: Bool {
    switch state {
    case .idle, .arriving, .lingering: true
    case .handling: !sawEnd && extra < Self.extraLimit
    // While an answer is written a peer's leaving shows in the write; a stream that waits writes nothing, so it listens.
    case .writing: sourceWaits && !sawEnd && extra < Self.extraLimit
    case .closed: false
    }
  }

  /// Also while a handler runs, if answers before its own were not all taken.
  package var wantsWrite: Bool { blocked && (state == .writing || state == .handling) }

  // MARK: Events from the socket

  /// Bytes came.
  package mutating func received(_ count: Int, at now: Moment, _ rules: LifeRules) {
    switch state {
    case .idle:
      state = .arriving
      // The arrival of the first request is counted from accept: silence before it is part of it.
      deadline = (isFirst ? since : now) + rules.arrival
      since = now
    case .arriving, .closed: break
    case .handling, .writing: extra = sum(extra, count)
    case .lingering: deadline = min(now + rules.linger, since + rules.lingerInAll)
    }
  }

  /// The peer will send nothing more (a read of 0).
  package mutating func endOfStream() -> Action {
    sawEnd = true
    switch state {
    case .idle: return close(.clientClosed)
    case .arriving: return close(.cutRequest)
    // Not while answers before its own are still to be sent: a client that only shut down its sending side gets those.
    case .handling: return waits && !blocked ? close(.clientClosed) : .nothing
    case .writing: return sourceWaits ? close(.clientClosed) : .nothing
    case .lingering: return close(.done)
    case .closed: return .nothing
    }
  }

  /// The socket failed: reset, or an error that ends it as well.
  package mutating func failed() -> Action {
    // After the whole answer was handed over, a reset is only an impolite goodbye.
    close(state == .lingering ? .done : .reset)
  }

  // MARK: Events from the wire and the handler

  /// A whole request is in; its handler is about to start. `over`: bytes behind the request.
  package mutating func requestWhole(over: Int) {
    // On a wire that stays open, requests that came together are answered together: the answer before may still be in the buffer.
    guard state == .arriving || state == .writing && !blocked && !closes else { return }
    state = .handling
    deadline = .never
    waits = false
    extra = sum(0, over)
  }

  /// The handler will answer later. If `sawEnd` is true already, `endOfStream` is to be told again once the answers before are sent.
  package mutating func handlerRuns(until deadline: Moment, waits: Bool) {
    guard state == .handling else { return }
    self.deadline = deadline
    self.waits = waits
  }

  /// An answer is ready to be sent. `refusing`: the request was not read to its end.
  package mutating func answered(refusing: Bool = false) {
    // Behind answers that have not left yet, what follows may still be refused.
    guard state == .handling || state == .arriving || state == .idle || state == .writing && refusing else { return }
    state = .writing
    deadline = .never
    taken = 0
    sourceWaits = false
    self.refusing = refusing
    if refusing || stopping { closes = true }
  }

  /// The kernel took `count` bytes and would not take more. Says whether a stall window began.
  @discardableResult
  package mutating func wouldBlock(took count: Int, at now: Moment, _ rules: LifeRules) -> Bool {
    guard state == .writing else {
      blocked = state == .handling
      return false
    }
    sourceWaits = false
    taken = sum(taken, count)
    guard !blocked || deadline == .never || taken >= Self.stallBytes else { return false }
    blocked = true
    taken = 0
    deadline = now + rules.stall
    return true
  }

  /// While a handler runs: the answers before its own are all with the kernel.
  package mutating func caughtUp() -> Action {
    guard state == .handling else { return .nothing }
    blocked = false
    return waits && sawEnd ? close(.clientClosed) : .nothing
  }

  /// The answer is a stream and has nothing to send now.
  package mutating func sourcePaused() -> Action {
    guard state == .writing else { return .nothing }
    sourceWaits = true
    blocked = false
    deadline = .never
    return sawEnd ? close(.clientClosed) : .nothing
  }

  /// Everything has been handed to the kernel. `unsettled`: bytes of the peer are unread, or the kernel still holds so much of the
  /// answer that a reset would lose it. `now` is a closure because most connections end here, and the clock is not asked for those.
  package mutating func drained(unsettled: Bool, at now: @autoclosure () -> Moment, _ rules: LifeRules) -> Action {
    guard state == .writing else { return .nothing }
    blocked = false
    sourceWaits = false
    let left = extra
    extra = 0
    guard closes else {
      isFirst = false
      let now = now()
      since = now
      if left > 0 {
        state = .arriving
        deadline = now + rules.arrival
        return .next
      }
      if sawEnd { return close(.done) }
      state = .idle
      deadline = now + rules.idle
      return .nothing
    }
    // A peer that has closed its side can send nothing that would make the kernel reset it.
    guard !sawEnd, unsettled || refusing || left > 0 else { return close(.done) }
    let now = now()
    state = .lingering
    since = now
    deadline = now + min(rules.linger, rules.lingerInAll)
    return .linger
  }

  // MARK: Time, and the server

  /// The deadline passed. `taken`: what the client itself has taken of its answer since this deadline was set.
  package mutating func deadlinePassed(at now: Moment, taken: Int = 0, _ rules: LifeRules) -> Action {
    guard now >= deadline else { return .nothing }
    switch state {
    case .idle: return close(stopping ? .stopped : .idle)
    case .arriving: return .refuse(.arrival)
    case .handling: return .refuse(.handler)
    case .writing:
      guard taken >= Self.stallBytes else { return reset(.stall) }
      self.taken = 0
      deadline = now + rules.stall
      return .nothing
    case .lingering: return close(.linger)
    case .closed: return .nothing
    }
  }

  /// The server stops: no further request is begun on this connection, what has begun is finished.
  package mutating func stop(at now: Moment) -> Action {
    stopping = true
    switch state {
    case .idle:
      guard isFirst else { return close(.stopped) }
      deadline = min(deadline, now + Self.stoppingIdle)
      return .nothing
    case .handling, .arriving, .writing:
      closes = true
      return .nothing
    case .lingering, .closed: return .nothing
    }
  }

  /// The drain deadline passed.
  package mutating func drainEnded() -> Action {
    switch state {
    case .idle: close(.stopped)
    case .arriving, .handling: .refuse(.stopping)
    case .writing, .lingering, .closed: .nothing
    }
  }

  /// Nothing is waited for any more.
  package mutating func cut() -> Action { state == .lingering ? close(.done) : reset(.stopped) }

  /// Clamped: what is asked of these numbers is only whether they pass some KiB.
  private func sum(_ a: Int32, _ b: Int) -> Int32 { Int32(clamping: Int(a) + b) }

  private mutating func close(_ reason: CloseReason) -> Action { end(.close(reason)) }
  private mutating func reset(_ reason: CloseReason) -> Action { end(.reset(reason)) }

  private mutating func end(_ action: Action) -> Action {
    guard state != .closed else { return .nothing }
    state = .closed
    deadline = .never
    blocked = false
    return action
  }
}
