// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

@Suite("The wire of lines") struct LineTests {
  private func parse(_ text: String, _ wire: LineWire = LineWire(), _ need: Need? = nil) -> Outcome<Line> {
    Array(text.utf8).withUnsafeBytes { wire.parse($0.bytes, resuming: need) }
  }

  private func verdict(_ text: String, _ wire: LineWire = LineWire(), _ need: Need? = nil) -> String {
    switch parse(text, wire, need) {
    case .incomplete: "wait"
    case .complete(let line, let consumed): "\(line.text)|\(consumed)"
    case .invalid(let refusal): refusal.reason
    }
  }

  @Test(
    "A line ends in LF or CRLF, and a CR elsewhere is its own",
    arguments: [
      ("", "wait"), ("a", "wait"), ("a\n", "a|2"), ("a\r", "wait"), ("a\r\n", "a|3"), ("\n", "|1"), ("\r\n", "|2"), ("a\rb\n", "a\rb|4"),
      ("a\r\r\n", "a\r|4"),
      ("a\nb\n", "a|2"), ("h\u{E9}\n", "h\u{E9}|4"),
    ])
  func ends(_ text: String, _ expected: String) {
    #expect(verdict(text) == expected)
  }

  @Test("The limit counts a line's bytes without its end, at every cut", arguments: [0, 1, 2, 8, 9, 100])
  func limit(_ limit: Int) {
    let wire = LineWire(maximumLength: limit)
    for length in max(limit - 2, 0)...(limit + 3) {
      for end in ["\n", "\r\n", "\r", "", "\r\r\n"] {
        let text = String(repeating: "x", count: length) + end
        let size = text.utf8.count
        let content = length + (end == "\r\r\n" ? 1 : 0)
        let isWhole = end.utf8.last == 10
        let whole = verdict(text, wire)
        if content <= limit {
          #expect(whole == (isWhole ? "\(String(repeating: "x", count: length))\(end == "\r\r\n" ? "\r" : "")|\(size)" : "wait"))
        } else {
          #expect(whole == "the line is over \(limit) bytes")
        }
        var needs: [Need] = []
        var decided: String?
        for cut in 0...size {
          let beginning = String(decoding: Array(text.utf8.prefix(cut)), as: UTF8.self)
          let plain = verdict(beginning, wire)
          if let decided { #expect(plain == decided) } else if plain != "wait" { decided = plain }
          for need in needs { #expect(verdict(beginning, wire, need) == plain) }
          if case .incomplete(let need) = parse(beginning, wire) { needs.append(need) }
        }
        #expect(whole == decided ?? "wait")
      }
    }
  }

  @Test("A made-up need or limit does no harm", arguments: [Int.min, -1, 0, 1, 5, 6, Int.max])
  func invented(_ number: Int) {
    _ = parse("hello", LineWire(), Need(more: number, scanned: number))
    #expect(verdict("\n", LineWire(maximumLength: number)) == "|1")
  }

  @Test("60 000 lines in one go are parsed one by one, each where the last one ended")
  func pipelined() {
    let input = Array((0..<60_000).map { "line \($0)\r\n" }.joined().utf8)
    let wire = LineWire()
    var at = 0
    var count = 0
    input.withUnsafeBytes { buffer in
      while case .complete(let line, let consumed) = wire.parse(UnsafeRawBufferPointer(rebasing: buffer[at...]).bytes, resuming: nil) {
        if line.text != "line \(count)" { Issue.record("\(line.text) at \(count)") }
        at += consumed
        count += 1
      }
    }
    #expect(count == 60_000)
    #expect(at == input.count)
  }

  @Test("An answer is one line, whatever is in it")
  func answers() {
    let wire = LineWire()
    var output = Output()
    wire.write(Line("a\r\nb\u{E9}"), to: nil, into: &output)
    wire.write(Line(bytes: Bytes()), to: nil, into: &output)
    wire.write(wire.refusal(Refusal(400, "no")), to: nil, into: &output)
    #expect(text(of: output) == "a  b\u{E9}\n\nerror: no\n")
    let long = String(repeating: "x", count: 70_000) + "\n" + String(repeating: "y", count: 70_000)
    output.removeAll()
    wire.write(Line(long), to: nil, into: &output)
    #expect(text(of: output).utf8.count == 140_002)
    #expect(text(of: output).utf8.filter { $0 == 10 }.count == 1)
  }

  @Test("The connection stays open and the client speaks first")
  func conversation() {
    #expect(LineWire().conversation == .manyRequests)
    #expect(HTTPWire().conversation == .oneRequest)
  }
}
