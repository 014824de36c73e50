// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc

// Sleeping on a loop's own timers: no other thread is woken, and the task goes on in the turn in which its time has come.

/// A clock for tasks on a loop: `try await Task.sleep(for: .seconds(1), clock: LoopClock())`. It counts as CLOCK_MONOTONIC does, which
/// stands still while the machine sleeps. Elsewhere than on a loop's thread it sleeps as `SuspendingClock` does.
public struct LoopClock: Clock, Sendable {
  /// A moment of this clock.
  public struct Instant: InstantProtocol, Sendable {
    let moment: Moment

    /// The moment `duration` later; a negative duration is not taken.
    public func advanced(by duration: Duration) -> Instant { Instant(moment: moment + duration.inNanoseconds) }
    /// The time from here to `other`.
    public func duration(to other: Instant) -> Duration { .nanoseconds(other.moment - moment) }
    /// Whether `a` is the earlier one.
    public static func < (a: Instant, b: Instant) -> Bool { a.moment < b.moment }
  }

  /// The clock.
  public init() {}

  /// Now.
  public var now: Instant { Instant(moment: Moment(nanoseconds: monotonicNanoseconds())) }
  /// A nanosecond; libev's own timers are good to some microseconds.
  public var minimumResolution: Duration { .nanoseconds(1) }

  /// Returns when `deadline` has passed. The tolerance is not used.
  /// - Throws: `CancellationError`, at once when the task is cancelled or the loop ends.
  public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    guard let loop = EventLoop.current else {
      return try await Task.sleep(for: now.duration(to: deadline), tolerance: tolerance, clock: SuspendingClock())
    }
    let sleeper = Sleeper(on: loop)
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { sleeper.begin(until: deadline.moment, $0) }
    } onCancel: {
      // Also from another thread, or before there is a continuation: the loop comes to it after this turn.
      loop.submit { sleeper.end(CancellationError()) }
    }
  }
}

/// One sleeping task. On the loop's thread.
final class Sleeper: @unchecked Sendable {  // only its loop's thread touches it; others hold it to hand it to that thread
  private let loop: EventLoop
  private var timer: OneShot?
  private var continuation: CheckedContinuation<Void, any Error>?

  init(on loop: EventLoop) { self.loop = loop }

  func begin(until deadline: Moment, _ continuation: CheckedContinuation<Void, any Error>) {
    self.continuation = continuation
    loop.sleepers[ObjectIdentifier(self)] = self
    timer = OneShot(on: loop, at: deadline) { [self] in end(nil) }
  }

  func end(_ error: (any Error)?) {
    guard let continuation else { return }
    self.continuation = nil
    timer?.cancel()
    loop.sleepers[ObjectIdentifier(self)] = nil
    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
  }
}

extension EventLoop {
  /// The loop whose thread this is.
  static var current: EventLoop? {
    pthread_getspecific(currentLoop).map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
  }

  /// The calling thread is this loop's, or no longer.
  func setCurrent(_ isCurrent: Bool) {
    pthread_setspecific(currentLoop, isCurrent ? UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) : nil)
  }
}

/// Where a thread keeps its loop. The system has 1024 such keys, and this process begins with it.
private let currentLoop: pthread_key_t = {
  var key = pthread_key_t()
  pthread_key_create(&key, nil)
  return key
}()
