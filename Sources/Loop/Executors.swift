// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import Dispatch

// The executors beside the loop itself, which is the executor of its tasks.

/// The loop as an actor's executor, for actors that are to live on its thread. A second object, because one class that is both a task
/// executor and a serial executor cannot tell whose jobs it is given, and enqueues four times as often.
package final class LoopSerialExecutor: SerialExecutor {
  private let loop: EventLoop

  package init(_ loop: EventLoop) { self.loop = loop }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let taken = loop.submit { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    if !taken { LastResort.shared.enqueue(job) }
  }

  package func checkIsolated() {
    precondition(loop.isCurrent, "not on the loop's thread")
  }

  package func isIsolatingCurrentContext() -> Bool? { loop.isCurrent }
}

/// Where the jobs of tasks run that outlived their loop, one after another.
final class LastResort: TaskExecutor {
  static let shared = LastResort()
  private let queue = DispatchQueue(label: "door.last-resort")

  func enqueue(_ job: consuming ExecutorJob) { enqueue(UnownedJob(job)) }

  func enqueue(_ job: UnownedJob) {
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
