// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
public import Wire

// Addresses as text, and networks (CIDR) for the gate and for trusted proxies.

/// A range of addresses: `10.0.0.0/8`, `2001:db8::/32`, or one address.
public struct Network: Sendable, Hashable, CustomStringConvertible {
  /// The first address.
  public let address: PeerAddress
  /// Leading bits that must match, counted in the address's own family.
  public let prefix: Int

  /// Whether `peer` is inside. An IPv4-mapped IPv6 peer is compared as IPv4.
  public func contains(_ peer: PeerAddress) -> Bool { false }

  /// As it was written, with its prefix.
  public var description: String { "\(address.host)/\(prefix)" }
}

/// The system's sentence for an `errno`.
package func errorText(_ code: Int32) -> String {
  String(cString: strerror(code))
}
