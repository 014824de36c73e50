// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

@testable import Loop

// What must hold in a simulated world, seen from outside: by the bytes, the descriptors and the deadlines, never by asking the
// connection. This file notes what happens; Rules+Checks judges it.

final class Rules: Observer, @unchecked Sendable {  // one thread
  /// Deadlines are told in the first turn after them, which is at most so much later here.
  static let turn: Int64 = 50_000

  unowned let world: World
  private var reportedAccepted = 0
  private var reportedClosed = 0
  private(set) var open: [Client] = []

  init(_ world: World) { self.world = world }

  var now: Moment { world.poller.clock }

  // MARK: As observer

  func accepted(_ peer: Peer) { reportedAccepted += 1 }

  func answered(_ answer: AnswerRecord) { world.client(answer.peer.address).reported += 1 }

  func closed(_ peer: Peer, _ reason: CloseReason) {
    reportedClosed += 1
    let client = world.client(peer.address)
    // Of answers that were lost with the connection some may have been reported.
    let isExact = reason != .reset && reason != .stall && reason != .stopped
    if client.reported < client.current || isExact && client.reported > client.current {
      world.fail(client, "\(client.reported) answers were reported and \(client.current) given")
    }
  }

  // MARK: What the kernel sees

  func neverAccepted(_ client: Client) {
    world.trace("\(client.index) never accepted")
    client.wasReset = true
    client.serverClosed = true
  }

  func accepted(_ client: Client) {
    world.trace("\(client.index) accepted as \(client.descriptor)")
    client.acceptedAt = now
    client.isOverLimit = world.admission.openConnections >= world.admission.maximum
    open.append(client)
  }

  func received(_ client: Client) {
    client.lastReceived = now
    noteFirstByte(client)
    if world.fault == .arrivalPushed && client.isPartial { world.poller.postpone(client.descriptor, to: now + world.lifeRules.arrival) }
  }

  private func noteFirstByte(_ client: Client) {
    guard client.current < client.plans.count, client.read > client.plans[client.current].start else { return }
    if client.plans[client.current].firstByteAt == nil { client.plans[client.current].firstByteAt = now }
  }

  func handlerStarts(_ client: Client, _ request: SimulatedRequest) {
    let id = request.id
    world.trace("\(client.index) handler \(id) starts: \(id < client.plans.count ? "\(client.plans[id].kind)" : "?")")
    guard id == client.started, id < client.plans.count else { return world.fail(client, "request \(id) instead of \(client.started)") }
    let plan = client.plans[id]
    if plan.isBad || client.isFinal { world.fail(client, "request \(id) was not to be served") }
    if client.isRunning(at: now) { world.fail(client, "two handlers at the same time") }
    if client.read < plan.end { world.fail(client, "request \(id) was served before it was read") }
    let body = Pattern.shared.bytes(at: Pattern.offset(id: id, isAnswer: false), count: plan.bodyLength)
    if !request.body.withUnsafeBytes({ $0.elementsEqual(body) }) { world.fail(client, "the body of request \(id) is not what was sent") }
    client.started += 1
    client.plans[id].startedAt = now
    client.plans[id].handlerDeadline = now + client.plans[id].allowance(world.handlerDeadline)
  }

  /// The server sent the end of stream.
  func ended(_ client: Client) {
    world.trace("\(client.index) lingers")
    client.endedAt = now
    client.lastReceived = now
    if client.isRunning(at: now) || client.owesBytes(at: now) || client.current == 0 && !client.isFinal {
      world.fail(client, "the end of stream came before the answer")
    }
  }

  func offered(_ client: Client, _ total: Int, _ taken: Int) {
    client.isBlocked = taken < total
    client.taken += taken
    if taken > 0 { client.takenAt.append((now, taken)) }
    if client.isBlocked {
      client.blockedSince = client.blockedSince ?? now
      client.wasBlocked = true
    } else if client.current == client.started {
      // All is sent; what comes next has a window of its own.
      (client.blockedSince, client.takenAt) = (nil, [])
    }
    if client.takenAt.count > 4096 { client.takenAt.removeFirst(2048) }
  }

  // MARK: What the server says

  /// Bytes the kernel took.
  func took(_ client: Client, _ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty, world.violation == nil {
      if client.isStreaming || client.bodyLeft > 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(tookBody(client, rest)))
      } else {
        client.head.append(rest[0])
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
        let isLong = client.head[0] == UInt8(ascii: "A") || client.head[0] == UInt8(ascii: "S")
        if client.head.count == (isLong ? Heads.answer : Heads.short) { tookHead(client) }
      }
    }
  }

  private func tookBody(_ client: Client, _ bytes: UnsafeRawBufferPointer) -> Int {
    let source = client.plans[client.current].source
    let limit = client.isStreaming ? (source?.produced ?? 0) - client.streamed : client.bodyLeft
    let count = min(bytes.count, limit)
    guard count > 0 else {
      world.fail(client, "bytes behind the stream of answer \(client.current)")
      return bytes.count
    }
    let expected = Pattern.shared.bytes(at: client.bodyAt, count: count)
    if !bytes.prefix(count).elementsEqual(expected) { world.fail(client, "wrong bytes in answer \(client.current)") }
    client.bodyAt += count
    if client.isStreaming {
      client.streamed += count
      streamMayBeOver(client)
    } else {
      client.bodyLeft -= count
      if client.bodyLeft == 0 { answerIsWhole(client) }
    }
    return count
  }

  /// A stream's last bytes were taken, or it ended without any more.
  func streamMayBeOver(_ client: Client) {
    guard client.isStreaming, let source = client.plans[client.current].source, source.isEnded else { return }
    if client.streamed == source.produced { answerIsWhole(client) }
  }

  private func tookHead(_ client: Client) {
    let head = client.head
    client.head = []
    if client.isFinal { return world.fail(client, "an answer after the last") }
    switch head[0] {
    case UInt8(ascii: "A"), UInt8(ascii: "S"): tookAnswer(client, head)
    case UInt8(ascii: "E"): tookRefusal(client, RefusalCode(rawValue: head[1]))
    case UInt8(ascii: "C"):
      let isDue = client.current < client.plans.count && client.plans[client.current].wantsContinue
      guard isDue, !client.plans[client.current].saidContinue, !client.isRunning(at: now) else {
        return world.fail(client, "leave to send nobody asked for")
      }
      client.plans[client.current].saidContinue = true
    default: world.fail(client, "bytes that are no answer")
    }
  }

  private func tookAnswer(_ client: Client, _ head: [UInt8]) {
    let (id, count) = head.withUnsafeBytes {
      (Int($0.loadUnaligned(fromByteOffset: 4, as: UInt32.self)), Int($0.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
    }
    guard id == client.current, id < client.plans.count else { return world.fail(client, "answer \(id) instead of \(client.current)") }
    let plan = client.plans[id]
    guard plan.isDone(by: plan.handlerDeadline + Rules.turn), !plan.isTimedOut else {
      return world.fail(client, "an answer that the handler has not given, or too late")
    }
    world.trace("\(client.index) answer \(id)")
    client.bodyAt = Pattern.offset(id: id, isAnswer: true)
    if head[0] == UInt8(ascii: "S") {
      if plan.kind != .stream { world.fail(client, "a stream nobody asked for") }
      client.isStreaming = true
      client.streamed = 0
      streamMayBeOver(client)
    } else {
      if plan.kind == .stream || count != plan.answerSize { world.fail(client, "another answer than the handler's") }
      client.bodyLeft = count
      if count == 0 { answerIsWhole(client) }
    }
  }

  private func tookRefusal(_ client: Client, _ code: RefusalCode?) {
    world.trace("\(client.index) refusal \(code.map { "\($0)" } ?? "?") for \(client.current)")
    guard let code, mayRefuse(client, code) else {
      return world.fail(client, "refused for \(code.map { "\($0)" } ?? "nothing") without reason")
    }
    switch code {
    case .garbage, .tooLarge, .arrival, .tooMany:
      client.isRefused = true
      client.isFinal = true
    case .stopping: client.isFinal = true
    case .handler: client.plans[client.current].isTimedOut = true
    case .teapot, .failed: break
    }
    answerIsWhole(client)
  }

  private func answerIsWhole(_ client: Client) {
    client.isStreaming = false
    client.current += 1
    client.lastDrained = now
    if !client.staysOpen { client.isFinal = true }
    noteFirstByte(client)
  }

  // MARK: The end

  func closes(_ client: Client, isReset: Bool) {
    world.trace("\(client.index) closed\(isReset ? " by reset" : "")")
    checkClose(client, isReset: isReset)
    open.removeAll { $0 === client }
  }

  func atTheEnd() {
    let station: Station = world.station
    if let client = open.first { world.fail(client, "was never closed") }
    if world.kernel.openDescriptors != 0 { world.fail(nil, "\(world.kernel.openDescriptors) descriptors are left open") }
    if !station.connections.isEmpty || world.admission.openConnections != 0 { world.fail(nil, "connections are still counted") }
    if station.liveTasks != 0 { world.fail(nil, "\(station.liveTasks) tasks are still counted") }
    if world.budget.usedBytes != 0 { world.fail(nil, "\(world.budget.usedBytes) bytes of the budget were not given back") }
    if reportedAccepted != reportedClosed {
      world.fail(nil, "\(reportedAccepted) connections were reported accepted, \(reportedClosed) closed")
    }
    if !world.isEmptied && !world.hasEnded { world.fail(nil, "the server does not come to its end") }
    for client in world.clients {
      if let source = client.plans.first(where: { $0.source.map { !$0.isEnded && !$0.isCancelled } ?? false }) {
        world.fail(client, "a stream was neither ended nor cancelled (\(source.kind))")
      }
    }
  }
}

extension Client {
  /// The handler that started last has neither answered nor run out of time.
  func isRunning(at now: Moment) -> Bool {
    guard started > current else { return false }
    let plan = plans[started - 1]
    return plan.doneAt == nil && !plan.isTimedOut && now < plan.handlerDeadline
  }

  /// Every request that was begun has its answer, which may be under way.
  var isServed: Bool { started > 0 && plans[started - 1].doneAt != nil }

  /// In the middle of an answer, or one is due and not sent.
  func owesBytes(at now: Moment) -> Bool {
    if !head.isEmpty || bodyLeft > 0 || isStreaming || isBlocked { return true }
    return started > current && (plans[current].doneAt != nil || now >= plans[current].handlerDeadline)
  }

  /// A part of the next request was read.
  var isPartial: Bool {
    if isFinal || started > current { return false }
    return read > (current < plans.count ? plans[current].start : plans.last.map(\.end) ?? 0)
  }

  /// The stream under way has nothing to send.
  var streamWaits: Bool {
    guard isStreaming, current < plans.count, let source = plans[current].source else { return false }
    return source.isWaiting && streamed == source.produced
  }
}
