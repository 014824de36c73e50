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
  private let open = Atomic<Int>(0)
  /// Only kept when there is a limit for each address.
  private let byAddress = Locked([AddressKey: Int]())
  /// Local ports of the server's own probe.
  private let exempt = Locked(Set<UInt16>())

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
  package func leave(_ address: PeerAddress) {
    open.subtract(1, ordering: .relaxed)
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

  package func exempt(port: UInt16) { exempt.withLock { _ = $0.insert(port) } }
  package func endExemption(port: UInt16) { exempt.withLock { _ = $0.remove(port) } }
  private func isExempt(_ address: PeerAddress) -> Bool { address.isLoopback && exempt.withLock { $0.contains(address.port) } }
}

/// The memory that unfinished requests share. What a large request will need is set aside as a whole when its length is known: clients
/// that each held a part would wait for each other, and none would be served.
package final class Budget: Sendable {
  /// Requests up to this many bytes are not counted: the limit of connections bounds them.
  package static let free = 64 << 10

  private let maximum: Int
  private let used = Atomic<Int>(0)

  package init(maximum: Int) { self.maximum = maximum }

  /// Sets `count` bytes aside. False if there is no room; a lone request always gets it.
  package func take(_ count: Int) -> Bool {
    let before = used.load(ordering: .relaxed)
    if before > 0 && before + count > maximum { return false }
    // Two loops may both pass the look; the budget is then over by one request, not without bound.
    used.add(count, ordering: .relaxed)
    return true
  }

  package func give(back count: Int) { used.subtract(count, ordering: .relaxed) }

  package var usedBytes: Int { used.load(ordering: .relaxed) }
}
