// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

package import Glibc
public import Wire

// Addresses as text and as the kernel's sockaddr, and networks (CIDR) for the gate and for trusted proxies. Pure but for the lookup of
// an interface's name; any thread.

/// A range of addresses: `10.0.0.0/8`, `2001:db8::/32`, or one address.
public struct Network: Sendable, Hashable, CustomStringConvertible {
  /// The first address: what was written, without the bits beyond the prefix.
  public let address: PeerAddress
  /// Leading bits that must match, counted in the address's own family.
  public let prefix: Int

  /// A network from its text, an IPv4 or IPv6 address with or without a prefix length; nil if it is not one. Host bits are dropped, so
  /// `10.1.2.3/8` is `10.0.0.0/8`. An address without a prefix is a network of itself.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let host = parts.first, let address = PeerAddress(numericHost: host, zone: nil, port: 0) else { return nil }
    let width = address.family == .ipv4 ? 32 : 128
    var prefix = width
    if parts.count == 2 {
      guard let length = PeerAddress.decimal(parts[1]), length <= width else { return nil }
      prefix = length
    }
    let mask = Network.mask(prefix + 128 - width)
    self.address = PeerAddress(family: address.family, high: address.high & mask.high, low: address.low & mask.low, port: 0)
    self.prefix = prefix
  }

  /// Whether `peer` is inside; its port and scope do not matter. An IPv4-mapped IPv6 peer is compared as IPv4, so no network of IPv6
  /// holds it but one inside `::ffff:0:0/96`.
  public func contains(_ peer: PeerAddress) -> Bool {
    guard peer.family == .ipv4 || peer.family == .ipv6 else { return false }
    let bits = address.family == .ipv4 ? prefix + 96 : prefix
    let holdsIPv4 = address.isIPv4OrMapped && bits >= 96
    guard holdsIPv4 == peer.isIPv4OrMapped else { return false }
    let mask = Network.mask(bits)
    return peer.high & mask.high == address.high && peer.low & mask.low == address.low
  }

  /// The first address and the prefix length.
  public var description: String { "\(address.host)/\(prefix)" }

  /// The first `bits` of 128, set. Swift's `<<` gives 0 where C's is undefined.
  private static func mask(_ bits: Int) -> (high: UInt64, low: UInt64) {
    (UInt64.max << UInt64(max(64 - bits, 0)), bits <= 64 ? 0 : UInt64.max << UInt64(128 - bits))
  }
}

// MARK: - Text

extension PeerAddress {
  /// An address from text: `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]`, `[::1]:80`, `fe80::1%eth0` (the zone is an interface's name or
  /// number). Names are not looked up. Without a port it is 0.
  package init?(text: String) {
    if text.utf8.first == UInt8(ascii: "[") {
      guard let end = text.utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
      let rest = text[text.index(after: end)...]
      self.init(host: text[text.index(after: text.startIndex)..<end], portText: rest)
      if family != .ipv6 { return nil }
    } else if let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text.utf8.lastIndex(of: UInt8(ascii: ":")) == colon {
      self.init(host: text[..<colon], portText: text[colon...])
    } else {
      self.init(host: text[...], portText: "")
    }
  }

  /// A numeric address without a port or brackets, perhaps with a zone.
  package init?(host: String) { self.init(host: host[...], portText: "") }

  /// `portText` is empty or `:` and a number of at most 65535.
  private init?(host: Substring, portText: Substring) {
    var port: UInt16 = 0
    if !portText.isEmpty {
      guard portText.utf8.first == UInt8(ascii: ":"), let number = PeerAddress.decimal(portText.dropFirst()),
        let exact = UInt16(exactly: number)
      else { return nil }
      port = exact
    }
    let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = parts.first else { return nil }
    self.init(numericHost: address, zone: parts.count == 2 ? parts[1] : nil, port: port)
  }

  fileprivate init?(numericHost host: Substring, zone: Substring?, port: UInt16) {
    // A C string ends at its first NUL: what follows must not be lost silently.
    guard !host.utf8.contains(0) else { return nil }
    let host = String(host)
    var four = in_addr()
    var six = in6_addr()
    if zone == nil, inet_pton(AF_INET, host, &four) == 1 {
      self.init(ipv4: UInt32(bigEndian: four.s_addr), port: port)
    } else if inet_pton(AF_INET6, host, &six) == 1 {
      var scope: UInt32 = 0
      if let zone {
        guard let number = PeerAddress.interface(zone) else { return nil }
        scope = number
      }
      self.init(six, port: port, scope: scope)
    } else {
      return nil
    }
  }

  private static func interface(_ zone: Substring) -> UInt32? {
    guard !zone.isEmpty, !zone.utf8.contains(0) else { return nil }
    if let number = decimal(zone) { return UInt32(exactly: number) }
    let index = if_nametoindex(String(zone))
    return index == 0 ? nil : index
  }

  /// A number of one to nine decimal digits and nothing else: no sign, no space.
  fileprivate static func decimal(_ text: Substring) -> Int? {
    guard (1...9).contains(text.utf8.count) else { return nil }
    var value = 0
    for digit in text.utf8 {
      guard digit >= UInt8(ascii: "0") && digit <= UInt8(ascii: "9") else { return nil }
      value = value * 10 + Int(digit - UInt8(ascii: "0"))
    }
    return value
  }

  /// Whether it is an IPv4 address, in either family's spelling.
  fileprivate var isIPv4OrMapped: Bool { (family == .ipv4 || family == .ipv6) && high == 0 && low >> 32 == 0xffff }
}

// MARK: - The kernel's form

extension PeerAddress {
  /// What accept(2) and getsockname(2) fill in. Does not allocate. AF_UNIX is `.unix`, another family `.unknown`.
  package init(_ storage: UnsafePointer<sockaddr_storage>) { self.init(socketAddress: storage) }

  /// The same from a sockaddr that is only as long as its family needs, as getaddrinfo(3) gives it.
  package init(socketAddress raw: UnsafeRawPointer) {
    switch Int32(raw.load(as: sockaddr.self).sa_family) {
    case AF_INET:
      let four = raw.load(as: sockaddr_in.self)
      self.init(ipv4: UInt32(bigEndian: four.sin_addr.s_addr), port: UInt16(bigEndian: four.sin_port))
    case AF_INET6:
      let six = raw.load(as: sockaddr_in6.self)
      self.init(six.sin6_addr, port: UInt16(bigEndian: six.sin6_port), scope: six.sin6_scope_id)
    case AF_UNIX: self = .unix
    default: self = .unknown
    }
  }

  private init(_ address: in6_addr, port: UInt16, scope: UInt32) {
    let (high, low) = withUnsafeBytes(of: address) {
      (UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)), UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
    self.init(family: .ipv6, high: high, low: low, port: port, scope: scope)
  }

  /// Calls `body` with the address as bind(2) and connect(2) want it. Only for IPv4 and IPv6; nil for another family.
  package func withSocketAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result? {
    switch family {
    case .unknown, .unix: return nil
    case .ipv4:
      var four = sockaddr_in()
      four.sin_family = sa_family_t(AF_INET)
      four.sin_port = port.bigEndian
      four.sin_addr.s_addr = UInt32(truncatingIfNeeded: low).bigEndian
      return Self.lend(&four, to: body)
    case .ipv6:
      var six = sockaddr_in6()
      six.sin6_family = sa_family_t(AF_INET6)
      six.sin6_port = port.bigEndian
      six.sin6_scope_id = scope
      withUnsafeMutableBytes(of: &six.sin6_addr) {
        $0.storeBytes(of: high.bigEndian, as: UInt64.self)
        $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
      }
      return Self.lend(&six, to: body)
    }
  }

  private static func lend<Address, Result>(_ address: inout Address, to body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<Address>.size)) }
    }
  }
}

/// The system's sentence for an `errno`. Any thread: strerror(3) would share one buffer.
package func errorText(_ code: Int32) -> String {
  withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
    guard let start = buffer.baseAddress, strerror_r(code, start, buffer.count) == 0 else { return "error \(code)" }
    return String(cString: start)
  }
}
