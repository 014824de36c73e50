// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What is ready to run on a loop's thread, first in, first out. A ring, because jobs are taken while others are added, and an array's
// `removeFirst` and `replaceSubrange` were a good part of what a job costs.

/// Something to run on a loop.
enum Job {
  /// The next step of a task.
  case task(UnownedJob)
  case closure(() -> Void)
}

/// On the loop's thread alone.
struct ReadyList: ~Copyable {
  /// Places kept when it runs empty; what a burst needed beyond that is given back.
  private static let kept = 4096

  private var jobs = UnsafeMutablePointer<Job>.allocate(capacity: 16)
  /// A power of two, so that a place is found with a mask.
  private var capacity = 16
  private var first = 0
  private(set) var count = 0

  deinit {
    for index in 0..<count { (jobs + ((first &+ index) & (capacity &- 1))).deinitialize(count: 1) }
    jobs.deallocate()
  }

  var isEmpty: Bool { count == 0 }

  mutating func append(_ job: consuming Job) {
    if count == capacity { move(to: capacity * 2) }
    (jobs + ((first &+ count) & (capacity &- 1))).initialize(to: job)
    count &+= 1
  }

  mutating func popFirst() -> Job? {
    guard count > 0 else { return nil }
    let job = (jobs + first).move()
    first = (first &+ 1) & (capacity &- 1)
    count &-= 1
    if count == 0 && capacity > Self.kept { move(to: Self.kept) }
    return job
  }

  private mutating func move(to places: Int) {
    let room = UnsafeMutablePointer<Job>.allocate(capacity: places)
    for index in 0..<count { (room + index).moveInitialize(from: jobs + ((first &+ index) & (capacity &- 1)), count: 1) }
    jobs.deallocate()
    (jobs, capacity, first) = (room, places, 0)
  }
}
