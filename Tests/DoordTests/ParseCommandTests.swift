// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

@testable import doord

@Suite("doord parse")
struct ParseCommandTests {
  private func parse(_ text: String, body: [UInt8] = [], _ wire: HTTPWire = HTTPWire()) -> (line: String, isComplete: Bool) {
    let (line, isComplete) = ParseCommand.describe(Array(text.utf8) + body, wire)
    return (String(decoding: line, as: UTF8.self), isComplete)
  }

  @Test func a_whole_request_is_shown_in_full() {
    #expect(
      parse("POST /p%20q?b=2&a=1&b=3 HTTP/1.1\r\nHost: h\r\nSet: 1\r\nset: 2\r\nContent-Length: 3\r\n\r\n", body: [0xff, 0x22, 0x0a, 0x78])
        == (
          """
          {"outcome":"complete","method":"POST","path":"/p q","query":{"a":"1","b":"3"},\
          "headers":[["host","h"],["set","1"],["set","2"],["content-length","3"]],"bodyLength":3,"body":"\\u00ff\\"\\n","consumed":83}
          """, true
        ))
  }

  @Test func of_a_long_body_4096_bytes_are_shown() {
    let line = parse("PUT / HTTP/1.0\r\nContent-Length: 5000\r\n\r\n", body: [UInt8](repeating: 0x61, count: 5000)).line
    #expect(line.contains("\"bodyLength\":5000,\"body\":\"\(String(repeating: "a", count: 4096))\",\"consumed\":5040}"))
  }

  @Test func what_is_not_whole_or_not_a_request_says_why() {
    #expect(parse("GET / HT") == (#"{"outcome":"incomplete","wantsContinue":false}"#, false))
    let expecting = "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    #expect(parse(expecting) == (#"{"outcome":"incomplete","wantsContinue":true}"#, false))
    #expect(
      parse("\n") == (#"{"outcome":"invalid","status":400,"reason":"the first byte cannot begin a request"}"#, false))
    #expect(parse("") == (#"{"outcome":"incomplete","wantsContinue":false}"#, false))
  }

  @Test func limits_are_those_of_the_command_line() throws {
    var wire = HTTPWire()
    wire.maximumBody = 2
    #expect(parse("PUT / HTTP/1.0\r\nContent-Length: 3\r\n\r\n", wire).line.contains("\"status\":413"))
  }
}
