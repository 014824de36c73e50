// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// RFC 9112 4 to 6 and RFC 9110 6, 8.6, 15: answers, compared as bytes.

@Suite("RFC 9112 4 to 6: answers") struct AnswerTests {
  static let date = "Date: Mon, 30 Nov 2026 16:10:00 GMT\r\n"

  @Test("A text is the same bytes each time, with and without the loop's date")
  func plainText() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\nContent-Type: text/plain; charset=utf-8\r\n"
    #expect(written(.text("h\u{E9}llo")) == head + "\r\nh\u{E9}llo")
    #expect(written(.text("h\u{E9}llo"), date: AnswerTests.date) == head + AnswerTests.date + "\r\nh\u{E9}llo")
  }

  @Test("Header lines stand in the order of their names in lower case, equal names in their own order")
  func order() throws {
    var answer = HTTPAnswer.bytes(Bytes("{}"), contentType: "application/json", status: 201)
    for (name, value) in [
      ("X-b", "1"), ("set-cookie", "z"), ("Accept-Ranges", "none"), ("Set-Cookie", "a"), ("x-A", "2"), ("Content-Language", "de"),
      ("Content-Location", "/"),
      ("ETag", "\"1\""), ("CONTENT-ENCODING", "gzip"), ("conn", "1"), ("connection-x", "2"), ("Dat", "1"), ("Dates", "2"),
      ("content-type-x", "3"),
    ] { try answer.headers.add(name, value) }
    #expect(
      written(answer, date: AnswerTests.date) == """
        HTTP/1.1 201 Created\r
        Accept-Ranges: none\r
        conn: 1\r
        Connection: close\r
        connection-x: 2\r
        CONTENT-ENCODING: gzip\r
        Content-Language: de\r
        Content-Length: 2\r
        Content-Location: /\r
        Content-Type: application/json\r
        content-type-x: 3\r
        Dat: 1\r
        Date: Mon, 30 Nov 2026 16:10:00 GMT\r
        Dates: 2\r
        ETag: "1"\r
        set-cookie: z\r
        Set-Cookie: a\r
        x-A: 2\r
        X-b: 1\r
        \r
        {}
        """)
  }

  @Test("A refusal is told to observers as it was, with its Retry-After")
  func refusalOfAnswer() {
    for refusal in [Refusal.tooManyConnections, .handlerTimeout, Refusal(404, "nothing here")] {
      #expect(HTTPWire().refusal(of: .refusal(refusal)) == refusal)
    }
    #expect(HTTPWire().refusal(of: .text("no", status: 404)) == nil)
  }

  @Test("What the handler says of connection, length and coding is left out")
  func wireOwnsFraming() throws {
    var answer = HTTPAnswer.text("hi")
    try answer.headers.add("Connection", "keep-alive")
    try answer.headers.add("content-length", "7")
    try answer.headers.add("TRANSFER-ENCODING", "chunked")
    #expect(written(answer) == written(.text("hi")))
  }

  @Test("A content type and a date of the handler's own are the only ones")
  func ownTypeAndDate() throws {
    var answer = HTTPAnswer.text("hi")
    try answer.headers.set("content-type", "text/html")
    try answer.headers.set("DATE", "yesterday")
    #expect(
      written(answer, date: AnswerTests.date)
        == "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\ncontent-type: text/html\r\nDATE: yesterday\r\n\r\nhi")
  }

  @Test("An empty content type is none")
  func emptyType() throws {
    #expect(written(.bytes(Bytes("hi"), contentType: "")) == written(HTTPAnswer(body: .text("hi"))))
    #expect(!written(.bytes(Bytes("hi"), contentType: "", status: 404)).contains("Type"))
  }

  @Test(
    "A value cannot add a line, whatever it is made of",
    arguments: [
      "x\r\nInjected: yes", "x\r\u{301}\n\u{301}Injected: yes", "x\nInjected: yes", "x\rInjected: yes", "x\0\r\n\r\nInjected: yes",
      "\r\n\r\nInjected: yes",
      "12345678\r\nInjected: yes", "1234567\r\n\r\nInjected: yes\r\n",
    ])
  func injection(_ value: String) throws {
    var answer = HTTPAnswer(contentType: value, body: .text("hi"))
    let spaced = String(decoding: value.utf8.map { $0 == 13 || $0 == 10 || $0 == 0 ? 32 : $0 }, as: UTF8.self)
    #expect(written(answer) == "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nContent-Type: \(spaced)\r\n\r\nhi")
    answer.contentType = nil
    try answer.headers.add("X", value)
    #expect(written(answer) == "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nX: \(spaced)\r\n\r\nhi")
  }

  @Test("RFC 9110 9.3.2: HEAD gets the head that GET gets, and no body", arguments: [0, 5, 20000, 100_000])
  func head(_ size: Int) throws {
    let head = try HTTPRequest(method: "HEAD", target: "/")
    let body = String(repeating: "x", count: size)
    for answer in [HTTPAnswer.text(body), .bytes(Bytes(body), contentType: "a/b"), .text(body, status: 404)] {
      let whole = written(answer, to: try HTTPRequest(target: "/"))
      #expect(written(answer, to: head) + body == whole)
    }
  }

  @Test("A stream has no length; after HEAD, and where there is no body, it is cancelled and not sent")
  func streams() throws {
    let get = try HTTPRequest(target: "/")
    let head = try HTTPRequest(method: "HEAD", target: "/")
    for (status, request, isSent) in [
      (200, get, true), (500, get, true), (200, head, false), (204, get, false), (304, get, false), (101, get, false),
    ] {
      let source = Silence()
      var output = Output()
      HTTPWire().write(HTTPAnswer(status: status, body: .stream(source)), to: request, into: &output)
      #expect((output.source === source) == isSent)
      #expect(source.cancelled == (isSent ? 0 : 1))
      #expect(!text(of: output).contains("Content-Length"))
      #expect(text(of: output).contains("Connection: close\r\n") == (status != 101))
    }
  }

  @Test(
    "RFC 9110 8.6: which answers say a length",
    arguments: [
      (200, "", "0"), (200, "hi", "2"), (404, "", "0"), (201, "", "0"), (100, "hi", nil), (199, "", nil), (204, "", nil), (204, "hi", nil),
      (205, "hi", "0"),
      (304, "", nil), (304, "hi", "2"), (599, "", "0"),
    ])
  func lengths(_ status: Int, _ body: String, _ length: String?) {
    let text = written(HTTPAnswer(status: status, body: body.isEmpty ? .empty : .text(body)))
    #expect(text.contains("Content-Length: ") == (length != nil))
    if let length { #expect(text.contains("\r\nContent-Length: \(length)\r\n")) }
    #expect(text.contains("Connection: close") == (status >= 200))
    #expect(text.hasSuffix("\r\n\r\n" + ([200, 404, 201, 599].contains(status) ? body : "")))
  }

  @Test("A status out of range is written as 500", arguments: [0, 99, 600, -1, 1000, Int.max, Int.min])
  func badStatus(_ status: Int) {
    #expect(written(.text("hi", status: status)) == written(.text("hi", status: 500)))
    #expect(HTTPWire().status(of: .status(status)) == 500)
  }

  @Test("Every status of RFC 9110 15 has its phrase, others none")
  func phrases() {
    let known = [
      100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409,
      410, 411,
      412, 413, 414, 415, 416, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505,
    ]
    for status in 100...599 {
      let line = written(.status(status)).prefix { $0 != "\r\n" }
      #expect(line.hasPrefix("HTTP/1.1 \(status) "))
      #expect((line.utf8.count > 13) == known.contains(status))
    }
    #expect(written(.status(421)).hasPrefix("HTTP/1.1 421 Misdirected Request\r\n"))
  }

  @Test("A refusal is JSON with its reason, and says when to try again")
  func refusals() {
    let answer = HTTPWire().refusal(.tooManyConnections)
    #expect(HTTPWire().status(of: answer) == 503)
    #expect(
      written(answer)
        == "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 60\r\nContent-Type: application/json\r\nRetry-After: 1\r\n\r\n"
        + #"{"error":"too many connections; try again later","ok":false}"#)
    #expect(written(.refusal(Refusal(400, "a \"b\"\\\n\u{1}\u{E9}"))).hasSuffix(#"{"error":"a \"b\"\\\u000a\u0001é","ok":false}"#))
  }

  @Test("Large bodies of bytes are not copied, in order with what stands before them")
  func largeBodies() {
    for size in [Output.copyLimit - 1, Output.copyLimit, Output.copyLimit + 1, 4 << 20] {
      let body = Bytes(ContiguousArray(repeating: 120, count: size))
      var output = Output()
      HTTPWire().write(.bytes(body, contentType: "a/b"), to: nil, into: &output)
      #expect(output.tail.count == (size > Output.copyLimit ? size : 0))
      #expect(
        output.buffered.count + output.tail.count == "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: \r\nContent-Type: a/b\r\n\r\n"
          .utf8.count + "\(size)".count + size)
    }
  }

  @Test("RFC 9110 15.2.1: leave to go on")
  func goOn() {
    var output = Output()
    HTTPWire().writeContinue(into: &output)
    #expect(text(of: output) == "HTTP/1.1 100 Continue\r\n\r\n")
  }

  @Test("Answers written one behind the other are the answers one by one")
  func appended() {
    var output = Output(capacity: 64)
    for _ in 0..<100 { HTTPWire().write(.text("hello"), to: nil, into: &output) }
    #expect(text(of: output) == String(repeating: written(.text("hello")), count: 100))
  }
}

@Suite("Headers of an answer") struct HeadersTests {
  @Test(
    "A name that is not a token is refused where it is set",
    arguments: ["", "a b", "a:", "a\r\n", "\u{E9}", "a\u{301}", "a\0", "(a)", "a/b"])
  func badNames(_ name: String) {
    var headers = Headers()
    #expect(throws: HeaderError.invalidName(name)) { try headers.add(name, "1") }
    #expect(throws: HeaderError.invalidName(name)) { try headers.set(name, "1") }
    #expect(headers.isEmpty)
  }

  @Test("add keeps every line, set leaves one where the first stood, remove none; lookup gives the last")
  func lines() throws {
    var headers = Headers()
    for (name, value) in [("A", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("A", "5")] { try headers.add(name, value) }
    #expect(headers.map { $0.name + $0.value } == ["A1", "b2", "a3", "c4", "A5"])
    #expect(headers["a"] == "5")
    try headers.set("a", "6")
    #expect(headers.map { $0.name + $0.value } == ["a6", "b2", "c4"])
    try headers.set("D", "7")
    headers.remove("B")
    #expect(headers.map { $0.name + $0.value } == ["a6", "c4", "D7"])
    #expect(headers["b"] == nil)
  }
}

@Suite("Requests made by hand") struct HandMadeRequestTests {
  @Test("A request made by hand is one from a client, with what was left out added")
  func made() throws {
    let request = try HTTPRequest(method: "POST", target: "/a%20b?c=d", headers: [("X-Y", "1")], body: Bytes("hello"))
    #expect(request.method == "POST")
    #expect(request.verb == .post)
    #expect(request.path == "/a b")
    #expect(request.query("c") == "d")
    #expect(request.headers["x-y"] == "1")
    #expect(request.headers["host"] == "localhost")
    #expect(request.headers["content-length"] == "5")
    #expect(request.body.text == "hello")
    #expect(request.label.text == "POST /a%20b?c=d")
    #expect(HTTPWire().label(of: request).text == "POST /a%20b?c=d")
  }

  @Test("What a client could not send is refused")
  func refused() {
    #expect(throws: Refusal.self) { try HTTPRequest(target: "no path") }
    #expect(throws: Refusal.self) { try HTTPRequest(target: "/", headers: [("A", "1\r\n\r\n")]) }
    #expect(throws: Refusal.self) { try HTTPRequest(target: "/", headers: [("Content-Length", "1")], body: Bytes("hello")) }
    #expect(throws: Refusal.self) { try HTTPRequest(target: "/", headers: [("Content-Length", "9")], body: Bytes("hello")) }
  }
}
