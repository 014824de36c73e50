// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// RFC 9112 2.2 and 3: what stands before the request line, and the line itself.

@Suite("RFC 9112 2.2 and 3: request line") struct RequestLineTests {
  static let notALine = "400 the request line is not METHOD PATH HTTP/1.x"

  @Test("2.2: one empty line before the request is ignored and counted, two are refused")
  func emptyLines() {
    guard case .complete(_, let consumed) = HTTPWire().request(in: latin1("\r\n" + get("/"))) else { return #expect(Bool(false)) }
    #expect(consumed == get("/").utf8.count + 2)
    #expect(verdict("\r\n") == "wait")
    #expect(verdict("\r") == "wait")
    #expect(verdict("\r\n\r") == "400 the first byte cannot begin a request")
  }

  @Test(
    "2.2: what cannot begin a request is refused at its first byte",
    arguments: ["\n", " ", "\u{EF}", "{", "\u{16}", "\0", "\"", "/", ":", "\t"])
  func firstByte(_ byte: String) {
    #expect(verdict(byte) == "400 the first byte cannot begin a request")
    #expect(verdict("\r\n" + byte) == "400 the first byte cannot begin a request")
  }

  @Test("2.2: a line that ends in LF alone, and a CR without its LF, are refused at the byte")
  func lineEnds() {
    #expect(verdict("GET / HTTP/1.1\n") == "400 a line ends in LF alone")
    #expect(verdict("GET / HTTP/1.1\r\nHost: a\n") == "400 a line ends in LF alone")
    #expect(verdict("GET / HTTP/1.1\r\n\n") == "400 a line ends in LF alone")
    #expect(verdict("GET / HTTP/1.1\r") == "wait")
    #expect(verdict("GET / HTTP/1.1\rH") == "400 a CR without its LF")
    #expect(verdict("GET / HTTP/1.1\r\r") == "400 a CR without its LF")
    #expect(verdict("GET / HTTP/1.1\r\nHost: a\r\n\rX") == "400 a CR without its LF")
    #expect(verdict("\rG") == "400 a CR without its LF")
  }

  @Test("A control byte or DEL anywhere in the head is refused at the byte, a tab is not", arguments: Array(0..<32) + [127])
  func controlBytes(_ value: UInt8) {
    let byte = String(UnicodeScalar(value))
    let expected =
      switch value {
      case 9, 13: "wait"
      case 10: "400 a line ends in LF alone"
      default: "400 a control byte in the request head"
      }
    #expect(verdict("GET /" + byte) == expected)
    #expect(verdict("GET / HTTP/1.1\r\nHost: a\r\nX: b" + byte) == expected)
  }

  @Test(
    "3: other protocols are refused at the end of their first line",
    arguments: [
      "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "*1\r\n", "EHLO mail\r\n", "GET /x\r\n", "GET\r\n", "l\r\n",
    ])
  func otherProtocols(_ line: String) {
    #expect(verdict(String(line.unicodeScalars.dropLast(2))) == "wait")
    #expect(verdict(line) == RequestLineTests.notALine)
  }

  @Test(
    "3: exactly three parts with one space between them",
    arguments: [
      "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ", "GET / a HTTP/1.1", "GET\t/ HTTP/1.1", "GET /\tHTTP/1.1", "GET  HTTP/1.1",
      "GET / ", "GE(T / a HTTP/1.1",
    ])
  func threeParts(_ line: String) {
    #expect(verdict(line + "\r\n") == RequestLineTests.notALine)
  }

  @Test("3.1: a method is any token and keeps its case")
  func methods() throws {
    #expect(try request("get / HTTP/1.1\r\nHost: a\r\n\r\n").method == "get")
    #expect(try request("get / HTTP/1.1\r\nHost: a\r\n\r\n").verb == .other)
    #expect(try request("A9!#$%&'*+-.^_`|~ / HTTP/1.1\r\nHost: a\r\n\r\n").method == "A9!#$%&'*+-.^_`|~")
    #expect(verdict("GE(T / HTTP/1.1\r\n") == "400 the method is not a token")
    #expect(verdict("PO\u{C5}\u{BF}T / HTTP/1.1\r\n") == "400 the method is not a token")
    #expect(verdict("HTTP/1.1 200 OK\r\n") == "400 the method is not a token")
  }

  @Test("3.1: the verb of every known method", arguments: HTTPVerb.allCases)
  func verbs(_ verb: HTTPVerb) throws {
    let name = "\(verb)".uppercased()
    #expect(try request("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n").verb == verb)
    // One letter more or less is another method.
    #expect(try request("\(name)X / HTTP/1.1\r\nHost: a\r\n\r\n").verb == .other)
    #expect(try request("\(name.dropLast()) / HTTP/1.1\r\nHost: a\r\n\r\n").verb == .other)
  }

  @Test("RFC 9110 9.3.6: CONNECT is refused as not implemented, whatever its target")
  func connect() {
    #expect(verdict("CONNECT a:443 HTTP/1.1\r\n") == "501 this is not a proxy; CONNECT is not spoken here")
    #expect(verdict("CONNECT / HTTP/1.1\r\n") == "501 this is not a proxy; CONNECT is not spoken here")
    #expect(verdict("CONNECT a:443 HTTP/2.0\r\n") == "505 only HTTP/1.x is spoken here")
    #expect(verdict("connect / HTTP/1.1\r\nHost: a\r\n\r\n") == "ok")
  }

  @Test("2.3: HTTP/1.0 to HTTP/1.9 are spoken", arguments: 0...9)
  func minorVersions(_ minor: Int) throws {
    #expect(try request("GET / HTTP/1.\(minor)\r\nHost: a\r\n\r\n").isHTTP10 == (minor == 0))
  }

  @Test(
    "RFC 9110 15.6.6: another major version is refused as such",
    arguments: ["PRI * HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/3.0", "GET / HTTP/9.9"])
  func majorVersions(_ line: String) {
    #expect(verdict(line + "\r\n") == "505 only HTTP/1.x is spoken here")
  }

  @Test(
    "2.3: what is not a version",
    arguments: [
      "HTTP/1.1x", "HTTP/1.10", "HTTP/1.", "http/1.1", "HTTP/1,1", "HTTP/11", "HTTP/x.1", "HTTP/1.x", "RTSP/1.0", "ICE/1.0", "HTTP-1.1",
      "HTTQ/1.1",
    ])
  func noVersion(_ version: String) {
    #expect(verdict("GET / \(version)\r\n") == RequestLineTests.notALine)
  }

  @Test("The request line is judged before a later line is in")
  func lineFirst() {
    #expect(verdict("GET / HTTP/2.0\r\nno colon\r\n\r\n") == "505 only HTTP/1.x is spoken here")
    #expect(verdict("GET /%zz HTTP/1.1\r\n") == "400 a percent escape in the target is not two hex digits")
  }
}
