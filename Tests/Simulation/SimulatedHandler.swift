// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

@testable import Loop

// What answers in a simulated world: as each request's plan says.

struct SimulatedHandler: Handler {
  /// Unowned: the world holds its station, which holds this; it outlives them and all tasks.
  unowned let world: World

  func respond(to request: SimulatedRequest, in context: Context) -> Reply<SimulatedAnswer> {
    let client = world.client(context.peer.address)
    let id = request.id
    world.rules.handlerStarts(client, request)
    guard id < client.plans.count else { return .failed(RefusalCode.garbage.refusal) }
    let plan = client.plans[id]
    unowned let world = world
    var terms = Terms()
    switch plan.kind {
    case .now:
      client.plans[id].doneAt = world.poller.clock
      return .now(.bytes(id: id, count: plan.answerSize))
    case .stream:
      let source = SimulatedSource(world, client, id, context)
      client.plans[id].source = source
      client.plans[id].doneAt = world.poller.clock
      return .now(.stream(id: id, source))
    case .throwsRefusal:
      client.plans[id].doneAt = world.poller.clock
      return .failed(RefusalCode.teapot.refusal)
    case .garbage, .tooLarge: return .failed(RefusalCode.garbage.refusal)
    case .task, .later, .throwsError, .timer: break
    case .waits: terms.waits = true
    case .short: terms.deadline = .nanoseconds(plan.allowance(0))
    }
    if plan.kind == .timer {
      context.after(.nanoseconds(plan.delay)) { world.resume(client.index, id) }
    } else if plan.kind != .task {
      world.schedule(.resume(client.index, id), after: plan.delay)
    }
    return .later(terms) { [index = client.index] in
      if plan.kind != .task { await world.suspend(index, id) }
      world.clients[index].plans[id].doneAt = world.poller.clock
      if plan.kind == .throwsError { throw Oops() }
      return .bytes(id: id, count: plan.answerSize)
    }
  }

  struct Oops: Error {}
}

// MARK: - Tasks that wait

extension World {
  /// Suspends the handler of a request until the world or its cancellation resumes it.
  func suspend(_ index: Int, _ id: Int) async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        if clients[index].plans[id].isCancelled && clients[index].plans[id].heeds {
          continuation.resume()
        } else {
          clients[index].plans[id].parked = continuation
          parked += 1
        }
      }
    } onCancel: {
      clients[index].plans[id].isCancelled = true
      if clients[index].plans[id].heeds { resume(index, id) }
    }
  }

  func resume(_ index: Int, _ id: Int) {
    guard let continuation = clients[index].plans[id].parked else { return }
    clients[index].plans[id].parked = nil
    parked -= 1
    continuation.resume()
  }
}

extension Plan {
  /// A timer of the connection's is gone with the request, so that its handler has only its cancellation to hear of it.
  var heeds: Bool { heedsCancel || kind == .timer }
}

/// A stream of pattern bytes in pieces, with pauses.
final class SimulatedSource: OutputSource, @unchecked Sendable {  // the simulation has one thread
  private unowned let world: World
  private unowned let client: Client
  private let id: Int
  private let context: Context
  private let total: Int
  private(set) var produced = 0
  private(set) var isWaiting = false
  private(set) var isEnded = false
  private(set) var isCancelled = false
  private var mustEnd = false

  init(_ world: World, _ client: Client, _ id: Int, _ context: Context) {
    self.world = world
    self.client = client
    self.id = id
    self.context = context
    total = client.plans[id].answerSize
  }

  func next(into output: inout Output) -> OutputSourceState {
    if isEnded || isCancelled { world.fail(client, "a stream was pulled after its end") }
    isWaiting = false
    let piece = min(total - produced, world.random.one(in: 4) ? world.random.within(0...20_000) : world.random.within(0...600))
    output.append(Pattern.shared.bytes(at: Pattern.offset(id: id, isAnswer: true) + produced, count: piece))
    produced += piece
    world.trace("\(client.index) stream \(id): \(produced) of \(total)")
    if produced == total || mustEnd {
      isEnded = true
      world.rules.streamMayBeOver(client)
      return .end
    }
    if world.random.one(in: 3) {
      isWaiting = true
      world.schedule(.wake(client.index, id), after: world.random.delay())
      return .wait
    }
    return .more
  }

  func cancel() {
    if isCancelled || isEnded { world.fail(client, "a stream was cancelled after its end") }
    isCancelled = true
  }

  func finish() { mustEnd = true }

  func wake() { if isWaiting { context.wake() } }
}
