// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// RFC 9112 6 and RFC 9110 8.6, 10.1.1: Content-Length, Transfer-Encoding, Expect.

@Suite("RFC 9112 6: body") struct MessageBodyTests {
  private func post(_ lines: String..., body: String = "", version: String = "1.1") -> String {
    "POST / HTTP/\(version)\r\nHost: a\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n" + body
  }

  private func need(_ text: String) -> Need? {
    if case .incomplete(let need) = HTTPWire().request(in: latin1(text)) { need } else { nil }
  }

  @Test("RFC 9110 8.6: a length is decimal digits", arguments: ["5", "05", "0000000000000000000000000005", "\t5 \t"])
  func lengths(_ length: String) throws {
    #expect(try request(post("Content-Length: \(length)", body: "hello, and more")).body.text == "hello")
  }

  @Test(
    "RFC 9110 8.6: anything else is refused",
    arguments: [
      "+5", "-0", "-5", "0x5", "1_0", "5.0", "4 2", "5;", "abc", "", "5, 5", "5,5", "5\u{C2}\u{A0}", "\u{D9}\u{A5}", "\u{EF}\u{BC}\u{95}",
      "5e0", "\u{A0}5",
    ])
  func notALength(_ length: String) {
    let expected = length.unicodeScalars.first == "\u{A0}" ? "400 the request head is not UTF-8" : "400 Content-Length is not a number"
    #expect(verdict(post("Content-Length: \(length)", body: "hello")) == expected)
  }

  @Test("6.3: two lengths are refused, the same or not")
  func repeatedLength() {
    #expect(verdict(post("Content-Length: 5", "content-length: 5")) == "400 there is more than one Content-Length")
    #expect(verdict(post("Content-Length: 5", "Content-Length: 6")) == "400 there is more than one Content-Length")
    #expect(verdict(post("Content-Length: x", "Content-Length: y")) == "400 there is more than one Content-Length")
  }

  @Test(
    "RFC 9110 15.5.14: a body over the limit is refused when the head is in, with its size as it was said",
    arguments: [
      ("33554433", "413 the body is 33554433 bytes, over 33554432"),
      ("00033554433", "413 the body is 33554433 bytes, over 33554432"),
      ("9223372036854775808", "413 the body is 9223372036854775808 bytes, over 33554432"),
      ("18446744073709551621", "413 the body is 18446744073709551621 bytes, over 33554432"),
      ("99999999999999999999", "413 the body is 99999999999999999999 bytes, over 33554432"),
      ("100000000000000000000", "413 the body is too long, over 33554432"),
      ("0000100000000000000000000", "413 the body is too long, over 33554432"),
      (String(repeating: "9", count: 400), "413 the body is too long, over 33554432"),
      ("33554432", "wait"),
    ])
  func bodyLimit(_ length: String, _ expected: String) {
    #expect(verdict(post("Content-Length: \(length)")) == expected)
  }

  @Test("The limits of head and body can be set, to anything")
  func otherLimits() {
    for limit in [Int.min, -1, 0, 4, 5, Int.max] {
      var wire = HTTPWire()
      wire.maximumBody = limit
      let expected = limit < 5 ? "413 the body is 5 bytes, over \(max(limit, 0))" : "ok"
      #expect(verdict(post("Content-Length: 5", body: "hello"), wire) == expected)
      wire = HTTPWire()
      wire.maximumHead = limit
      #expect(verdict(get("/"), wire).hasPrefix(limit == 4 ? "414 " : limit <= 5 ? "413 " : "ok"))
    }
    var wire = HTTPWire()
    wire.maximumBody = .max
    #expect(verdict(post("Content-Length: 9223372036854775807"), wire).hasPrefix("413"))
    wire.maximumHead = 0
    #expect(verdict("\r\n", wire) != "ok")
  }

  @Test("6: a body is read whatever the method", arguments: ["GET", "HEAD", "DELETE", "OPTIONS"])
  func anyMethod(_ method: String) throws {
    #expect(try request("\(method) / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi").body.text == "hi")
  }

  @Test("A body is every byte value, and what follows it is left alone")
  func anyBytes() {
    let body = (0...255).map { UInt8($0) }
    let head = latin1(post("Content-Length: 256"))
    guard case .complete(let request, let consumed) = HTTPWire().request(in: head + body + [1, 2]) else { return #expect(Bool(false)) }
    #expect(request.body == Bytes(body))
    #expect(consumed == head.count + 256)
    #expect(HTTPWire().bodyRange(of: request) == head.count..<consumed)
  }

  @Test("A body that is not whole is counted: what is missing, and nothing to look at again")
  func counted() {
    let head = post("Content-Length: 5")
    #expect(need(head)?.more == 5)
    #expect(need(head + "hel")?.more == 2)
    #expect(need(head + "hell")?.more == 1)
    #expect(need(head)?.wantsContinue == false)
  }

  @Test("A caller may count a need down itself before it hands it back")
  func countedByCaller() {
    let wire = HTTPWire()
    for expect in ["X: 1", "Expect: 100-continue"] {
      let input = latin1(post("Content-Length: 4", expect, body: "abcd"))
      let head = input.count - 4
      guard case .incomplete(var need) = wire.request(in: Array(input[..<head])) else { return #expect(Bool(false)) }
      for cut in (head + 1)...input.count {
        need.more -= 1
        input.withUnsafeBytes { bytes in
          let beginning = UnsafeRawBufferPointer(rebasing: bytes[..<cut])
          #expect(same(attached(wire, beginning, need), attached(wire, beginning, nil)))
        }
      }
    }
  }

  @Test(
    "6.1, 6.3: a coding is refused, also beside a length in either order",
    arguments: [
      "chunked", "Chunked", "gzip, chunked", "x", "", ",chunked", "chunked;a=b", "chunked, identity", "identity\u{C2}\u{A0}",
      "identity, identity",
    ])
  func codings(_ coding: String) {
    let expected = "400 chunked bodies are not spoken here; send Content-Length"
    #expect(verdict(post("Transfer-Encoding: \(coding)")) == expected)
    #expect(verdict(post("Transfer-Encoding: \(coding)", "Content-Length: 5")) == expected)
    #expect(verdict(post("Content-Length: 5", "Transfer-Encoding: \(coding)")) == expected)
    #expect(verdict(post("Transfer-Encoding: \(coding)", "Transfer-Encoding: identity")) == expected)
  }

  @Test("identity counts as no coding, alone")
  func identity() {
    #expect(verdict(post("Transfer-Encoding: identity")) == "ok")
    #expect(verdict(post("Transfer-Encoding: Identity")) == "ok")
    #expect(
      verdict(post("Transfer-Encoding: identity", "Transfer-Encoding: identity"))
        == "400 chunked bodies are not spoken here; send Content-Length")
    for length in ["5", "0", "x"] {
      #expect(
        verdict(post("Transfer-Encoding: identity", "Content-Length: \(length)"))
          == "400 Transfer-Encoding and Content-Length do not go together")
    }
    #expect(verdict(post("TE: trailers, chunked")) == "ok")
  }

  @Test("6.1: HTTP/1.0 has no codings", arguments: ["chunked", "identity", ""])
  func codingsInHTTP10(_ coding: String) {
    #expect(verdict(post("Transfer-Encoding: \(coding)", version: "1.0")) == "400 an HTTP/1.0 request cannot carry Transfer-Encoding")
  }

  @Test("RFC 9110 10.1.1: 100 Continue is due when the head is whole and no byte of the body is in")
  func wantsContinue() {
    let head = post("Content-Length: 3", "Expect: 100-Continue")
    #expect(need(String(head.unicodeScalars.dropLast()))?.wantsContinue == false)
    #expect(need(head)?.wantsContinue == true)
    #expect(need(head + "a")?.wantsContinue == false)
    #expect(verdict(head + "abc") == "ok")
    #expect(verdict(post("Content-Length: 0", "Expect: 100-continue")) == "ok")
    #expect(verdict(post("Expect: 100-continue")) == "ok")
    #expect(need(post("Content-Length: 3", "Expect: 100-continue", version: "1.0"))?.wantsContinue == false)
    #expect(need(post("Content-Length: 1", "Expect: 100-continue"))?.wantsContinue == true)
  }

  @Test("RFC 9110 10.1.1: a refusal that is due comes instead of 100 Continue")
  func refusalFirst() {
    #expect(verdict(post("Content-Length: 33554433", "Expect: 100-continue")).hasPrefix("413"))
    #expect(verdict(post("Transfer-Encoding: chunked", "Expect: 100-continue")).hasPrefix("400"))
    #expect(verdict(post("Content-Length: 33554433", "Expect: x")).hasPrefix("413"))
  }

  @Test(
    "RFC 9110 10.1.1: any other expectation is 417, on any line, but not in HTTP/1.0",
    arguments: ["200-ok", "", "100-continue, later", "100-continue;", "100"])
  func otherExpectations(_ expectation: String) {
    let expected = "417 the only expectation known here is 100-continue"
    #expect(verdict(post("Expect: \(expectation)")) == expected)
    #expect(verdict(post("Expect: \(expectation)", "Expect: 100-continue")) == expected)
    #expect(verdict(post("Expect: 100-continue", "Expect: \(expectation)")) == expected)
    #expect(verdict(post("Expect: \(expectation)", version: "1.0")) == "ok")
  }

  @Test("Host, coding, length and size are judged in this order")
  func order() {
    #expect(verdict("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == "400 an HTTP/1.1 request needs a Host")
    #expect(verdict("POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: x\r\n\r\n") == "400 there is more than one Host")
  }
}
