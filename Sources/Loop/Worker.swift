// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc
internal import Synchronization

// One loop of a server: its thread, its station, its listeners. Begun from any thread; everything after `start` is on the loop's thread.

final class Worker: @unchecked Sendable {  // `listeners` and what follows are the loop's thread's own, from `start` on
  /// After the drain deadline: what is left of answers is given this long, and then tasks that ignore cancellation this long again.
  static let lastGrace: Duration = .seconds(1)

  let loop: EventLoop
  let station: Station
  private unowned let server: Server
  private var listeners: [(listener: Listener, descriptor: Descriptor, address: BoundAddress)] = []
  /// Set before the thread ends: tasks that were given up.
  private(set) var abandoned = 0
  private var isCut = false
  /// The next step of the end. It holds this worker, so it is cancelled with the loop.
  private var deadline: OneShot?

  init?(index: Int, server: Server) {
    guard let loop = EventLoop(index: index) else { return nil }
    self.loop = loop
    self.server = server
    station = Station(
      poller: loop, kernel: Kernel(), exchange: server.exchange, configuration: server.configuration, admission: server.admission,
      budget: server.budget, pool: server.pool)
  }

  /// Before `start`, or on the thread.
  func listen(on descriptor: Descriptor, of address: BoundAddress, crew: [Station]) {
    listeners.append((Listener(descriptor.number, station: station, crew: crew), descriptor, address))
  }

  /// Starts the thread, which keeps the server alive until the loop has ended: a server that nobody else holds goes on. False if the
  /// system has no thread to give.
  func start() -> Bool {
    let station = station
    loop.endOfTurn = { station.endOfTurn() }
    loop.secondPassed = { station.secondPassed(dateLine: dateLine(at: $0)) }
    loop.turnWasLong = { [index = loop.index] in station.observer.turnWasLong(loop: index, .nanoseconds($0)) }
    loop.willClose = { [unowned self] in
      deadline?.cancel()
      deadline = nil
      station.dismantle()
    }
    return startThread(named: "door-loop-\(loop.index)") { [self, server] in
      for entry in listeners { entry.listener.start() }
      loop.run()
      server.ended(self)
    }
  }

  var status: LoopStatus {
    LoopStatus(
      lastTurn: loop.lastTurn.load(ordering: .relaxed), longestTurn: .nanoseconds(loop.longestTurn.load(ordering: .relaxed)),
      accepted: station.acceptedCount.load(ordering: .relaxed), openConnections: station.openCount.load(ordering: .relaxed))
  }

  // MARK: The end, on the thread

  /// Takes connections also before they have sent something, from here on. What the kernel holds back until then is not in the queue that
  /// is accepted at the end, and would be reset with the listener.
  func stopDeferring() {
    for entry in listeners { entry.descriptor.stopDeferring() }
  }

  /// Accepts what is queued and closes the listeners.
  func closeListeners() -> Int {
    defer { listeners.removeAll() }
    return listeners.reduce(0) { sum, entry in
      defer { entry.descriptor.close() }
      return sum + entry.listener.close()
    }
  }

  /// Finishes what runs. The loop ends when nothing is left, at the latest some seconds after the drain deadline.
  func drain(within limit: Duration) {
    station.emptied = { [loop] in loop.end() }
    if !isCut {
      deadline = OneShot(on: loop, after: limit) { [self] in
        station.drainEnded()
        deadline = OneShot(on: loop, after: Self.lastGrace) { [self] in cut() }
      }
    }
    station.stop()
    if isCut { cutConnections() }
  }

  /// Waits for no client any more; for tasks, a moment. Before `drain`, it makes that a short one.
  func cut() {
    guard !isCut else { return }
    isCut = true
    if station.isStopping { cutConnections() }
  }

  private func cutConnections() {
    deadline?.cancel()
    station.cut()
    deadline = OneShot(on: loop, after: Self.lastGrace) { [self] in
      abandoned = station.liveTasks
      loop.end()
    }
  }

  // MARK: Reopening a listener

  /// Whether the listener at `address` no longer listens.
  func isDead(_ address: BoundAddress) -> Bool {
    listeners.contains { entry in
      guard entry.address == address else { return false }
      return entry.listener.isDead || !entry.descriptor.isListening
    }
  }

  func close(_ address: BoundAddress) {
    for entry in listeners where entry.address == address {
      _ = entry.listener.close()
      entry.descriptor.close()
    }
    listeners.removeAll { $0.address == address }
  }

  func listenAnew(on descriptor: Descriptor, of address: BoundAddress, crew: [Station]) {
    listen(on: descriptor, of: address, crew: crew)
    listeners.last?.listener.start()
  }
}
