// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

@Suite struct NetworkTests {
  private func peer(_ text: String) throws -> PeerAddress { try #require(PeerAddress(text: text), "\(text)") }

  @Test(arguments: [
    ("10.0.0.0/8", "10.255.255.255", true), ("10.0.0.0/8", "11.0.0.0", false), ("10.0.0.0/8", "9.255.255.255", false),
    ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "::1", false), ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false),
    ("192.0.2.128/25", "192.0.2.128", true), ("192.0.2.128/25", "192.0.2.127", false), ("2001:db8::/32", "2001:db8:ffff::1", true),
    ("2001:db8::/32", "2001:db9::1", false), ("::/0", "fe80::1", true), ("::/0", "10.0.0.1", false), ("fe80::/10", "fe80::1%1", true),
    ("2001:db8::/65", "2001:db8::7fff:ffff:ffff:ffff", true), ("2001:db8::/65", "2001:db8::8000:0:0:0", false), ("::1", "::1", true),
    ("::1", "::2", false), ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("::ffff:10.0.0.0/104", "10.1.2.3", true),
    ("::ffff:10.0.0.0/104", "::ffff:11.1.2.3", false), ("::/0", "::ffff:10.1.2.3", false), ("::ffff:0:0/95", "::fffe:0:1", true),
  ])
  func a_network_contains_what_shares_its_prefix(network: String, address: String, inside: Bool) throws {
    #expect(try #require(Network(network)).contains(try peer(address)) == inside)
  }

  @Test func neither_a_unix_socket_nor_an_unknown_address_is_in_any_network() throws {
    for network in ["0.0.0.0/0", "::/0"] {
      let network = try #require(Network(network))
      #expect(!network.contains(.unix) && !network.contains(.unknown))
    }
  }

  @Test(arguments: [
    ("10.1.2.3/8", "10.0.0.0/8"), ("10.1.2.3", "10.1.2.3/32"), ("10.1.2.3/0", "0.0.0.0/0"), ("2001:db8::1/32", "2001:db8::/32"),
    ("2001:db8::1", "2001:db8::1/128"), ("2001:db8:0:1::5/64", "2001:db8:0:1::/64"),
  ])
  func host_bits_beyond_the_prefix_are_dropped(text: String, description: String) throws {
    #expect(try #require(Network(text)).description == description)
  }

  @Test(arguments: [
    "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0/8", "::/129", "10.0.0.0 /8", "name/8",
    "fe80::1%1/64", "[::1]/128", "10.0.0.0/99999999999999999999",
  ])
  func what_is_not_a_network_is_refused(text: String) { #expect(Network(text) == nil) }

  @Test(arguments: [
    ("1.2.3.4", "1.2.3.4:0"), ("1.2.3.4:80", "1.2.3.4:80"), ("::1", "[::1]:0"), ("[::1]", "[::1]:0"), ("[::1]:65535", "[::1]:65535"),
    ("fe80::1%1", "[fe80::1%1]:0"), ("[fe80::1%lo]:80", "[fe80::1%1]:80"), ("::ffff:1.2.3.4", "[::ffff:1.2.3.4]:0"),
    ("2001:DB8::", "[2001:db8::]:0"),
  ])
  func an_address_is_read_from_text(text: String, description: String) throws { #expect(try peer(text).description == description) }

  @Test(arguments: [
    "", ":", ":80", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3", "1.2.3.4.5", "[1.2.3.4]:80", "[::1", "[::1]80", "[::1]:", "[]:80",
    "::1%", "::1%no-such-interface", "localhost", "1.2.3.4%1", " 1.2.3.4", "[::1]:80:80", "[",
  ])
  func what_is_not_an_address_is_refused(text: String) { #expect(PeerAddress(text: text) == nil) }

  @Test(arguments: ["1.2.3.4:80", "255.255.255.255:65535", "[2001:db8::1:2]:443", "[fe80::1%1]:1"])
  func an_address_comes_back_from_the_kernels_form(text: String) throws {
    let address = try peer(text)
    let back = try #require(
      address.withSocketAddress { pointer, length in
        var storage = sockaddr_storage()
        memcpy(&storage, pointer, Int(length))
        return PeerAddress(&storage)
      })
    #expect(back == address)
  }

  @Test func other_families_are_told_apart() {
    var storage = sockaddr_storage()
    storage.ss_family = sa_family_t(AF_UNIX)
    #expect(PeerAddress(&storage) == .unix)
    storage.ss_family = sa_family_t(AF_NETLINK)
    #expect(PeerAddress(&storage) == .unknown)
    #expect(PeerAddress.unix.withSocketAddress { _, _ in true } == nil)
  }

  @Test func a_NUL_does_not_cut_an_address_short() {
    #expect(PeerAddress(text: "1.2.3.4\0") == nil)
    #expect(PeerAddress(text: "1.2.3.4:8\0") == nil)
    #expect(PeerAddress(text: "fe80::1%lo\0") == nil)
    #expect(Network("1.2.3.4\0/8") == nil)
  }

  @Test func an_errno_has_a_sentence() {
    #expect(errorText(ENOENT) == "No such file or directory")
    #expect(errorText(123_456).contains("123456"))
  }
}
