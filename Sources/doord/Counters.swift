// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop
import Synchronization
import Wire

// What is counted, and how: relaxed atomics, a set of them for each thread that counts, so that two loops do not pass a cache line back
// and forth. Read rarely, by adding the sets up.

/// What happened since the start. Any thread.
final class Counters: Sendable {
  /// Why an answer was a refusal, as far as a metric may tell: few, fixed words, never the sentence.
  enum RefusalKind: String, CaseIterable {
    case malformed, tooLarge, notFound, method, name, origin, arrival, handlerDeadline, handlerFailed, poolFull
    case connections, perAddress, stopping, other
  }

  enum Slot: Int, CaseIterable {
    case accepted, bytesSent, handlerFailures, longTurns, notices
  }

  // Kept: each call of `allCases` makes an array.
  private static let closeReasons = CloseReason.allCases
  private static let turnAwayReasons = TurnAwayReason.allCases
  private static let refusalKinds = RefusalKind.allCases

  private static let sets = 8
  private static let statuses = 600
  private let shares: [Share] = (0..<Counters.sets).map { _ in Share() }

  /// One thread's set, unless two threads share it by chance. As many of each as its enum has cases.
  private final class Share: Sendable {
    let slots = Table<5>(), closed = Table<9>(), turnedAway = Table<3>(), refusals = Table<14>(), answers = Table<600>()
  }

  /// A row of counters.
  private struct Table<let count: Int>: ~Copyable, Sendable {
    private let values = InlineArray<count, Atomic<Int>> { _ in Atomic(0) }

    func add(_ amount: Int, at index: Int?) {
      if let index, index >= 0, index < count { values[index].wrappingAdd(amount, ordering: .relaxed) }
    }

    func value(at index: Int?) -> Int {
      guard let index, index >= 0, index < count else { return 0 }
      return values[index].load(ordering: .relaxed)
    }
  }

  // MARK: Counting, on the loops' threads

  func add(_ slot: Slot) { share.slots.add(1, at: slot.rawValue) }
  func add(_ reason: CloseReason) { share.closed.add(1, at: Counters.closeReasons.firstIndex(of: reason)) }
  func add(_ reason: TurnAwayReason) { share.turnedAway.add(1, at: Counters.turnAwayReasons.firstIndex(of: reason)) }

  /// An answer: its status, its bytes, and why it was refused.
  func add(status: Int, bytes: Int, refusal: Refusal?) {
    let share = share
    share.answers.add(1, at: status)
    share.slots.add(bytes, at: Slot.bytesSent.rawValue)
    if let refusal { share.refusals.add(1, at: Counters.refusalKinds.firstIndex(of: RefusalKind(refusal))) }
  }

  private var share: Share {
    // Thread handles lie megabytes apart; the multiplication brings what differs to the top.
    shares[Int(truncatingIfNeeded: (UInt64(pthread_self()) &* 0x9e37_79b9_7f4a_7c15) >> 61)]
  }

  // MARK: Reading

  subscript(slot: Slot) -> Int { sum { $0.slots.value(at: slot.rawValue) } }
  subscript(reason: CloseReason) -> Int { sum { $0.closed.value(at: Counters.closeReasons.firstIndex(of: reason)) } }
  subscript(reason: TurnAwayReason) -> Int { sum { $0.turnedAway.value(at: Counters.turnAwayReasons.firstIndex(of: reason)) } }
  subscript(kind: RefusalKind) -> Int { sum { $0.refusals.value(at: Counters.refusalKinds.firstIndex(of: kind)) } }

  /// Answers by status, those that happened.
  var answers: [(status: Int, count: Int)] {
    (0..<Counters.statuses).map { status in (status, sum { $0.answers.value(at: status) }) }.filter { $0.count > 0 }
  }

  /// How often each deadline ended something.
  var deadlines: [(name: String, count: Int)] {
    [
      ("idle", self[.idle]), ("arrival", self[RefusalKind.arrival]), ("handler", self[.handlerDeadline]), ("stall", self[.stall]),
      ("linger", self[.linger]),
    ]
  }

  private func sum(_ value: (Share) -> Int) -> Int { shares.reduce(0) { $0 &+ value($1) } }
}

extension Counters.RefusalKind {
  init(_ refusal: Refusal) {
    switch refusal.status {
    case 404: self = .notFound
    case 405: self = .method
    case 408: self = .arrival
    case 421: self = .name
    case 403: self = .origin
    case 500: self = .handlerFailed
    case 503:
      switch refusal {
      case .handlerTimeout: self = .handlerDeadline
      case .stopping: self = .stopping
      case .tooManyConnections: self = .connections
      case .tooManyFromAddress: self = .perAddress
      case .poolFull: self = .poolFull
      default: self = .other
      }
    default: self = refusal.refusalClass == .tooLarge ? .tooLarge : (400...505).contains(refusal.status) ? .malformed : .other
    }
  }
}
