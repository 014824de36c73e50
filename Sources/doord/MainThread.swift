// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Dispatch
import Loop

// Async calls from the main thread, which only waits. An async main would not do: the runtime would let the main thread wait with every
// signal unblocked. And the runtime's own pool, with its threads and descriptors, need not exist for two calls.

/// The main thread as an executor: tasks run on it while it waits for one of them.
final class MainThread: TaskExecutor {
  private let jobs = Locked<[UnownedJob]>([])
  private let arrived = DispatchSemaphore(value: 0)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    arrived.signal()
  }

  /// Runs `body` to its end, here. Only on the main thread.
  func run<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
    let outcome = Locked<Swift.Result<Result, any Error>?>(nil)
    Task.detached(executorPreference: self) {
      let result: Swift.Result<Result, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      outcome.withLock { $0 = result }
    }
    while true {
      arrived.wait()
      let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      job?.runSynchronously(on: asUnownedTaskExecutor())
      if let result = outcome.withLock({ $0 }) { return try result.get() }
    }
  }
}
