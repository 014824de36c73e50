// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

@testable import Loop

// The judgements: may this be refused, may this be closed, was an answer eaten; and when the world is quiet, does every connection wait
// for what it has to wait for, and until when.

extension Rules {
  private var life: LifeRules { world.lifeRules }

  // MARK: Deadlines, as the design states them

  private func arrivalDeadline(_ client: Client) -> Moment {
    if client.current == 0 { return client.acceptedAt + life.arrival }
    let first = client.current < client.plans.count ? client.plans[client.current].firstByteAt : nil
    return max(first ?? client.lastReceived, client.lastDrained) + life.arrival
  }

  private func idleDeadline(_ client: Client) -> Moment {
    let idle = (client.current == 0 ? client.acceptedAt : client.lastDrained) + life.idle
    return world.isStopping ? min(idle, max(world.stoppedAt, client.acceptedAt) + ConnectionLife.stoppingIdle) : idle
  }

  private func handlerDeadline(_ client: Client) -> Moment { client.plans[client.started - 1].handlerDeadline }

  private func lingerDeadline(_ client: Client) -> Moment {
    min(client.lastReceived + life.linger, client.endedAt + life.lingerInAll)
  }

  private func isDue(_ deadline: Moment) -> Bool { deadline <= now && now <= deadline + Rules.turn }

  private func taken(_ client: Client, since moment: Moment) -> Int {
    client.takenAt.reduce(0) { $1.at > moment ? $0 + $1.count : $0 }
  }

  // MARK: Refusals

  func mayRefuse(_ client: Client, _ code: RefusalCode) -> Bool {
    let plan = client.current < client.plans.count ? client.plans[client.current] : nil
    // Behind an answer that the kernel did not take at once a refusal may wait.
    let waited = client.wasBlocked
    switch code {
    case .garbage: return plan == nil ? client.isPartial : plan?.kind == .garbage && client.isPartial
    case .tooLarge: return plan?.kind == .tooLarge && client.read >= (plan?.start ?? 0) + Heads.request
    case .teapot: return plan?.kind == .throwsRefusal && plan?.doneAt != nil
    case .failed: return plan?.kind == .throwsError && plan?.doneAt != nil
    case .arrival: return client.isPartial && (isDue(max(arrivalDeadline(client), plan?.firstByteAt ?? client.acceptedAt)) || waited)
    case .handler:
      guard let plan, plan.startedAt != nil, !plan.isDone(by: plan.handlerDeadline + -1) else { return false }
      return isDue(plan.handlerDeadline) || waited && now >= plan.handlerDeadline
    case .stopping:
      return now >= world.drainEndedAt && (plan?.startedAt != nil && plan?.isDone(by: world.drainEndedAt) != true || client.isPartial)
    case .tooMany: return client.isOverLimit && client.read == 0 && now == client.acceptedAt
    }
  }

  // MARK: Closing

  func checkClose(_ client: Client, isReset: Bool) {
    if world.isCut || client.sawReset {
      client.isExcused = true
      return
    }
    if isReset { return checkReset(client) }
    if client.serverEnded {
      if !client.readEnd && !isDue(lingerDeadline(client)) { world.fail(client, "stopped lingering too soon or too late") }
      client.isExcused = true
    } else if client.isRunning(at: now) {
      if !(client.readEnd && client.plans[client.started - 1].kind == .waits && !client.isBlocked) {
        world.fail(client, "closed while its handler runs")
      }
    } else if client.owesBytes(at: now) {
      if !(client.readEnd && client.streamWaits) { world.fail(client, "closed with an answer unsent") }
    } else if client.isFinal {
      if !client.readEnd && client.hadUnread && client.sent > client.read { world.fail(client, "closed with bytes unread") }
      if !client.readEnd && !client.staysOpen && client.unsent > 0 && client.taken > 64 << 10 {
        world.fail(client, "closed with much of its answer still queued")
      }
      let end = client.plans[min(client.current, client.plans.count) - 1].end
      if !client.readEnd && (client.isRefused || !client.staysOpen && client.read > end) {
        world.fail(client, "closed where it should linger")
      }
    } else if client.isPartial {
      let isWhole =
        client.current < client.plans.count && !client.plans[client.current].isBad && client.read >= client.plans[client.current].end
      if isWhole && !world.isStopping { world.fail(client, "closed with a whole request unanswered") }
      if !client.readEnd && !world.isStopping { world.fail(client, "closed in the middle of a request") }
    } else {
      let mayStop = world.isStopping && (client.current > 0 || now >= world.drainEndedAt)
      if !client.readEnd && !mayStop && !isDue(idleDeadline(client)) { world.fail(client, "closed while idle, too soon or too late") }
      client.isExcused = true
    }
  }

  private func checkReset(_ client: Client) {
    // Turned away, before there was anything.
    if now == client.acceptedAt && client.read == 0 && !client.isFinal { return }
    guard client.owesBytes(at: now), !client.isRunning(at: now), let since = client.blockedSince, since + life.stall <= now else {
      return world.fail(client, "reset without reason")
    }
    let count = taken(client, since: now + -life.stall)
    if count >= ConnectionLife.stallBytes { world.fail(client, "cut although it took \(count) bytes in the stall window") }
  }

  /// The server's kernel resets a client: no part of an answer may be lost by it.
  func eaten(_ client: Client) {
    guard client.canAct, !client.isExcused else { return }
    if client.unsent > 0 { world.fail(client, "the end of an answer was eaten by a reset") }
    if client.isRefused && client.unread > 0 { world.fail(client, "a refusal was eaten by a reset") }
  }

  // MARK: After each step, after each turn

  func afterStep() {
    if world.station.connections.count != world.admission.openConnections { world.fail(nil, "connections are counted wrongly") }
  }

  func afterTurn() {
    for client in open where client.descriptor >= 0 && client.serverClosed { world.fail(client, "closed and still open") }
  }

  // MARK: When nobody is ready and time is about to pass

  func whenQuiet() {
    var entries: [Int32: SimulatedPoller.Entry] = [:]
    for entry in world.poller.entries {
      guard let waiter = entry.waiter, waiter.descriptor >= 0 else { continue }
      entries[waiter.descriptor] = entry
    }
    checkListener(entries[world.kernel.listener])
    for client in open where world.violation == nil {
      check(client, entries[client.descriptor] ?? SimulatedPoller.Entry())
    }
  }

  private func checkListener(_ entry: SimulatedPoller.Entry?) {
    if world.isStopping { return }
    guard let entry, entry.reads || entry.deadline <= now + Listener.pause else { return world.fail(nil, "nobody listens any more") }
    if entry.reads && !world.kernel.queue.isEmpty { world.fail(nil, "a connection is not accepted") }
  }

  private func check(_ client: Client, _ entry: SimulatedPoller.Entry) {
    let mayRead =
      !client.readEnd && client.read - (client.started > 0 ? client.plans[client.started - 1].end : 0) < ConnectionLife.extraLimit
    if client.serverEnded {
      expect(client, entry, reads: true, deadline: lingerDeadline(client), "lingering")
    } else if client.isRunning(at: now) {
      (client.blockedSince, client.takenAt) = (client.isBlocked ? now : nil, [])
      expect(client, entry, reads: mayRead, deadline: handlerDeadline(client), "while its handler runs")
    } else if client.streamWaits {
      (client.blockedSince, client.takenAt) = (nil, [])
      expect(client, entry, reads: mayRead, deadline: .never, "while its stream waits")
    } else if client.owesBytes(at: now) {
      checkBlocked(client, entry)
    } else if client.isFinal {
      world.fail(client, "has its answer and is neither closed nor lingering")
    } else if client.isPartial {
      let isStarved = !entry.reads && world.budget.usedBytes > 0
      expect(client, entry, reads: !isStarved, deadline: arrivalDeadline(client), "in the middle of a request")
    } else {
      expect(client, entry, reads: true, deadline: idleDeadline(client), "idle")
    }
  }

  private func expect(_ client: Client, _ entry: SimulatedPoller.Entry, reads: Bool, deadline: Moment, _ when: String) {
    if entry.reads != reads { world.fail(client, "\(reads ? "does not read" : "reads") \(when)") }
    if entry.deadline != deadline {
      world.fail(client, "has its deadline \(entry.deadline.nanoseconds &- deadline.nanoseconds) ns too late \(when)")
    }
  }

  private func checkBlocked(_ client: Client, _ entry: SimulatedPoller.Entry) {
    if !entry.writes { world.fail(client, "does not wait for room to send") }
    if entry.deadline <= now || entry.deadline > now + life.stall { world.fail(client, "has no deadline to send") }
    let since = client.blockedSince ?? now
    client.blockedSince = since
    // Windows follow each other, and each that was passed had its 30 KiB.
    if since + 2 * life.stall <= now && taken(client, since: now + -2 * life.stall) < ConnectionLife.stallBytes {
      world.fail(client, "is not cut although it took too little for two stall windows")
    }
  }
}
