// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

@testable import Loop

// The clock and the poller of a simulated world: who waits for what, who is ready, in an order of chance.

final class SimulatedPoller: Poller, @unchecked Sendable {  // one thread
  /// What the poller was told of one waiter, and acts on: a planted fault may make it differ from what the waiter believes.
  struct Entry {
    var waiter: Waiter?
    var reads = false
    var writes = false
    var deadline = Moment.never
    /// Counts changes: a readiness that was found before one is void, as in libev.
    var generation = 0
  }

  private enum Job {
    case task(UnownedJob)
    case closure(() -> Void)
  }

  unowned let world: World
  var clock = Moment(nanoseconds: 1_000_000_000_000)
  private(set) var entries: [Entry] = []
  private var free: [Int] = []
  private var jobs: [Job] = []
  private lazy var tasks = Tasks(self)

  init(_ world: World) { self.world = world }

  // MARK: As the station uses it

  override var now: Moment { clock }
  override var executor: any TaskExecutor { tasks }
  override var isCurrent: Bool { true }

  @discardableResult
  override func submit(_ body: @escaping @Sendable () -> Void) -> Bool {
    jobs.append(.closure(body))
    return true
  }

  override func later(_ body: @escaping () -> Void) { jobs.append(.closure(body)) }

  override func interestChanged(_ waiter: Waiter) {
    let index = entry(of: waiter)
    entries[index].generation += 1
    if world.fault == .watcherLeft && !waiter.reads && !waiter.writes { return }
    if world.fault == .missedEnd && waiter.reads && entries[index].generation > 2 && waiter is Listener == false { return }
    entries[index].reads = waiter.reads
    entries[index].writes = waiter.writes
  }

  override func deadlineChanged(_ waiter: Waiter) {
    if world.fault == .deafListener && waiter is Listener { return }
    entries[entry(of: waiter)].deadline = waiter.deadline
  }

  override func forget(_ waiter: Waiter) {
    stop(waiter)
    guard let index = index(of: waiter) else { return }
    entries[index] = Entry(generation: entries[index].generation + 1)
    free.append(index)
    waiter.watch = nil
  }

  private func index(of waiter: Waiter) -> Int? { waiter.watch.map { Int(bitPattern: $0) - 1 } }

  private func entry(of waiter: Waiter) -> Int {
    if let index = index(of: waiter) { return index }
    let index = free.popLast() ?? entries.count
    if index == entries.count { entries.append(Entry()) }
    entries[index].waiter = waiter
    waiter.watch = UnsafeMutableRawPointer(bitPattern: index + 1)
    return index
  }

  // MARK: For the rules and the faults

  func entry(on descriptor: Int32) -> Entry? {
    entries.first { $0.waiter?.descriptor == descriptor && ($0.reads || $0.writes || $0.deadline != .never) }
  }

  /// Moves a deadline behind its owner's back.
  func postpone(_ descriptor: Int32, to deadline: Moment) {
    for index in entries.indices where entries[index].waiter?.descriptor == descriptor && entries[index].deadline != .never {
      entries[index].deadline = deadline
    }
  }

  // MARK: Turning

  var nextDeadline: Moment { entries.reduce(.never) { min($0, $1.deadline) } }

  /// One turn. False if nobody was ready and there was no job.
  func turn() -> Bool {
    var ready: [(index: Int, generation: Int, reads: Bool, writes: Bool, isTimer: Bool)] = []
    for (index, entry) in entries.enumerated() {
      guard let waiter = entry.waiter else { continue }
      if entry.reads || entry.writes {
        let state = world.kernel.readiness(waiter.descriptor)
        // Now and then a readiness that is none: epoll may have it, and nobody may take it for a promise.
        let falsely = world.random.one(in: 200)
        let (reads, writes) = (entry.reads && (state.reads || falsely), entry.writes && (state.writes || falsely))
        if reads || writes { ready.append((index, entry.generation, reads, writes, false)) }
      }
      if entry.deadline <= clock { ready.append((index, entry.generation, false, false, true)) }
    }
    if ready.isEmpty && jobs.isEmpty { return false }
    for last in ready.indices.dropFirst().reversed() { ready.swapAt(last, world.random.within(0...last)) }
    for item in ready where world.violation == nil { tell(item.index, item.generation, item.reads, item.writes, item.isTimer) }
    runJobs()
    return true
  }

  private func tell(_ index: Int, _ generation: Int, _ reads: Bool, _ writes: Bool, _ isTimer: Bool) {
    guard let waiter = entries[index].waiter else { return }
    if isTimer {
      guard entries[index].deadline <= clock else { return }
      entries[index].deadline = .never
      waiter.deadline = .never
      waiter.deadlineReached()
    } else {
      guard entries[index].generation == generation else { return }
      waiter.ready(toRead: reads, toWrite: writes)
    }
    world.rules.afterStep()
  }

  private func runJobs() {
    let batch = jobs
    jobs.removeAll(keepingCapacity: true)
    for job in batch {
      switch job {
      case .task(let job): job.runSynchronously(on: tasks.asUnownedTaskExecutor())
      case .closure(let body): body()
      }
      world.rules.afterStep()
    }
  }

  private final class Tasks: TaskExecutor, @unchecked Sendable {
    private unowned let poller: SimulatedPoller
    init(_ poller: SimulatedPoller) { self.poller = poller }
    func enqueue(_ job: consuming ExecutorJob) { poller.jobs.append(.task(UnownedJob(job))) }
  }
}
