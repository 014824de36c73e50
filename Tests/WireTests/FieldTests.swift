// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// RFC 9112 5 and 3.2: header lines and Host.

@Suite("RFC 9112 5: header lines") struct FieldTests {
  @Test("RFC 9110 5.1, 5.5: names are put in lower case, white space around a value goes, every line is kept in order")
  func namesAndValues() throws {
    let request = try request("GET / HTTP/1.1\r\nHOST:a\r\nX-Tag: one\r\nx-empty:\r\nX-Spaces: \t \r\nX-TAG:\t a  b\t \r\nX-C::\r\n\r\n")
    #expect(
      request.headers.map { "\($0.name)=\($0.value)" } == ["host=a", "x-tag=one", "x-empty=", "x-spaces=", "x-tag=a  b", "x-c=:"])
    #expect(request.headers["X-Tag"] == "a  b")
    #expect(request.headers["x-tag"] == "a  b")
    #expect(request.headers["x-ta"] == nil)
    #expect(request.headers.withValue(of: "x-tag") { Array($0) } == Array("a  b".utf8))
    #expect(request.headers.withValue(of: "X-TAG") { $0.count } == 4)
    #expect(request.headers.withValue(of: "nothing") { $0.count } == nil)
  }

  @Test(
    "5.1: a name is a token, right before its colon",
    arguments: ["X : 1", "X\t: 1", "X Y: 1", ": 1", "X[]: 1", "f\u{C3}\u{B6}o: 1", "X\u{C2}\u{A0}: 1", "X\u{85}: 1", "a/b: 1", "\"a\": 1"])
  func badNames(_ line: String) {
    #expect(verdict(lines(line)) == "400 a header name is not a token")
    #expect(verdict("GET / HTTP/1.1\r\n\(line)\r\nHost: a\r\n\r\n") == "400 a header name is not a token")
  }

  @Test("5: a line has a colon", arguments: ["X", "Content-Length 10", "X Y", "X\u{C3}\u{B6}"])
  func noColon(_ line: String) {
    #expect(verdict(lines(line)) == "400 a header line has no colon")
  }

  @Test("5.2 and 2.2: a line that begins with white space is refused", arguments: [" X: 1", "\tX: 1", " ", "\t", " :", " folded"])
  func leadingBlanks(_ line: String) {
    #expect(verdict(lines(line)) == "400 a header line begins with white space")
    #expect(verdict("GET / HTTP/1.1\r\n\(line)\r\nHost: a\r\n\r\n") == "400 a header line begins with white space")
  }

  @Test("A value is UTF-8, of any kind")
  func text() throws {
    let sent = String(decoding: Array("\u{301}abc Z\u{FC}rich \u{1F388} \u{A0}v\u{A0}".utf8), as: UTF8.self)
    let raw = Array(sent.utf8).map { String(UnicodeScalar($0)) }.joined()
    #expect(try request(lines("X:\(raw)")).headers["x"] == sent)
    for value in ["\u{FC}", "\u{C0}\u{AF}", "\u{ED}\u{A0}\u{80}", "a\u{C3}", "\u{F5}\u{80}\u{80}\u{80}", "12345678\u{FC}"] {
      #expect(verdict(lines("X: \(value)")) == "400 the request head is not UTF-8")
    }
  }

  @Test("The lines are judged in their order")
  func order() {
    #expect(verdict(lines("no colon", " blank first")) == "400 a header line has no colon")
    #expect(verdict(lines("X: \u{FF}", "no colon")) == "400 the request head is not UTF-8")
    #expect(verdict("GET / HTTP/1.1\r\nX\r\n\r\n") == "400 a header line has no colon")
  }

  @Test("5.4: a thousand lines are welcome, and found")
  func manyLines() throws {
    let request = try request(lines((0..<1000).map { "x\($0): \($0)" }.joined(separator: "\r\n")))
    #expect(request.headers.count == 1001)
    #expect(request.headers["X999"] == "999")
    let smallest = Array(repeating: "a:", count: 4000).joined(separator: "\r\n")
    #expect(try WireTests.request(lines(smallest)).headers.count == 4001)
  }

  @Test("5.4: the empty line that ends a head begins at most 16384 bytes in, however the head is cut")
  func headLimit() {
    for (extra, expected) in [(-1, "ok"), (0, "ok"), (1, "413 the request head is over 16384 bytes")] {
      let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
      let text = start + String(repeating: "x", count: 16384 - start.utf8.count + extra) + "\r\n\r\n"
      #expect(verdict(text) == expected)
      // An empty line before the request counts as well.
      #expect(verdict("\r\n" + text) == (extra < -1 ? "ok" : "413 the request head is over 16384 bytes"))
    }
  }

  @Test("A small limit of the head holds at each byte around it, for every end of a head")
  func smallHeadLimit() {
    var wire = HTTPWire()
    wire.maximumHead = 30
    for length in 20...40 {
      for tail in ["\r\n\r\n", "\r\n", "\r", "", "\r\nY", "\r\n\rY", "\r\n\r\n\r\n", "\u{1}", "\n"] {
        let input = latin1("GET / HTTP/1.1\r\nHost: a\r\n".padding(to: length) + tail)
        let end = input.firstRange(of: [13, 10, 13, 10])
        var verdict: Outcome<HTTPRequest>?
        for cut in 0...input.count {
          let outcome = wire.request(in: Array(input[..<cut]))
          if let verdict { #expect(same(verdict, outcome)) } else if case .incomplete = outcome { continue } else { verdict = outcome }
          if case .complete = outcome { #expect((end?.lowerBound ?? 99) <= 30) }
          if case .invalid(let refusal) = outcome, refusal.status == 413 { #expect((end?.lowerBound ?? 99) > 30 && cut > 30) }
        }
        if verdict == nil { #expect(input.count <= 33) }
      }
    }
  }

  @Test("3: a target that runs past the limit is 414, as soon as that is certain")
  func targetLimit() {
    let long = String(repeating: "a", count: 16384 - 4)
    #expect(verdict("GET " + long) == "wait")
    #expect(verdict("GET /" + long) == "414 the request line is over 16384 bytes")
    #expect(verdict(get("/" + String(repeating: "a", count: 8000))) == "ok")
    #expect(verdict(String(repeating: "a", count: 16385)) == "413 the request head is over 16384 bytes")
    #expect(verdict("GET " + long.dropLast(8) + " HTTP/1.1X") == "413 the request head is over 16384 bytes")
  }
}

extension String {
  /// A head's beginning, filled up to `length` bytes with a header line.
  fileprivate func padding(to length: Int) -> String {
    let room = length - utf8.count
    return room < 2 ? String(decoding: Array(utf8.prefix(length)), as: UTF8.self) : self + "X:" + String(repeating: "x", count: room - 2)
  }
}

@Suite("RFC 9112 3.2: Host") struct HostTests {
  @Test("A missing Host is refused in HTTP/1.1 and not in HTTP/1.0")
  func missing() {
    #expect(verdict("GET / HTTP/1.1\r\n\r\n") == "400 an HTTP/1.1 request needs a Host")
    #expect(verdict("GET / HTTP/1.2\r\n\r\n") == "400 an HTTP/1.1 request needs a Host")
    #expect(verdict("GET http://a/ HTTP/1.1\r\n\r\n") == "400 an HTTP/1.1 request needs a Host")
    #expect(verdict("GET / HTTP/1.0\r\n\r\n") == "ok")
  }

  @Test("Two are refused in any version", arguments: ["1.0", "1.1"])
  func repeated(_ version: String) {
    #expect(verdict("GET / HTTP/\(version)\r\nHost: a\r\nhost: a\r\n\r\n") == "400 there is more than one Host")
  }

  @Test(
    "What is a host and port",
    arguments: [
      "", "a", "a.b:80", "127.0.0.1:8757", "[::1]", "[fe80::1]:8757", "[::ffff:127.0.0.1]", "a_b", "a%20b", "a:", "xn--zrich-kva.test",
      "!$&'()*+,;=~", "Host",
    ])
  func valid(_ host: String) throws {
    #expect(try request("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n").headers["host"] == host)
  }

  @Test(
    "What is none",
    arguments: [
      "a b", "a/x", "a@b", "a:80:81", "a:x", "\u{C3}\u{BC}", "[::1", "::1", "[::1]x", "a%2", "[]", ":80", "a,b c", "a\tb", "a?b", "\"a\"",
    ])
  func invalid(_ host: String) {
    #expect(verdict("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n") == "400 Host is not a host and port")
    #expect(verdict("GET http://b/ HTTP/1.0\r\nHost: \(host)\r\n\r\n") == "400 Host is not a host and port")
  }
}
