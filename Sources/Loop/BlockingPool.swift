// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
import Glibc

// Threads for work that blocks: files, getaddrinfo, offloaded handlers. Swift's own pool has one thread for each core; work that
// blocks there holds up every other task of the process.

/// A bounded pool of threads, which is also a task executor: the jobs of `Task(executorPreference: pool)` run on its threads.
///
/// Threads are started when work comes and none is free, and end after a while without work (5 s), or at `shutdown`. They block all
/// signals: signals, SIGPIPE too, are the business of whoever owns the process.
package final class BlockingPool: TaskExecutor {
  /// How many threads there are at most.
  package let threads: Int
  /// How much admitted work may wait for a thread.
  package let queue: Int
  /// How long a thread waits for work before it ends. Starting one costs some 20 µs, keeping one a stack's touched pages.
  private let idle: Duration
  /// What its threads are called; at most 15 bytes.
  private let name: String

  private struct State {
    var jobs = JobQueue()
    /// Threads started and not ended, and how many of them wait for a job.
    var running = 0
    var waiting = 0
    /// Work admitted and not left.
    var admitted = 0
    /// The thread that ended last; the next that ends joins it, or `shutdown` does.
    var ended: pthread_t?
    var stage = Stage.open
  }

  private enum Stage {
    case open
    /// Threads end as soon as there is no work.
    case ending
    /// The same, and nobody is left to join them.
    case closed
  }

  private let state = Locked(State())
  /// Work has come, or the pool is ending.
  private let work = Condition()
  /// A thread has ended.
  private let rest = Condition()

  package init(threads: Int, queue: Int, idle: Duration = .seconds(5), name: String = "door-pool") {
    self.name = name
    self.idle = idle
    self.threads = max(threads, 1)
    self.queue = min(max(queue, 0), 1 << 30)  // far from where the sum with `threads` would overflow
  }

  deinit {
    // Without `shutdown` the last thread may hold the last reference itself.
    guard let last = state.withLock({ $0.ended }) else { return }
    if pthread_equal(last, pthread_self()) != 0 { pthread_detach(last) } else { pthread_join(last, nil) }
  }

  // MARK: - Admission

  /// Takes a place for one piece of work, which runs or waits until `leave`; false if all are taken. Admission is apart from enqueueing
  /// because a task comes back with more jobs after each suspension, and those must never be dropped.
  package func admit() -> Bool {
    state.withLock { state in
      guard state.admitted < threads + queue else { return false }
      state.admitted += 1
      return true
    }
  }

  /// Gives the place back.
  package func leave() { state.withLock { $0.admitted -= 1 } }

  // MARK: - Work

  /// Runs a closure that may block. Its place in the queue is not counted.
  package func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withTaskExecutorPreference(self) { try body() }
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let mustStart = state.withLock { state in
      state.jobs.append(job)
      // One waiting thread for each job, or there must be another thread.
      guard state.jobs.count > state.waiting, state.running < threads else { return false }
      state.running += 1
      return true
    }
    if mustStart { startThread() } else { work.signal() }
  }

  private func startThread() {
    if Loop.startThread(named: name, isJoined: true, serve) { return }
    // The system has no thread to give (EAGAIN). Another of ours will come to the job; without any, the caller has to do it: late and
    // in the wrong place is better than never.
    let alone = state.withLock { state in
      state.running -= 1
      return state.running == 0
    }
    rest.broadcast()
    while alone, let job = state.withLock({ $0.jobs.popFirst() }) { run(job) }
  }

  // MARK: - A thread's life

  private enum Turn {
    case job(UnownedJob)
    case end(former: pthread_t?)
  }

  private func serve() {
    while true {
      switch nextTurn() {
      case .job(let job): run(job)
      case .end(let former):
        rest.broadcast()
        // Joined, not detached, so that no thread is left when `shutdown` returns.
        if let former { pthread_join(former, nil) }
        return
      }
    }
  }

  /// Leaving is decided under the same lock as coming: a job that is enqueued after it finds no thread that waits in vain.
  private func nextTurn() -> Turn {
    var counted = false
    let turn = state.wait(on: work, for: idle) { (state, expired) -> Turn? in
      let job = state.jobs.popFirst()
      let leaves = job == nil && (expired || state.stage != .open)
      guard job != nil || leaves else {
        if !counted { state.waiting += 1 }
        counted = true
        return nil
      }
      if counted { state.waiting -= 1 }
      if let job { return .job(job) }
      state.running -= 1
      guard state.stage != .closed else {
        pthread_detach(pthread_self())
        return .end(former: nil)
      }
      defer { state.ended = pthread_self() }
      return .end(former: state.ended)
    }
    return turn ?? .end(former: nil)
  }

  private func run(_ job: UnownedJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }

  // MARK: - The end

  /// Lets the threads finish what is enqueued and joins them. Returns how many still run after `limit`; they end by themselves when their
  /// work does. Work that comes later is still done. Blocks; not to be called on a thread of the pool.
  @discardableResult
  package func shutdown(within limit: Duration) -> Int {
    state.withLock { $0.stage = .ending }
    work.broadcast()
    let end = state.wait(on: rest, for: limit) { (state, expired) -> (left: Int, last: pthread_t?)? in
      guard state.running == 0 || expired else { return nil }
      defer {
        state.stage = .closed
        state.ended = nil
      }
      return (state.running, state.ended)
    }
    guard let end else { return 0 }
    if let last = end.last { pthread_join(last, nil) }
    return end.left
  }
}

/// Jobs, first in first out. Taken ones are dropped once they are half of the array, so that each costs the same.
private struct JobQueue {
  private var jobs: [UnownedJob] = []
  private var first = 0

  var count: Int { jobs.count - first }

  mutating func append(_ job: UnownedJob) { jobs.append(job) }

  mutating func popFirst() -> UnownedJob? {
    guard first < jobs.count else { return nil }
    let job = jobs[first]
    first += 1
    if first * 2 >= jobs.count {
      jobs.removeFirst(first)
      first = 0
    }
    return job
  }
}
