// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import FoundationEssentials
import Loop
import Routes
import Testing
import Wire

@testable import doord

@Suite("doord's routes")
struct DoordRoutesTests {
  private let counters = Counters()

  private var watching: Watching { Watching(counters: counters, log: nil, mark: ProbeMark()) }

  private func ask(_ target: String, method: String = "GET", headers: [(String, String)] = [], body: Bytes = Bytes()) async throws
    -> HTTPAnswer
  {
    let router = DoordRoutes.router(Monitor(options: Options(), counters: counters, log: nil))
    try router.validate()
    return await router.answer(to: try HTTPRequest(method: method, target: target, headers: headers, body: body))
  }

  private func bytes(_ answer: HTTPAnswer) throws -> Bytes {
    switch answer.body {
    case .bytes(let bytes): return bytes
    case .text(let text): return Bytes(text)
    default: throw Refusal(500, "no bytes")
    }
  }

  @Test func hello_says_the_version() async throws {
    let answer = try await ask("/hello")
    #expect(answer.status == 200 && answer.contentType == "application/json")
    #expect(try bytes(answer).text == "{\"name\":\"doord\",\"ok\":true,\"version\":\"\(DoordRoutes.version)\"}")
  }

  @Test func echo_hands_back_the_same_bytes_without_a_copy_and_their_type() async throws {
    let body = Bytes([UInt8](repeating: 0xff, count: 100_000))
    for method in ["POST", "PUT"] {
      let request = try HTTPRequest(method: method, target: "/echo", headers: [("Content-Type", "a/b; c=d")], body: body)
      let answer = await DoordRoutes.router(Monitor(options: Options(), counters: counters, log: nil)).answer(to: request)
      #expect(answer.contentType == "a/b; c=d")
      let echoed = try bytes(answer)
      #expect(echoed == body)
      #expect(echoed.withUnsafeBytes { $0.baseAddress } == request.body.withUnsafeBytes { $0.baseAddress })
    }
    let untyped = try await ask("/echo", method: "POST", body: Bytes("x"))
    #expect(untyped.contentType == "application/octet-stream")
    #expect(try await ask("/echo").status == 405)
  }

  @Test func wait_takes_decimals_up_to_25_and_nothing_else() async throws {
    let begin = ContinuousClock.now
    let answer = try await ask("/wait?seconds=0.05")
    #expect(ContinuousClock.now - begin >= .milliseconds(50))
    #expect(try bytes(answer).text == #"{"ok":true,"waited":0.05}"#)
    #expect(try await ask("/wait?seconds=0").status == 200)
    #expect(try DoordRoutes.wait("25") == 25)
    for value in ["26", "25.001", "-1", "1e1", "0x1", "nan", "inf", "", ".", "1.2.3", "+1", " 1", "seconds", "\u{0661}"] {
      #expect(throws: Refusal(400, "the query must say seconds=N, a number from 0 to 25")) { try DoordRoutes.wait(value) }
    }
    #expect(try await ask("/wait").status == 400)
  }

  @Test func status_is_one_object_with_stable_names() async throws {
    watching.accepted(Peer())
    watching.answered(AnswerRecord(peer: Peer(), label: Bytes(), status: 408, bytes: 9, duration: .zero, refusal: .arrivalTimeout))
    struct Status: Decodable {
      struct Place: Decodable { let interval: Double, addresses: [String] }
      struct Descriptors: Decodable { let open: Int, limit: Int }
      let name: String, ok: Bool, version: String, uptime: Double, openConnections: Int, acceptedConnections: Int, bytesSent: Int
      let bufferedBytes: Int, handlerFailures: Int, longTurns: Int, notices: Int, droppedLogLines: Int, loops: [String], probe: Place
      let answers: [String: Int], refusals: [String: Int], closed: [String: Int], turnedAway: [String: Int], deadlines: [String: Int]
      let limits: [String: Double?], descriptors: Descriptors
    }
    let status = try JSONDecoder().decode(Status.self, from: Data(try bytes(try await ask("/status"))))
    #expect(status.name == "doord" && status.acceptedConnections == 1 && status.bytesSent == 9 && status.answers == ["408": 1])
    #expect(status.refusals["arrival"] == 1 && status.deadlines == ["idle": 0, "arrival": 1, "handler": 0, "stall": 0, "linger": 0])
    #expect(status.probe.interval == 20 && status.limits["idle"] == 30 && status.limits["perAddress"] == .some(.none))
    #expect(status.descriptors.open > 2 && status.descriptors.limit > status.descriptors.open)
  }

  @Test func every_metric_has_its_help_its_type_and_a_number() async throws {
    watching.accepted(Peer())
    let answer = try await ask("/metrics")
    #expect(answer.contentType == "text/plain; version=0.0.4; charset=utf-8")
    let text = try bytes(answer).text
    #expect(text.hasSuffix("\n") && text.contains("\ndoord_connections_accepted_total 1\n"))
    var helped: Set<Substring> = []
    var typed: [Substring: Substring] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      if line.hasPrefix("# HELP ") {
        #expect(helped.insert(words[2]).inserted && words.count > 3)
      } else if line.hasPrefix("# TYPE ") {
        typed[words[2]] = words[3]
      } else {
        let name = line.prefix { $0 != "{" && $0 != " " }
        #expect(helped.contains(name) && typed[name] != nil)
        #expect(name.hasSuffix("_total") == (typed[name] == "counter"))
        #expect(words.last.flatMap { Double($0) } != nil)
      }
    }
    #expect(helped.count == typed.count && helped.count >= 15)
  }
}
