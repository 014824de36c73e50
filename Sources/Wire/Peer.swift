// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Who is at the other end, as plain values: no allocation, no system header.

/// Who is at the other end of a connection.
public struct Peer: Sendable, Hashable {
  /// The connection's number: unique in the process, counted from 1.
  public var id: UInt64
  /// Where it comes from.
  public var address: PeerAddress
  /// On a Unix-domain socket, the process that connected (`SO_PEERCRED`, unix(7)).
  public var credentials: UnixCredentials?

  /// A peer.
  @inlinable
  public init(id: UInt64 = 0, address: PeerAddress = .unknown, credentials: UnixCredentials? = nil) {
    self.id = id
    self.address = address
    self.credentials = credentials
  }
}

/// The process at the other end of a Unix-domain socket.
public struct UnixCredentials: Sendable, Hashable {
  /// Process, user and group, as they were at `connect`.
  public var pid: Int32, uid: UInt32, gid: UInt32

  /// Credentials.
  public init(pid: Int32, uid: UInt32, gid: UInt32) {
    self.pid = pid
    self.uid = uid
    self.gid = gid
  }
}

/// An address and port, or a Unix-domain socket.
public struct PeerAddress: Sendable, Hashable {
  /// What kind of address it is.
  public enum Family: UInt8, Sendable {
    /// Not known.
    case unknown
    /// IPv4: the last four of `high` and `low` as an IPv4-mapped address.
    case ipv4
    /// IPv6.
    case ipv6
    /// A Unix-domain socket: no address.
    case unix
  }

  /// The kind.
  public var family: Family
  /// The address's first and last 64 bits in host order. IPv4 is held as `::ffff:a.b.c.d`, so that one comparison serves both.
  public var high: UInt64, low: UInt64
  /// The port; 0 if there is none.
  public var port: UInt16
  /// IPv6's scope (the interface of a link-local address); 0 if there is none.
  public var scope: UInt32

  /// Not known.
  public static let unknown = PeerAddress(family: .unknown, high: 0, low: 0, port: 0)
  /// A Unix-domain socket.
  public static let unix = PeerAddress(family: .unix, high: 0, low: 0, port: 0)

  /// An address from its parts.
  @inlinable
  public init(family: Family, high: UInt64, low: UInt64, port: UInt16, scope: UInt32 = 0) {
    self.family = family
    self.high = high
    self.low = low
    self.port = port
    self.scope = scope
  }

  /// An IPv4 address from its 32 bits in host order.
  @inlinable
  public init(ipv4 bits: UInt32, port: UInt16) {
    self.init(family: .ipv4, high: 0, low: 0xffff_0000_0000 | UInt64(bits), port: port)
  }

  /// Whether it is this machine's own: 127.0.0.0/8 or ::1, or a Unix-domain socket.
  public var isLoopback: Bool {
    switch family {
    case .unknown: false
    case .ipv4: low >> 24 & 0xff == 127
    case .ipv6: high == 0 && (low == 1 || low >> 24 == 0xffff7f)
    case .unix: true
    }
  }

  /// The address without its port: `127.0.0.1`, `fe80::1%2`, `unix`.
  public var host: String {
    switch family {
    case .unknown: return "unknown"
    case .unix: return "unix"
    case .ipv4: return ipv4Text
    case .ipv6:
      if high == 0 && low >> 32 == 0xffff { return "::ffff:" + ipv4Text }
      return ipv6Text + (scope == 0 ? "" : "%\(scope)")
    }
  }

  private var ipv4Text: String { "\(low >> 24 & 0xff).\(low >> 16 & 0xff).\(low >> 8 & 0xff).\(low & 0xff)" }

  /// RFC 5952: lower case, no leading zeros, the longest run of two or more zero groups is `::`.
  private var ipv6Text: String {
    let groups = (0..<8).map { UInt16(truncatingIfNeeded: ($0 < 4 ? high : low) >> (UInt64(3 - $0 % 4) * 16)) }
    var run = 0..<0
    var index = 0
    while index < 8 {
      var end = index
      while end < 8 && groups[end] == 0 { end += 1 }
      if end - index > max(run.count, 1) { run = index..<end }
      index = max(end, index + 1)
    }
    let text = { (part: ArraySlice<UInt16>) in part.map { String($0, radix: 16) }.joined(separator: ":") }
    return run.isEmpty ? text(groups[...]) : text(groups[..<run.lowerBound]) + "::" + text(groups[run.upperBound...])
  }
}

extension PeerAddress: CustomStringConvertible {
  /// Address and port: `127.0.0.1:8757`, `[::1]:8757`, `unix`.
  public var description: String {
    switch family {
    case .unknown, .unix: host
    case .ipv4: "\(host):\(port)"
    case .ipv6: "[\(host)]:\(port)"
    }
  }
}
