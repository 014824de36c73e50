// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Dispatch
import Glibc
import Loop
import Synchronization
import Wire

// The door's watch over itself, on a thread of its own with plain blocking calls, so that it works when no loop does. It asks each listening
// address for /hello as a client would, reads the stamps of the loops, reopens a listener that died, and keeps systemd informed.

/// The self-probe.
final class Probe: Sendable {
  /// What became of one question.
  enum Answer: String, Sendable {
    case hit
    /// Nobody listens there any more.
    case dead
    /// There is a listener, and no answer within the time limit.
    case silent
    /// The question could not be asked: no descriptor, no port. Says nothing of the listener.
    case unasked
  }

  /// What is known of one address.
  struct Target: Sendable {
    let address: BoundAddress
    var last: Answer?
    /// In a row.
    var misses = 0
    /// Clients have no answer from it, for longer than one question and whatever the probe did.
    var isLost = false
    var reopened = 0
  }

  /// Its own pace, apart from how often it asks. A test has less patience.
  struct Pace: Sendable {
    /// How often it looks at the loops' stamps.
    var tick = Duration.seconds(1)
    /// A loop whose stamp is older has not come round: it stamps once a second.
    var stale = Duration.seconds(5)
    /// For an answer, in seconds.
    var patience = 5
  }

  /// A watchdog that wants more signs of life than this goes without: they must not cost a processor.
  private static let shortestSign = Duration.milliseconds(100)

  private let server: Server
  private let interval: Duration
  private let manager: ServiceManager
  private let mark: ProbeMark
  private let pace: Pace
  private let log: @Sendable (String) -> Void
  private let targets: Locked<[Target]>
  private let ending = DispatchSemaphore(value: 0)
  /// The door stops: what a probe still finds means nothing.
  private let isEnding = Atomic<Bool>(false)

  init(
    _ server: Server, interval: Duration, manager: ServiceManager, mark: ProbeMark, pace: Pace = Pace(),
    log: @escaping @Sendable (String) -> Void
  ) {
    self.server = server
    self.interval = interval
    self.manager = manager
    self.mark = mark
    self.pace = pace
    self.log = log
    targets = Locked(server.addresses.map { Target(address: $0) })
  }

  /// What is known now. Any thread.
  var state: [Target] { targets.withLock { $0 } }

  /// Starts the thread, if there is anything to do. Once.
  func start() {
    if interval > .zero || manager.watchdogInterval != nil { startOwnThread("doord-probe") { self.run() } }
  }

  /// Ends the thread after what it is doing.
  func finish() {
    isEnding.store(true, ordering: .relaxed)
    ending.signal()
  }

  private func run() {
    let clock = ContinuousClock()
    var nextProbe = clock.now + interval
    var nextSign = clock.now
    var stale: Set<Int> = []
    let tick = min(pace.tick, max(manager.watchdogInterval ?? pace.tick, Probe.shortestSign))
    while ending.wait(timeout: .now() + .microseconds(tick.microseconds)) == .timedOut {
      watchLoops(&stale)
      if interval > .zero && clock.now >= nextProbe {
        probeAll()
        nextProbe = clock.now + interval
      }
      if let watchdog = manager.watchdogInterval, clock.now >= nextSign {
        let isHanging = !stale.isEmpty || state.contains(where: \.isLost)
        if !isHanging { manager.notify("WATCHDOG=1") }
        nextSign = clock.now + watchdog
      }
    }
  }

  /// Names each loop that hangs once, and once when it is back.
  private func watchLoops(_ stale: inout Set<Int>) {
    for (index, loop) in server.status.loops.enumerated() {
      let age = loop.age
      if age > pace.stale {
        if stale.insert(index).inserted { log("loop \(index) hangs: it has not come round for \(age.milliseconds) ms") }
      } else if stale.remove(index) != nil {
        log("loop \(index) has come round again")
      }
    }
  }

  private func probeAll() {
    for (index, target) in state.enumerated() {
      let answer = ask(target.address)
      if isEnding.load(ordering: .relaxed) { return }
      let misses = targets.withLock { targets in
        targets[index].last = answer
        switch answer {
        case .hit:
          targets[index].misses = 0
          targets[index].isLost = false
        case .dead, .silent:
          targets[index].misses += 1
        case .unasked: break
        }
        return targets[index].misses
      }
      switch answer {
      case .hit: if target.misses >= 2 { log("\(target.address) answers again") }
      case .unasked: if target.last != .unasked { log("the probe cannot ask \(target.address): no descriptor or port is free") }
      case .silent:
        if misses == 2 { log("\(target.address) accepts and does not answer") }
        targets.withLock { $0[index].isLost = misses >= 2 }
      case .dead where misses >= 2:
        let problem = reopen(index, target.address)
        targets.withLock { $0[index].isLost = problem != nil }
        if let problem, misses == 2 { log("\(target.address) is dead to clients and was not reopened: \(problem)") }
      case .dead: break
      }
    }
  }

  /// Has a dead listener opened anew; the server says so itself. It waits for the loops to do it, but not for long: one that hangs will not.
  /// The problem, if it is not open again.
  private func reopen(_ index: Int, _ address: BoundAddress) -> String? {
    let done = DispatchSemaphore(value: 0)
    let problem = Locked<String?>("the loop takes too long")
    Task.detached { [server, targets] in
      do {
        let wasDead = try await server.reopen(address)
        if wasDead { targets.withLock { $0[index].reopened += 1 } }
        problem.withLock { $0 = wasDead ? nil : "the listener itself is not" }
      } catch {
        problem.withLock { $0 = "\(error)" }
      }
      done.signal()
    }
    _ = done.wait(timeout: .now() + 5)
    return problem.withLock { $0 }
  }

  /// Asks one address. The socket has its local port before it connects, so that the server knows it from the first packet on.
  private func ask(_ address: BoundAddress) -> Answer {
    let client = ProbeClient(timeout: pace.patience)
    switch address {
    case .unix(let path): return client.ask(unix: path)
    case .tcp(let address):
      return client.ask(address.reachable) { [server, mark] local, body in
        server.exempt(local)
        mark.set(local)
        defer {
          server.endExemption(local)
          mark.set(.unknown)
        }
        return body()
      }
    }
  }
}

extension PeerAddress {
  /// Where to connect to reach a listener: loopback for one on every address.
  fileprivate var reachable: PeerAddress {
    switch (family, high, low) {
    case (.ipv4, 0, 0xffff_0000_0000): PeerAddress(ipv4: 0x7f00_0001, port: port)
    case (.ipv6, 0, 0): PeerAddress(family: .ipv6, high: 0, low: 1, port: port)
    default: self
    }
  }
}
