// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

@testable import Loop

// Every sequence of events a connection's life can be told, up to a depth, also those that no connection would tell. What must hold
// after each step is written down apart from the machine, in terms of what has happened so far: the history.

private let second: Int64 = 1_000_000_000

/// All different, so that one taken for another shows.
private let rules: LifeRules = {
  var deadlines = Deadlines()
  deadlines.idle = .seconds(4)
  deadlines.arrival = .seconds(5)
  deadlines.stall = .seconds(3)
  deadlines.linger = .seconds(2)
  deadlines.lingerInAll = .seconds(3)
  return LifeRules(deadlines)
}()
private let handlerTime = 6 * second

private enum Event: Hashable {
  case received(Int), endOfStream, failed
  case requestWhole(over: Int), handlerRuns(waits: Bool), answered(refusing: Bool)
  case wouldBlock(took: Int), caughtUp, sourcePaused, drained(unsettled: Bool)
  /// A second passes. The poller says that the deadline passed, or says it too early. Time jumps to the deadline and it is said.
  case second, deadlineTold, deadline
  case stop, drainEnded, cut

  static let all: [Event] = [
    .received(1), .received(ConnectionLife.extraLimit), .endOfStream, .failed, .requestWhole(over: 0), .requestWhole(over: 1),
    .handlerRuns(waits: false), .handlerRuns(waits: true), .answered(refusing: false), .answered(refusing: true), .wouldBlock(took: 0),
    .wouldBlock(took: ConnectionLife.stallBytes - 1), .caughtUp, .sourcePaused, .drained(unsettled: false), .drained(unsettled: true),
    .second, .deadlineTold, .deadline, .stop, .drainEnded, .cut,
  ]
}

/// What has happened, as far as it decides what may happen next.
private struct History: Hashable {
  var now = Moment(nanoseconds: 0)
  let staysOpen: Bool
  var idleFrom = Moment(nanoseconds: 0)
  var arrivalFrom = Moment(nanoseconds: 0)
  var handlerUntil = Moment.never
  /// The stall window: its start, and what was taken in it.
  var window: Window?
  var lingerFrom = Moment(nanoseconds: 0)
  var lastByte = Moment(nanoseconds: 0)
  var isFirst = true
  /// At most `extraLimit`: more makes no difference.
  var extra = 0
  var blocked = false
  var paused = false
  var refused = false
  var waits = false
  var sawEnd = false
  var stoppedAt: Moment?
  var closed = false

  struct Window: Hashable {
    var from: Moment
    var taken: Int
  }
}

private struct Node: Hashable {
  var life: ConnectionLife
  var history: History
}

/// A step that broke a rule.
private struct Broken: Error {
  var rule: String
}

private func expect(_ holds: Bool, _ rule: @autoclosure () -> String) throws(Broken) {
  if !holds { throw Broken(rule: rule()) }
}

extension Node {
  /// The node after `event`, with what must hold checked.
  func after(_ event: Event) throws(Broken) -> Node {
    var next = self
    if event == .second { next.history.now = history.now + second }
    if event == .deadline {
      guard life.deadline != .never else { return self }
      next.history.now = max(history.now, life.deadline)
    }
    let action = next.life.tell(event, at: next.history.now)
    try next.checkAction(action, event, before: self)
    try next.checkTransition(event, from: life.state)
    next.history.note(event, action, from: life.state, to: next.life.state)
    try next.checkWants()
    try expect(next.life.deadline == next.expectedDeadline, "a deadline of \(next.life.deadline) instead of \(next.expectedDeadline)")
    // As the connection does it: what is refused is answered at once.
    if case .refuse = action { return try next.after(.answered(refusing: life.state != .handling)) }
    return next
  }

  // MARK: The rules

  /// Each deadline when it should, and only then.
  private var expectedDeadline: Moment {
    switch life.state {
    case .idle:
      let idle = history.idleFrom + rules.idle
      return history.stoppedAt.map { min(idle, $0 + ConnectionLife.stoppingIdle) } ?? idle
    case .arriving: return history.arrivalFrom + rules.arrival
    case .handling: return history.handlerUntil
    case .writing: return history.window.map { $0.from + rules.stall } ?? .never
    case .lingering: return min(history.lastByte + rules.linger, history.lingerFrom + rules.lingerInAll)
    case .closed: return .never
    }
  }

  /// No watcher is left, none is missing, and none spins.
  private func checkWants() throws(Broken) {
    let mayRead = !history.sawEnd && history.extra < ConnectionLife.extraLimit
    let reads =
      switch life.state {
      case .idle, .arriving, .lingering: true
      case .handling: mayRead
      case .writing: history.paused && mayRead
      case .closed: false
      }
    try expect(life.wantsRead == reads, "wantsRead is \(life.wantsRead) in \(life.state)")
    let writes = history.blocked && (life.state == .writing || life.state == .handling)
    try expect(life.wantsWrite == writes, "wantsWrite is \(life.wantsWrite) in \(life.state)")
    try expect(life.sawEnd == history.sawEnd, "the end of stream was forgotten")
  }

  /// The connection closes once, for a reason that is true, and never with an answer that could still be given.
  private func checkAction(_ action: ConnectionLife.Action, _ event: Event, before: Node) throws(Broken) {
    let was = before.history
    let state = before.life.state
    let isDue = history.now >= before.life.deadline
    if was.closed { try expect(action == .nothing, "\(action) after the close") }
    switch action {
    case .nothing, .next: break
    case .linger:
      guard case .drained = event else { throw Broken(rule: "lingers before its answer is sent") }
    case .refuse(let timeUp):
      switch timeUp {
      case .arrival: try expect(state == .arriving && isDue, "408 in \(state)")
      case .handler: try expect(state == .handling && isDue, "503 in \(state)")
      case .stopping: try expect(event == .drainEnded && (state == .arriving || state == .handling), "refused in \(state)")
      }
    case .close(let reason): try checkClose(reason, event, state, was, isDue)
    case .reset(let reason):
      try expect(reason == .stall && state == .writing && isDue || reason == .stopped && event == .cut, "reset for \(reason) in \(state)")
    }
  }

  private func checkClose(
    _ reason: CloseReason, _ event: Event, _ state: ConnectionLife.State, _ was: History, _ isDue: Bool
  ) throws(Broken) {
    let holds =
      switch reason {
      case .clientClosed:
        // Of a handler that waits, and of a stream that has nothing to send, the end of stream is the end; of no other answer, and not
        // before what was answered earlier is sent.
        switch event {
        case .endOfStream: state == .idle || state == .handling && was.waits && !was.blocked || state == .writing && was.paused
        case .caughtUp: state == .handling && was.waits && was.sawEnd
        case .sourcePaused: was.sawEnd
        default: false
        }
      case .cutRequest: event == .endOfStream && state == .arriving
      case .idle: state == .idle && isDue && was.stoppedAt == nil
      case .stopped: state == .idle && was.stoppedAt != nil && isDue || state == .idle && (event == .stop || event == .drainEnded)
      case .linger: state == .lingering && isDue
      case .reset: event == .failed && state != .lingering
      case .done:
        switch event {
        case .endOfStream, .failed, .cut: state == .lingering
        case .drained(let unsettled): state == .writing && (was.sawEnd || !unsettled && was.extra == 0 && !was.refused)
        default: false
        }
      case .arrival, .stall: false
      }
    try expect(holds, "closes for \(reason) in \(state)")
  }

  /// The diagram at the head of ConnectionLife, and nothing beside it.
  private func checkTransition(_ event: Event, from state: ConnectionLife.State) throws(Broken) {
    let to = life.state
    if to == state || to == .closed { return }
    let isAllowed =
      switch (state, to) {
      case (.idle, .arriving): if case .received = event { true } else { false }
      case (.arriving, .handling): if case .requestWhole = event { true } else { false }
      // Requests that came together; but not behind an answer that the kernel would not take, or that is the last.
      case (.writing, .handling):
        if case .requestWhole = event { !history.blocked && !history.isLast } else { false }
      case (.handling, .writing), (.arriving, .writing), (.idle, .writing): if case .answered = event { true } else { false }
      case (.writing, .idle), (.writing, .arriving): if case .drained = event { !history.isLast } else { false }
      case (.writing, .lingering): if case .drained = event { history.isLast } else { false }
      default: false
      }
    try expect(isAllowed, "\(state) became \(to)")
  }
}

extension History {
  /// Whether the answer under way is the connection's last.
  var isLast: Bool { !staysOpen || refused || stoppedAt != nil }

  mutating func note(_ event: Event, _ action: ConnectionLife.Action, from: ConnectionLife.State, to: ConnectionLife.State) {
    switch event {
    case .endOfStream: sawEnd = true
    case .stop: stoppedAt = stoppedAt ?? (from == .idle && to == .idle ? now : Moment(nanoseconds: 0))
    case .received(let count):
      if from == .handling || from == .writing { extra = min(extra + count, ConnectionLife.extraLimit) }
      if from == .lingering { lastByte = now }
    case .handlerRuns(let waits):
      if from == .handling {
        handlerUntil = now + handlerTime
        self.waits = waits
      }
    case .wouldBlock(let count):
      if from == .writing {
        paused = false
        noteTaken(count)
      }
      if from == .writing || from == .handling { blocked = true }
    case .caughtUp: if from == .handling { blocked = false }
    case .sourcePaused:
      if from == .writing { (paused, blocked, window) = (true, false, nil) }
    default: break
    }
    if case .answered(refusing: true) = event, from == .writing { (refused, paused, window) = (true, false, nil) }
    if from != to { entered(to, event, from: from) }
  }

  private mutating func noteTaken(_ count: Int) {
    let sum = (window?.taken ?? 0) + count
    if window == nil || sum >= ConnectionLife.stallBytes {
      window = Window(from: now, taken: 0)
    } else {
      window?.taken = sum
    }
  }

  private mutating func entered(_ state: ConnectionLife.State, _ event: Event, from: ConnectionLife.State) {
    switch state {
    case .idle:
      idleFrom = now
      isFirst = false
      (extra, blocked, paused) = (0, false, false)
    case .arriving:
      // The first request's arrival is counted from accept; a later one's from its first byte.
      if from == .writing { isFirst = false }
      arrivalFrom = isFirst ? Moment(nanoseconds: 0) : now
      (extra, blocked, paused) = (0, false, false)
    case .handling:
      handlerUntil = .never
      waits = false
      if case .requestWhole(let over) = event { extra = over }
    case .writing:
      window = nil
      paused = false
      if case .answered(let refusing) = event { refused = refusing }
    case .lingering:
      (lingerFrom, lastByte) = (now, now)
      (extra, blocked, paused) = (0, false, false)
    case .closed:
      closed = true
      blocked = false
    }
  }
}

extension ConnectionLife {
  fileprivate mutating func tell(_ event: Event, at now: Moment) -> Action {
    switch event {
    case .received(let count): received(count, at: now, rules)
    case .endOfStream: return endOfStream()
    case .failed: return failed()
    case .requestWhole(let over): requestWhole(over: over)
    case .handlerRuns(let waits): handlerRuns(until: now + handlerTime, waits: waits)
    case .answered(let refusing): answered(refusing: refusing)
    case .wouldBlock(let count): wouldBlock(took: count, at: now, rules)
    case .caughtUp: return caughtUp()
    case .sourcePaused: return sourcePaused()
    case .drained(let unsettled): return drained(unsettled: unsettled, at: now, rules)
    case .second: break
    case .deadlineTold, .deadline: return deadlinePassed(at: now, rules)
    case .stop: return stop(at: now)
    case .drainEnded: return drainEnded()
    case .cut: return cut()
    }
    return .nothing
  }
}

@Suite struct ConnectionLifeExplorationTests {
  @Test(arguments: [false, true])
  func every_sequence_of_events_keeps_every_rule(staysOpen: Bool) throws {
    let depth = 9
    let life = ConnectionLife(acceptedAt: Moment(nanoseconds: 0), staysOpen: staysOpen, rules)
    var seen: Set<Node> = [Node(life: life, history: History(staysOpen: staysOpen))]
    var frontier = Array(seen)
    var steps = 0
    for level in 1...depth {
      var next: [Node] = []
      for node in frontier {
        for event in Event.all {
          steps += 1
          do throws(Broken) {
            let reached = try node.after(event)
            if seen.insert(reached).inserted { next.append(reached) }
          } catch {
            Issue.record("level \(level): \(event) in \(node): \(error.rule)")
            return
          }
        }
      }
      frontier = next
    }
    print("connection life, \(staysOpen ? "many requests" : "one request"): \(seen.count) states, \(steps) steps to depth \(depth)")
    #expect(!frontier.isEmpty)
  }
}
