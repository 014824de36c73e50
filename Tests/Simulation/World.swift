// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

@testable import Loop

// One simulated world: a listener, its connections and their clients, from the first to the end of the server. A seed makes it up.

final class World: @unchecked Sendable {  // one thread
  enum Happening {
    case connect(Int), arrive(Int), step(Int), read(Int), goodbye(Int)
    case resume(Int, Int), wake(Int, Int)
    case second, stop, shortage
  }

  /// Turns without a pause. The busiest worlds have some hundreds.
  private static let mostTurns = 20_000
  /// No client has plans for more than some minutes; these are two and a half hours.
  private static let latestEnd: Int64 = 10_000_000_000_000

  let seed: UInt64
  let fault: Fault?
  let isTraced: Bool
  var random: Random
  private(set) var violation: String?
  var clients: [Client] = []
  private var agenda = Agenda()

  private(set) var poller: SimulatedPoller!
  private(set) var kernel: SimulatedKernel!
  private(set) var rules: Rules!
  private(set) var station: Station!
  private(set) var listener: Listener!
  let admission: Admission
  let budget: Budget
  let lifeRules: LifeRules
  let handlerDeadline: Int64
  let drain: Int64
  let conversation: Conversation
  let defers: Bool

  // The server's end.
  private(set) var isStopping = false
  private(set) var stoppedAt = Moment.never
  private(set) var drainEndedAt = Moment.never
  private(set) var isCut = false
  private(set) var isEmptied = false
  private(set) var hasEnded = false
  private var endTimer: OneShot?
  /// Tasks that are suspended.
  var parked = 0

  init(seed: UInt64, fault: Fault?, isTraced: Bool) {
    self.seed = seed
    self.fault = fault
    self.isTraced = isTraced
    var random = Random(seed: seed)
    conversation = Conversation(staysOpen: random.one(in: 2), clientSpeaksFirst: !random.one(in: 4))
    defers = conversation.clientSpeaksFirst && random.one(in: 2)
    var configuration = Configuration()
    // All different, so that one taken for another shows.
    configuration.deadlines.idle = .seconds(31)
    configuration.deadlines.arrival = .seconds(29)
    configuration.deadlines.stall = .seconds(23)
    configuration.deadlines.linger = .seconds(5)
    configuration.deadlines.lingerInAll = .seconds(17)
    configuration.handlerDeadline = .seconds(41)
    lifeRules = LifeRules(configuration.deadlines)
    handlerDeadline = configuration.handlerDeadline.inNanoseconds
    drain = 10_000_000_000
    admission = Admission(maximum: random.one(in: 4) ? random.within(2...20) : 1000, perAddress: nil, allowed: [])
    budget = Budget(maximum: random.one(in: 2) ? 300_000 : 100 << 20)
    self.random = random
    poller = SimulatedPoller(self)
    kernel = SimulatedKernel(self)
    rules = Rules(self)
    configuration.fallback = Silence()
    if self.random.one(in: 2) { configuration.observer = rules }
    station = Station(
      poller: poller, kernel: kernel, exchange: Exchange(SimulatedWire(conversation: conversation), SimulatedHandler(world: self)),
      configuration: configuration, admission: admission, budget: budget, pool: nil)
    listener = Listener(kernel.listener, station: station, crew: [station])
  }

  func fail(_ client: Client?, _ rule: @autoclosure () -> String) {
    guard violation == nil else { return }
    let who = client.map { "connection \($0.index): " } ?? ""
    violation = "\(who)\(rule()), \(poller.clock.nanoseconds - 1_000_000_000_000) ns after the start"
  }

  /// Each client has an address of its own.
  func client(_ address: PeerAddress) -> Client { clients[Int(address.low & 0xffff)] }

  func trace(_ text: @autoclosure () -> String) {
    if isTraced { print("\(poller.clock.nanoseconds - 1_000_000_000_000)\t\(text())") }
  }

  // MARK: Running

  /// Lives the world to its end; what went wrong first, if anything did.
  func run(clients count: Int) -> String? {
    for index in 0..<count {
      let client = Client(index: index, staysOpen: conversation.staysOpen)
      client.makeUp(&random)
      clients.append(client)
      schedule(.connect(index), after: random.delay())
    }
    if random.one(in: 3) { kernel.limit = random.within(5...12) }
    if random.one(in: 3) { schedule(.shortage, after: random.delay()) }
    if random.one(in: 3) { schedule(.stop, after: random.delay()) }
    schedule(.second, after: 1_000_000_000)
    listener.start()
    while violation == nil {
      var turns = 0
      while violation == nil, poller.turn() {
        rules.afterTurn()
        station.endOfTurn()
        poller.clock = poller.clock + Int64(random.within(0...Int(Rules.turn)))
        turns += 1
        if turns == World.mostTurns { fail(nil, "somebody is ready for ever: the loop spins") }
      }
      rules.whenQuiet()
      guard violation == nil, advance() else { break }
    }
    if violation == nil { rules.atTheEnd() }
    endTimer?.cancel()
    station.dismantle()
    return violation
  }

  /// Goes to the next moment at which something happens. False at the end of the world.
  private func advance() -> Bool {
    if poller.clock.nanoseconds > World.latestEnd { fail(nil, "the world does not come to its end, and \(parked) tasks wait") }
    if isEmptied || hasEnded { return parked > 0 && advanceTime() }
    if !isStopping && clients.allSatisfy(\.isOver) {
      stop()
      return true
    }
    return advanceTime()
  }

  private func advanceTime() -> Bool {
    let next = min(agenda.next, poller.nextDeadline)
    guard next != .never else { return false }
    poller.clock = max(poller.clock, next)
    while violation == nil, let happening = agenda.take(until: poller.clock) { happens(happening) }
    return true
  }

  func schedule(_ happening: Happening, after delay: Int64) { agenda.add(happening, at: poller.clock + delay) }

  private func happens(_ happening: Happening) {
    switch happening {
    case .connect(let index): connect(clients[index])
    case .arrive(let index): arrive(clients[index])
    case .step(let index): step(clients[index])
    case .read(let index): read(clients[index])
    case .goodbye(let index): leave(clients[index])
    case .resume(let index, let id): resume(index, id)
    case .wake(let index, let id): clients[index].plans[id].source?.wake()
    case .second:
      station.secondPassed(dateLine: [])
      schedule(.second, after: 1_000_000_000)
    case .stop: if !isStopping { stop() }
    case .shortage: kernel.exhaustedUntil = poller.clock + Int64(random.within(1...2_000_000_000))
    }
  }

  // MARK: The server's end, as `Worker` brings it about

  private func stop() {
    trace("stop")
    isStopping = true
    stoppedAt = poller.clock
    _ = listener.close()
    kernel.closeListener()
    station.emptied = { [unowned self] in isEmptied = true }
    endTimer = OneShot(on: poller, after: .nanoseconds(drain)) { [unowned self] in
      trace("drain ended")
      drainEndedAt = poller.clock
      station.drainEnded()
      endTimer = OneShot(on: poller, after: .seconds(1)) { [unowned self] in
        trace("cut")
        isCut = true
        station.cut()
        endTimer = OneShot(on: poller, after: .seconds(1)) { [unowned self] in hasEnded = true }
      }
    }
    station.stop()
    rules.afterStep()
    station.endOfTurn()
  }
}

/// What is going to happen, in the order of time, and of making where times are equal.
private struct Agenda {
  private var heap: [(at: Moment, order: Int, happening: World.Happening)] = []
  private var order = 0

  var next: Moment { heap.first?.at ?? .never }

  mutating func add(_ happening: World.Happening, at moment: Moment) {
    order += 1
    heap.append((moment, order, happening))
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func take(until moment: Moment) -> World.Happening? {
    guard let first = heap.first, first.at <= moment else { return nil }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var parent = 0
    while 2 * parent + 1 < heap.count {
      var child = 2 * parent + 1
      if child + 1 < heap.count, isBefore(child + 1, child) { child += 1 }
      guard isBefore(child, parent) else { break }
      heap.swapAt(child, parent)
      parent = child
    }
    return first.happening
  }

  private func isBefore(_ a: Int, _ b: Int) -> Bool { (heap[a].at, heap[a].order) < (heap[b].at, heap[b].order) }
}

/// Millions of failures that were arranged are not worth a line each.
private final class Silence: Observer {}
