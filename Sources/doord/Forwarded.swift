// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Wire

// Whom a trusted proxy asks for. Each proxy appends the address it was asked from to X-Forwarded-For, so the list is read from its end: what
// trusted proxies wrote is believed, and the first address that is none of theirs is the client. What stands further left the client
// may have written itself.

/// Reads X-Forwarded-For. Pure.
struct Forwarded: Sendable {
  let trusted: [Network]

  enum Client: Equatable {
    /// There is no such header, or it is empty: the peer asks for itself.
    case peer
    case address(PeerAddress)
    /// A trusted proxy wrote something that is not an address.
    case unreadable
  }

  func trusts(_ address: PeerAddress) -> Bool { trusted.contains { $0.contains(address) } }

  /// The client that a trusted peer asks for.
  /// - Parameter lines: The values of all X-Forwarded-For lines, in order.
  func client(_ lines: [String]) -> Client {
    var client = Client.peer
    for line in lines.reversed() {
      for part in line.utf8.split(separator: UInt8(ascii: ",")).reversed() {
        let text = Forwarded.trimmed(part)
        if text.isEmpty { continue }
        guard let address = PeerAddress(text: text) else { return .unreadable }
        client = .address(address)
        if !trusts(address) { return client }
      }
    }
    return client  // all of them are proxies: the one furthest away
  }

  private static func trimmed(_ part: Substring.UTF8View) -> String {
    let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    var part = part.drop(while: isBlank)
    while part.last.map(isBlank) == true { part.removeLast() }
    return String(decoding: part, as: UTF8.self)
  }
}
