// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

package import Synchronization
package import Wire

// What the connections of one loop share: the kernel, the poller, buffers that are used for a moment and handed back, the pool of
// connection objects. All of it is the loop's thread's own, but for the counters.

/// One loop's part of a server, shared by all of its connections.
///
/// Its variables and those of the connections are not checked for exclusive access at run time (`@exclusivity(unchecked)`): they are
/// used on one thread, by code in which no access contains another, and the checks were a quarter of a request's instructions.
@usableFromInline
package final class Station: @unchecked Sendable {  // used on the loop's thread; what is not is atomic
  /// What is read at once into memory that all connections of the loop share. Larger requests get memory of their own.
  package static let scratchSize = 64 << 10
  /// Bytes moved for one connection in one turn; then it is the others' turn.
  package static let bytesPerTurn = 256 << 10
  /// Connection objects kept for reuse.
  static let pooled = 256
  /// Connections over the limit that are still told so; further ones are reset.
  static let courtesy = 64

  package let poller: Poller
  /// The poller's, kept: asking for it costs a call and a reference.
  let executor: any TaskExecutor
  package let kernel: Kernel
  package let exchange: Exchange
  package let rules: LifeRules
  package let handlerDeadline: Int64
  package let observer: any Observer
  /// Whether its user gave one: then connections keep a record of each request.
  package let isObserved: Bool
  package let admission: Admission
  package let budget: Budget
  package let pool: BlockingPool?

  /// The poller's moment. Without a reference counted up and down for each look at the clock: the station holds the poller.
  var now: Moment { Unmanaged.passUnretained(poller)._withUnsafeGuaranteedRef { $0.now } }

  let scratch = UnsafeMutableRawPointer.allocate(byteCount: Station.scratchSize, alignment: 64)
  /// Where answers are written. Whoever writes one sends it, or moves it away, before the stack unwinds.
  let output = UnsafeMutablePointer<Output>.allocate(capacity: 1)

  @exclusivity(unchecked) package private(set) var connections: [Connection] = []
  @exclusivity(unchecked) private var free: [Connection] = []
  /// The object of the last connection that was closed as soon as it was begun.
  @exclusivity(unchecked) private var spare: Connection?
  @exclusivity(unchecked) private var ended: [Connection] = []
  @exclusivity(unchecked) private var unsettled: [Connection] = []
  @exclusivity(unchecked) private var starved: [Connection] = []
  @exclusivity(unchecked) private var lastTicket: UInt64 = 0
  @exclusivity(unchecked) package private(set) var isStopping = false
  /// Handlers' tasks that have not ended, also those whose answer nobody waits for.
  @exclusivity(unchecked) package private(set) var liveTasks = 0
  /// Called on the thread when the last connection or task is gone.
  @exclusivity(unchecked) package var emptied: () -> Void = {}
  /// Answered 503 because the server stopped.
  @exclusivity(unchecked) package var cutHandlers = 0

  package let acceptedCount = Atomic<Int>(0)
  package let openCount = Atomic<Int>(0)
  private static let lastPeer = Atomic<UInt64>(0)

  package init(
    poller: Poller, kernel: Kernel, exchange: Exchange, configuration: Configuration, admission: Admission, budget: Budget,
    pool: BlockingPool?
  ) {
    self.poller = poller
    executor = poller.executor
    self.kernel = kernel
    self.exchange = exchange
    self.admission = admission
    self.budget = budget
    self.pool = pool
    rules = LifeRules(configuration.deadlines)
    handlerDeadline = configuration.handlerDeadline.inNanoseconds
    observer = configuration.watching
    isObserved = configuration.observer != nil
    output.initialize(to: Output())
  }

  deinit {
    scratch.deallocate()
    output.deinitialize(count: 1)
    output.deallocate()
  }

  // MARK: For the moment of one call

  /// The bytes the exchange is looking at, and how many of them its request took.
  @exclusivity(unchecked) var window = UnsafeRawBufferPointer(start: nil, count: 0)
  @exclusivity(unchecked) var consumed = 0

  // MARK: Connections

  /// Takes over an accepted descriptor.
  package func adopt(_ descriptor: Int32, from address: PeerAddress) {
    acceptedCount.add(1, ordering: .relaxed)
    if admission.entersUnseen() { return take(descriptor, address, nil) }
    guard admission.lets(address) else { return turnAway(descriptor, address, .gate) }
    let refusal = admission.enter(address)
    if refusal != nil && admission.isFarOver(by: Self.courtesy) {
      admission.leave(address)
      return turnAway(descriptor, address, .limit)
    }
    take(descriptor, address, refusal)
  }

  /// Most connections are answered and closed in `begin`. They are not listed, and their object is the next one's at once: no callback
  /// of it is on the stack.
  private func take(_ descriptor: Int32, _ address: PeerAddress, _ refusal: Refusal?) {
    let connection = spare.take() ?? free.popLast() ?? Connection(self)
    connection.slot = -1
    openCount.store(connections.count + 1, ordering: .relaxed)
    var peer = Peer(id: Self.lastPeer.add(1, ordering: .relaxed).newValue, address: address)
    if address.family == .unix, let process = kernel.credentials(descriptor) {
      peer.credentials = UnixCredentials(pid: process.pid, uid: process.uid, gid: process.gid)
    }
    if isObserved { observer.accepted(peer) }
    connection.begin(descriptor, peer, refusal)
    if connection.isClosed {
      spare = connection
    } else {
      connection.slot = connections.count
      connections.append(connection)
    }
  }

  private func turnAway(_ descriptor: Int32, _ address: PeerAddress, _ reason: TurnAwayReason) {
    kernel.reset(descriptor)
    observer.turnedAway(address, reason)
  }

  /// The connection is closed; its object is kept until nothing of it can be on the stack.
  func remove(_ connection: Connection) {
    admission.leave(connection.peer.address)
    if connection.slot >= 0 {
      ended.append(connection)  // before the list lets go of it: nobody on the stack need hold it
      let last = connections.removeLast()
      if last !== connection {
        connections[connection.slot] = last
        last.slot = connection.slot
      }
    }
    openCount.store(connections.count, ordering: .relaxed)
    checkEmpty()
  }

  /// The connection tells the poller what it waits for at the end of the turn. It may be in the list twice, or closed by then.
  func settleLater(_ connection: Connection) { unsettled.append(connection) }

  /// Before the poller waits: settles what was put off, frees what ended in this turn.
  package func endOfTurn() {
    while let connection = unsettled.popLast() { if !connection.isClosed { connection.tellPoller() } }
    while let connection = ended.popLast() { recycle(connection) }
  }

  private func recycle(_ connection: Connection) {
    if free.count < Self.pooled {
      free.append(connection)
    } else {
      poller.forget(connection)
    }
  }

  func nextTicket() -> UInt64 {
    lastTicket &+= 1
    return lastTicket
  }

  // MARK: Handlers that answer later

  func taskBegan() { liveTasks += 1 }

  func taskEnded() {
    liveTasks -= 1
    checkEmpty()
  }

  private func checkEmpty() {
    if isStopping && connections.isEmpty && liveTasks == 0 { poller.later { [self] in emptied() } }
  }

  // MARK: Memory

  /// The connection waits until memory is given back. A second later it looks by itself: another loop may have given it back.
  func starve(_ connection: Connection) { starved.append(connection) }

  func giveBack(_ count: Int, from peer: UInt64) {
    budget.give(back: count, from: peer)
    if !starved.isEmpty { poller.later { [self] in feed() } }
  }

  private func feed() {
    let waiting = starved
    starved.removeAll()
    for connection in waiting { connection.feed() }
  }

  /// Once a second.
  package func secondPassed(dateLine: [UInt8]) {
    output.pointee.dateLine = dateLine
    if !starved.isEmpty { feed() }
  }

  // MARK: Stopping

  package func stop() {
    isStopping = true
    for connection in connections.reversed() { connection.stop() }
    checkEmpty()
  }

  package func drainEnded() { for connection in connections.reversed() { connection.drainEnded() } }

  package func cut() { for connection in connections.reversed() { connection.cut() } }

  /// After the loop has ended: breaks the circle between the station and its pooled connections.
  package func dismantle() {
    endOfTurn()
    if let spare { free.append(spare) }
    spare = nil
    for connection in free { poller.forget(connection) }
    free.removeAll()
    emptied = {}
  }
}
