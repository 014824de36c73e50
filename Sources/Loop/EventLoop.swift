// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc
package import Synchronization

// The event loop: one thread that owns one libev loop, and everything that happens on it.
//
// A turn: wait (libev), tell the waiters that are ready, run the jobs that became ready meanwhile, free what ended. Jobs are Swift
// concurrency's (a handler that goes on after an await) and closures from other threads. Those made on this thread go to a plain list;
// those from elsewhere through the inbox, under a lock, with an ev_async to wake the loop.
//
// Left out: libev's own signal and child watchers. A library that installs them takes them from its user, and libev aborts on a second
// loop that wants the same signal.

/// It is the executor of the tasks that prefer it: their nonisolated code runs on its thread.
///
/// `@unchecked Sendable`: all but the inbox, the stamps and the thread's identity is touched on its thread alone.
package final class EventLoop: Poller, TaskExecutor, @unchecked Sendable {
  /// Jobs run in one turn before the sockets are looked at again.
  static let jobsPerTurn = 1024
  /// A turn longer than this is reported: something in it blocks.
  static let longTurn: Int64 = 50_000_000
  /// Turns for jobs alone after the last: a task that was cancelled may need a few to come to its end.
  static let lastTurns = 64

  package let index: Int
  let ev: OpaquePointer
  private let wakeup: UnsafeMutablePointer<ev_async>
  private let tick: UnsafeMutablePointer<ev_timer>

  // The thread's own.
  @exclusivity(unchecked) private var ready = ReadyList()
  /// The wakeup came: there is something in the inbox.
  @exclusivity(unchecked) private var hasMail = false
  @exclusivity(unchecked) private var stopping = false
  @exclusivity(unchecked) private var turnStart: Int64 = 0
  /// Called at the end of each turn, on the thread: frees what ended in it.
  @exclusivity(unchecked) package var endOfTurn: () -> Void = {}
  /// Called once a second and at the start, with seconds since 1970, on the thread.
  package var secondPassed: (Int) -> Void = { _ in }
  /// Called for a turn over `longTurn` nanoseconds.
  package var turnWasLong: (Int64) -> Void = { _ in }
  /// Called when the last turn is over, on the thread: lets go of every waiter.
  package var willClose: () -> Void = {}
  /// Tasks that sleep on this loop's timers.
  var sleepers: [ObjectIdentifier: Sleeper] = [:]
  @exclusivity(unchecked) private var second = 0
  private var watches = WatchPool()
  @exclusivity(unchecked) private var isOver = false

  // Shared.
  private let inbox = Locked(Inbox())
  private let thread = Atomic<UInt>(0)
  /// When the last turn began, CLOCK_MONOTONIC in nanoseconds. A loop turns at least once a second.
  package let lastTurn = Atomic<Int64>(0)
  /// The longest turn so far, in nanoseconds.
  package let longestTurn = Atomic<Int64>(0)

  private struct Inbox {
    var jobs: [Job] = []
    var isOpen = true
  }

  /// Fails only where the system has no descriptor or memory for an epoll instance and an eventfd.
  package init?(index: Int = 0) {
    guard let ev = ev_loop_new(UInt32(EVFLAG_NOENV)) else { return nil }
    // libev ends the process where it finds no descriptor for its eventfd, so one is tried first.
    let spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
    guard spare >= 0 else {
      ev_loop_destroy(ev)
      return nil
    }
    Glibc.close(spare)
    self.index = index
    self.ev = ev
    wakeup = .allocate(capacity: 1)
    tick = .allocate(capacity: 1)
    super.init()
    ev_set_userdata(ev, Unmanaged.passUnretained(self).toOpaque())
    door_async_init(wakeup) { ev, _, _ in EventLoop.of(ev).hasMail = true }
    ev_async_start(ev, wakeup)  // here and not in `run`: its eventfd is there when the server has started
    door_timer_init(tick, { _, _, _ in }, 1, 1)
    ev_set_loop_release_cb(
      ev, { _ in },
      { ev in
        // Not retained, for the reason that `of` gives; this comes in every turn.
        if let loop = ev_userdata(ev) {
          Unmanaged<EventLoop>.fromOpaque(loop)._withUnsafeGuaranteedRef { $0.turnBegins() }
        }
      })
  }

  deinit {
    if !isOver { ev_loop_destroy(ev) }
    watches.deallocate()
    wakeup.deallocate()
    tick.deallocate()
  }

  static func of(_ ev: OpaquePointer?) -> EventLoop {
    // The loop is alive while libev calls back: `run` is on the stack.
    Unmanaged<EventLoop>.fromOpaque(ev_userdata(ev)).takeUnretainedValue()
  }

  package override var now: Moment { Moment(nanoseconds: monotonicNanoseconds()) }

  /// Whether the caller is on this loop's thread.
  package override var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  // MARK: Running

  /// Turns until `end` is called. The calling thread is the loop's from here to the return.
  package func run() {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    setCurrent(true)
    ev_now_update(ev)
    ev_timer_start(ev, tick)
    turnBegins()
    while !stopping {
      takeInbox()
      runJobs()
      endOfTurn()
      turnEnds()
      if stopping { break }
      ev_run(ev, Int32(ready.isEmpty ? EVRUN_ONCE : EVRUN_NOWAIT))
    }
    close()
  }

  /// Ends `run` after this turn. On the thread.
  package func end() { stopping = true }

  private func turnBegins() {
    turnStart = monotonicNanoseconds()
    lastTurn.store(turnStart, ordering: .relaxed)
    let second = Int(ev_now(ev))
    guard second != self.second else { return }
    self.second = second
    secondPassed(second)
  }

  private func turnEnds() {
    let length = monotonicNanoseconds() - turnStart
    guard length > longestTurn.load(ordering: .relaxed) || length > Self.longTurn else { return }
    longestTurn.store(max(length, longestTurn.load(ordering: .relaxed)), ordering: .relaxed)
    if length > Self.longTurn { turnWasLong(length) }
  }

  /// The inbox is shut under its lock, so that nobody wakes a loop that is gone; what came before that is still run.
  private func close() {
    willClose()
    for sleeper in sleepers.values { sleeper.end(CancellationError()) }
    let rest = inbox.withLock { inbox in
      inbox.isOpen = false
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
    for job in rest { ready.append(job) }
    for _ in 0..<Self.lastTurns where !ready.isEmpty { runJobs() }
    // From here on nothing more is taken; a task that never rests goes on elsewhere.
    setCurrent(false)
    thread.store(0, ordering: .relaxed)
    while let job = ready.popFirst() {
      switch job {
      case .task(let job): LastResort.shared.enqueue(job)
      case .closure(let body): body()
      }
    }
    ev_async_stop(ev, wakeup)
    ev_timer_stop(ev, tick)
    isOver = true
    ev_loop_destroy(ev)
    // Each of these holds what holds the loop.
    (endOfTurn, secondPassed, turnWasLong, willClose) = ({}, { _ in }, { _ in }, {})
  }

  // MARK: Jobs

  package override var executor: any TaskExecutor { self }

  /// Runs `body` on the loop's thread, in this turn or the next. Any thread. False, and `body` is dropped, if the loop has ended.
  @discardableResult
  package override func submit(_ body: @escaping @Sendable () -> Void) -> Bool {
    put(.closure(body))
  }

  /// Runs `body` on the loop's thread, after what is on its stack now. On the thread.
  package override func later(_ body: @escaping () -> Void) {
    if !isOver { ready.append(.closure(body)) }
  }

  /// Takes a job of a task. Any thread.
  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    // A loop that has ended has given its tasks up. Their jobs still run, elsewhere, or the tasks and all they hold would leak.
    if !put(.task(job)) { LastResort.shared.enqueue(job) }
  }

  private func put(_ job: Job) -> Bool {
    if isCurrent {
      ready.append(job)
      return true
    }
    return inbox.withLock { inbox in
      guard inbox.isOpen else { return false }
      inbox.jobs.append(job)
      if inbox.jobs.count == 1 { ev_async_send(ev, wakeup) }
      return true
    }
  }

  /// Nothing is locked without the wakeup, which comes for every job that finds the inbox empty.
  private func takeInbox() {
    guard hasMail else { return }
    hasMail = false
    inbox.withLock { inbox in
      for job in inbox.jobs { ready.append(job) }
      inbox.jobs.removeAll(keepingCapacity: true)
    }
  }

  /// Runs what is ready now, and what that makes ready: a `Task.yield` takes two jobs, and the second is not worth a look at the sockets.
  /// What comes then waits for the next turn, so that tasks that keep each other going do not keep the sockets waiting.
  private func runJobs() {
    if ready.isEmpty { return }
    for _ in 0..<2 {
      for _ in 0..<min(ready.count, Self.jobsPerTurn) {
        switch ready.popFirst() {
        case .task(let job): job.runSynchronously(on: asUnownedTaskExecutor())
        case .closure(let body): body()
        case nil: return
        }
      }
    }
  }

  // MARK: Waiting, as Poller asks for it

  package override func interestChanged(_ waiter: Waiter) {
    if isOver || waiter.watch == nil && !waiter.reads && !waiter.writes { return }
    watch(for: waiter).setInterest(waiter, on: ev)
  }

  package override func deadlineChanged(_ waiter: Waiter) {
    if isOver || waiter.watch == nil && waiter.deadline == .never { return }
    watch(for: waiter).setDeadline(waiter.deadline, on: ev)
  }

  package override func forget(_ waiter: Waiter) {
    guard let raw = waiter.watch else { return }
    stop(waiter)
    waiter.watch = nil
    watches.give(back: raw.assumingMemoryBound(to: door_watch.self))
  }

  private func watch(for waiter: Waiter) -> Watch {
    if let raw = waiter.watch { return raw.assumingMemoryBound(to: door_watch.self) }
    let made = watches.take()
    made.prepare(for: waiter)
    waiter.watch = UnsafeMutableRawPointer(made)
    return made
  }
}

/// CLOCK_MONOTONIC in nanoseconds.
package func monotonicNanoseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
}
