// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import Synchronization
package import Wire

// Who may come in, and how much all together may hold. Shared by the loops of a server; any thread.

/// Counts connections, in all and by address.
package final class Admission: Sendable {
  package let maximum: Int
  private let maximumPerAddress: Int?
  private let allowed: [Network]
  /// Nobody is asked where he comes from: only the sum counts.
  private let isBlind: Bool
  private let open = Atomic<Int>(0)
  /// Only kept when there is a limit for each address.
  private let byAddress = Locked([AddressKey: Int]())
  /// Where the server's own probe comes from.
  private let exempt = Locked(Set<PeerAddress>())

  private struct AddressKey: Hashable {
    let high: UInt64
    let low: UInt64

    /// An IPv6 /64 counts as one address: a host has all of it.
    init(_ address: PeerAddress) {
      high = address.high
      low = address.family == .ipv6 ? 0 : address.low
    }
  }

  package init(maximum: Int, perAddress: Int?, allowed: [Network]) {
    self.maximum = maximum
    maximumPerAddress = perAddress
    self.allowed = allowed
    isBlind = perAddress == nil && allowed.isEmpty
  }

  /// Counts a connection in, if that needs no look at its address and there is room; else nothing is done. The way of nearly all.
  @inline(__always)
  func entersUnseen() -> Bool {
    guard isBlind else { return false }
    if open.add(1, ordering: .relaxed).newValue <= maximum { return true }
    open.subtract(1, ordering: .relaxed)
    return false
  }

  /// Whether the gate lets this peer in. Looked at before any state exists.
  package func lets(_ address: PeerAddress) -> Bool {
    if allowed.isEmpty || address.family == .unix { return true }
    return allowed.contains { $0.contains(address) } || isExempt(address)
  }

  /// Counts a connection in. A refusal, if it is one too many; it is counted all the same, until `leave`.
  package func enter(_ address: PeerAddress) -> Refusal? {
    let count = open.add(1, ordering: .relaxed).newValue
    var refusal: Refusal? = count > maximum ? .tooManyConnections : nil
    if let maximumPerAddress, address.family != .unix {
      let fromAddress = byAddress.withLock { counts in
        counts[AddressKey(address), default: 0] += 1
        return counts[AddressKey(address), default: 0]
      }
      if fromAddress > maximumPerAddress { refusal = refusal ?? .tooManyFromAddress }
    }
    return refusal == nil || isExempt(address) ? nil : refusal
  }

  /// Counts it out.
  @inline(__always)
  package func leave(_ address: PeerAddress) {
    open.subtract(1, ordering: .relaxed)
    if !isBlind { forget(address) }
  }

  private func forget(_ address: PeerAddress) {
    guard maximumPerAddress != nil, address.family != .unix else { return }
    byAddress.withLock { counts in
      let key = AddressKey(address)
      let left = counts[key, default: 1] - 1
      counts[key] = left > 0 ? left : nil
    }
  }

  /// Whether so many are over the limit that telling them is no longer worth a connection.
  package func isFarOver(by count: Int) -> Bool { open.load(ordering: .relaxed) > maximum + count }

  package var openConnections: Int { open.load(ordering: .relaxed) }

  package func exempt(_ address: PeerAddress) { exempt.withLock { _ = $0.insert(address) } }
  package func endExemption(_ address: PeerAddress) { exempt.withLock { _ = $0.remove(address) } }
  private func isExempt(_ address: PeerAddress) -> Bool { exempt.withLock { $0.contains(address) } }
}

/// The memory that unfinished requests share. It is taken in steps, by what has arrived and not by what is announced: a few bytes that
/// announce much hold little. So that requests which each hold a part do not wait for each other for ever, one of them, the first that
/// found no room, is favoured: it gets what it needs beyond the limit, and when it is over the next.
package final class Budget: Sendable {
  /// Requests up to this many bytes are not counted: the limit of connections bounds them.
  package static let free = 64 << 10

  private let maximum: Int
  private let used = Atomic<Int>(0)
  /// The peer's number of the favoured request; 0: there is none.
  private let favoured = Atomic<UInt64>(0)

  package init(maximum: Int) { self.maximum = maximum }

  /// Sets `count` more bytes aside for the request of `peer`. False if there is no room now.
  package func take(_ count: Int, for peer: UInt64) -> Bool {
    let before = used.load(ordering: .relaxed)
    if before > 0 && before + count > maximum {
      let holder = favoured.compareExchange(expected: 0, desired: peer, ordering: .relaxed).original
      guard holder == 0 || holder == peer else { return false }
    }
    // Two loops may both pass the look; the budget is then over by one step, not without bound.
    used.add(count, ordering: .relaxed)
    return true
  }

  /// Gives back what the request of `peer` held.
  package func give(back count: Int, from peer: UInt64) {
    used.subtract(count, ordering: .relaxed)
    _ = favoured.compareExchange(expected: peer, desired: 0, ordering: .relaxed)
  }

  package var usedBytes: Int { used.load(ordering: .relaxed) }
}
