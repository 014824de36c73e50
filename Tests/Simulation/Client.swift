// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

@testable import Loop

// A simulated client: what it will ask, when it sends which bytes, how it reads, how it leaves. And its connection as both kernels
// have it: bytes under way in both directions, ends, resets.

/// One request and what has become of it.
struct Plan {
  enum Kind: CaseIterable {
    /// Answered at once; by a task that ends at once; by one that is suspended; by one that waits on the connection's own timer.
    case now, task, later, timer
    /// A handler that declares that it waits, and one whose own deadline is short.
    case waits, short
    case throwsRefusal, throwsError
    case stream
    /// Not a request; one that is too large.
    case garbage, tooLarge
  }

  var kind: Kind
  var start = 0
  /// Where it ends in the client's bytes, if it is sent to its end.
  var end = 0
  var bodyLength = 0
  var wantsContinue = false
  var answerSize = 0
  var delay: Int64 = 0
  /// Whether its handler ends early when it is cancelled.
  var heedsCancel = true

  // What has become of it.
  var firstByteAt: Moment?
  var startedAt: Moment?
  var handlerDeadline = Moment.never
  /// When the handler gave its answer, or threw.
  var doneAt: Moment?
  /// It was answered for, because its deadline passed.
  var isTimedOut = false
  var isCancelled = false
  var parked: UnsafeContinuation<Void, Never>?
  var source: SimulatedSource?
  var saidContinue = false

  /// What its handler is allowed.
  func allowance(_ usual: Int64) -> Int64 { kind == .short ? delay / 2 + 1 : usual }
  func isDone(by moment: Moment) -> Bool { doneAt.map { $0 <= moment } ?? false }
  var isBad: Bool { kind == .garbage || kind == .tooLarge }
}

final class Client: @unchecked Sendable {  // one thread
  enum Step { case send(Int), halfClose, close, reset }
  enum Reading { case instant, slow(every: Int64, bytes: Int), never }
  /// What it does when it has read the server's end of stream.
  enum Goodbye { case close, closeLater(Int64), stay }

  let index: Int
  let staysOpen: Bool

  // The program.
  var plans: [Plan] = []
  var stream: [UInt8] = []
  var steps: [(after: Int64, step: Step)] = []
  var nextStep = 0
  var reading = Reading.instant
  var goodbye = Goodbye.close
  var saidGoodbye = false

  // The network.
  var descriptor: Int32 = -1
  /// Bytes of `stream` that were sent, and those the server has read.
  var sent = 0
  var read = 0
  var sentEnd = false
  var readEnd = false
  /// The client has reset, or its kernel did for it; the server learns it by a call.
  var isReset = false
  var sawReset = false
  var isClosed = false
  /// Accepted from the server: in its own kernel, and in the client's, unread.
  var unsent = 0
  var unread = 0
  var sendBuffer = 0
  var window = 0
  /// Before the server's last send there were bytes it had not read.
  var hadUnread = false
  var serverEnded = false
  var serverClosed = false
  /// The server's kernel has reset the client.
  var wasReset = false

  // What the server owes, as far as it can be seen from outside.
  var acceptedAt = Moment.never
  /// The request to be answered next.
  var current = 0
  /// The head of the answer under way, as far as it has come, and how much of its body is missing.
  var head: [UInt8] = []
  var bodyAt = 0
  var bodyLeft = 0
  var isStreaming = false
  /// No further answer may follow.
  var isFinal = false
  var isRefused = false
  /// The last send took less than was offered.
  var isBlocked = false
  var blockedSince: Moment?
  var wasBlocked = false
  /// Bytes the server's kernel took in all, and when.
  var taken = 0
  var takenAt: [(at: Moment, count: Int)] = []
  var lastDrained = Moment.never
  var endedAt = Moment.never
  var lastReceived = Moment.never
  /// The server closed for a reason that makes what is lost the client's own fault.
  var isExcused = false
  /// It came when as many as are allowed were there.
  var isOverLimit = false
  /// Handlers started so far.
  var started = 0
  var streamed = 0
  /// Answers an observer was told of.
  var reported = 0
  var isReading = false
  var skippedLinger = false

  init(index: Int, staysOpen: Bool) {
    self.index = index
    self.staysOpen = staysOpen
  }

  /// Nothing can come from it any more.
  var isOver: Bool { serverClosed && (isClosed || isReset || wasReset || nextStep >= steps.count) }
  var canAct: Bool { !isClosed && !isReset && !wasReset }
}

// MARK: - Making one up

extension Client {
  func makeUp(_ random: inout Random) {
    let count = staysOpen ? random.index(of: [1, 6, 4, 3, 2]) * random.within(1...3) + 1 : 1
    for _ in 0..<count { append(plan: Client.plan(&random, staysOpen: staysOpen), &random) }
    if random.one(in: 6) { stream += [UInt8](repeating: UInt8(ascii: "x"), count: random.one(in: 4) ? 40_000 : random.within(1...60)) }
    makeSteps(&random)
    switch random.index(of: [75, 15, 5, 5]) {
    case 0: reading = .instant
    case 1: reading = .slow(every: Int64(random.within(1_000_000...1_000_000_000)), bytes: random.within(500...60_000))
    case 2: reading = .slow(every: Int64(random.within(100_000_000...2_000_000_000)), bytes: random.within(1...2000))
    default: reading = .never
    }
    switch random.index(of: [85, 10, 5]) {
    case 0: goodbye = .close
    case 1: goodbye = .closeLater(random.delay())
    default: goodbye = .stay
    }
    sendBuffer = random.within(4096...300_000)
    // So much is always on its way to a client that the server need not ask (see `Connection`).
    window = 66 << 10
  }

  private static func plan(_ random: inout Random, staysOpen: Bool) -> Plan {
    let kinds: [Plan.Kind] = [.now, .task, .later, .timer, .waits, .short, .throwsRefusal, .throwsError, .stream, .garbage, .tooLarge]
    var plan = Plan(kind: kinds[random.index(of: [40, 8, 12, 5, 5, 4, 3, 3, 12, staysOpen ? 1 : 4, staysOpen ? 1 : 4])])
    plan.bodyLength = random.one(in: 3) ? random.size(0) : 0
    if plan.kind == .tooLarge { plan.bodyLength = Heads.bodyLimit + random.within(1...1000) }
    plan.wantsContinue = plan.bodyLength > 0 && random.one(in: 4)
    plan.answerSize = random.size(0)
    plan.delay = random.delay()
    plan.heedsCancel = !random.one(in: 3)
    return plan
  }

  private func append(plan: Plan, _ random: inout Random) {
    var plan = plan
    plan.start = stream.count
    if plan.kind == .garbage {
      stream += [UInt8](repeating: UInt8(ascii: "?"), count: random.within(1...3000))
      plan.end = stream.count
    } else {
      stream += [UInt8(ascii: "Q"), 0, plan.wantsContinue ? 1 : 0, 0]
      withUnsafeBytes(of: (UInt32(plans.count), UInt32(plan.bodyLength), UInt32(0))) { stream += $0 }
      // Of a body that is too large not all need come.
      let length = plan.kind == .tooLarge ? random.size(0) : plan.bodyLength
      stream += Pattern.shared.bytes(at: Pattern.offset(id: plans.count, isAnswer: false), count: length)
      plan.end = plan.start + Heads.request + plan.bodyLength
    }
    plans.append(plan)
  }

  private func makeSteps(_ random: inout Random) {
    var left = stream.count
    // Some never say all they have to say.
    if random.one(in: 12) { left = random.within(0...left) }
    let pieces = random.index(of: [60, 20, 10, 10])
    while left > 0 {
      let most =
        switch pieces {
        case 0: left
        case 1: max(1, left / 2)
        case 2: max(1, left / random.within(1...40))
        default: min(left, left > 4000 ? 4000 : random.within(1...40))
        }
      let count = min(left, random.within(1...max(1, most)) == 1 ? 1 : most)
      steps.append((random.delay(), .send(count)))
      left -= count
    }
    switch random.index(of: [60, 25, 5, 10]) {
    case 1: steps.append((random.delay(), .halfClose))
    case 2: steps.append((random.delay(), .close))
    case 3: steps.append((random.delay(), .reset))
    default: break
    }
  }
}
