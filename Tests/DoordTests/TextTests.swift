// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import FoundationEssentials
import Loop
import Testing
import Wire

@testable import doord

@Suite("JSON, metrics and numbers as text")
struct TextTests {
  private func text(_ fill: (inout [UInt8]) -> Void) -> String {
    var bytes: [UInt8] = []
    fill(&bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func numbers_are_what_Swift_prints() {
    for number in [0, 1, 9, 10, 99_999_999, 100_000_000, 123_456_789_012, .max, .min, -1, -1000, 1_000_000_000_000_000_000] {
      #expect(text { $0.append(decimal: number) } == "\(number)")
    }
    #expect(text { $0.append(decimal: UInt64.max) } == "\(UInt64.max)")
    #expect(text { $0.append(decimal: 7, width: 3) } == "007")
    #expect(text { $0.append(decimal: 7, width: 10) } == "0000000007")
    #expect(text { $0.append(decimal: 1234, width: 2) } == "1234")
    #expect(text { $0.append(1234, decimals: 3) } == "1.234")
    #expect(text { $0.append(5, decimals: 6) } == "0.000005")
    #expect(text { $0.append(-1500, decimals: 3) } == "-1.500")
    #expect(text { $0.append(.min, decimals: 3) } == "-9223372036854775.808")
  }

  @Test func durations_are_whole_microseconds_without_overflow() {
    #expect(Duration.nanoseconds(1999).microseconds == 1)
    #expect(Duration.seconds(3).milliseconds == 3000)
    #expect(Duration.seconds(Int64.max).microseconds == .max)
    #expect(Duration.seconds(Int64.min).microseconds == .min)
  }

  @Test func JSON_keeps_the_order_and_reads_back_as_what_was_said() throws {
    var json = JSONWriter()
    json.object { json in
      json.member("b", "\"\\\u{0}\u{1f}\n\r\t\u{7f}é\u{2028}😀")
      json.key("a")
      json.array { list in
        list.number(-1)
        list.bool(true)
        list.null()
        list.object { _ in }
        list.array { _ in }
        list.latin1([0, 0x41, 0xff])
        list.thousandths(1500)
      }
      json.member("c") { $0.member("d", 1) }
    }
    let written = String(decoding: json.bytes, as: UTF8.self)
    #expect(
      written == #"{"b":"\"\\\u0000\u001f\n\r\t\u007f\u00e9\u2028\ud83d\ude00","a":[-1,true,null,{},[],"\u0000A\u00ff",1.500],"c":{"d":1}}"#
    )
    struct Value: Decodable { let b: String }
    #expect(try JSONDecoder().decode(Value.self, from: Data(json.bytes)).b == "\"\\\u{0}\u{1f}\n\r\t\u{7f}é\u{2028}😀")
  }

  @Test func a_label_cannot_end_its_quotes_or_its_line() {
    var metrics = MetricsText()
    metrics.counter("doord_x_total", "Help.", by: "address", [("unix:/a\"b\\c\nd", 1)])
    #expect(
      metrics.text == "# HELP doord_x_total Help.\n# TYPE doord_x_total counter\ndoord_x_total{address=\"unix:/a\\\"b\\\\c\\nd\"} 1\n")
  }
}

@Suite("Counters")
struct CountersTests {
  private let counters = Counters()

  private var watching: Watching { Watching(counters: counters, log: nil, mark: ProbeMark()) }

  private func answer(_ status: Int, _ refusal: Refusal? = nil) {
    watching.answered(AnswerRecord(peer: Peer(), label: Bytes(), status: status, bytes: 100, duration: .zero, refusal: refusal))
  }

  @Test func each_event_is_counted_where_it_belongs() {
    for _ in 0..<2 { watching.accepted(Peer()) }
    let answers: [(Int, Refusal?)] = [
      (200, nil), (404, Refusal(404, "")), (503, .tooManyFromAddress), (503, .handlerTimeout), (408, .arrivalTimeout), (9999, nil),
      (-1, nil),
    ]
    for (status, refusal) in answers { answer(status, refusal) }
    for reason in [CloseReason.idle, .done] { watching.closed(Peer(), reason) }
    watching.turnedAway(.unknown, .gate)
    watching.handlerFailed(Peer(), Refusal(1, ""))
    watching.turnWasLong(loop: 0, .zero)
    watching.notice("")
    #expect(counters[.accepted] == 2 && counters[.bytesSent] == 700)
    #expect(counters.answers.map(\.status) == [200, 404, 408, 503] && counters.answers.map(\.count) == [1, 1, 1, 2])
    #expect(counters[.notFound] == 1 && counters[.perAddress] == 1 && counters[.connections] == 0)
    #expect(counters[CloseReason.idle] == 1 && counters[CloseReason.done] == 1 && counters[CloseReason.reset] == 0)
    #expect(counters[TurnAwayReason.gate] == 1 && counters[TurnAwayReason.limit] == 0)
    #expect(counters[.handlerFailures] == 1 && counters[.longTurns] == 1 && counters[.notices] == 1)
    #expect(counters.deadlines.map(\.count) == [1, 1, 1, 0, 0])
  }

  @Test func every_refusal_has_a_kind() {
    let kinds: [(Refusal, Counters.RefusalKind)] = [
      (Refusal(400, ""), .malformed), (Refusal(413, ""), .tooLarge), (Refusal(414, ""), .tooLarge), (Refusal(417, ""), .malformed),
      (Refusal(505, ""), .malformed), (Refusal(404, ""), .notFound), (Refusal(405, ""), .method), (.foreignName, .name),
      (.foreignOrigin, .origin), (.arrivalTimeout, .arrival), (.handlerTimeout, .handlerDeadline), (.handlerFailed, .handlerFailed),
      (.poolFull, .poolFull), (.tooManyConnections, .connections), (.tooManyFromAddress, .perAddress), (.stopping, .stopping),
      (Refusal(503, "of a handler"), .other), (Refusal(599, ""), .other),
    ]
    for (refusal, kind) in kinds {
      let before = counters[kind]
      answer(refusal.status, refusal)
      #expect(Counters.RefusalKind(refusal) == kind && counters[kind] == before + 1)
    }
    #expect(Set(kinds.map(\.1)) == Set(Counters.RefusalKind.allCases))
  }

  @Test func threads_count_together_without_losing_any() async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask { for _ in 0..<10_000 { watching.accepted(Peer()) } }
      }
    }
    #expect(counters[.accepted] == 40_000)
  }

  @Test func every_reason_has_its_counter() {
    for reason in CloseReason.allCases { watching.closed(Peer(), reason) }
    for reason in TurnAwayReason.allCases { watching.turnedAway(.unknown, reason) }
    for reason in CloseReason.allCases { #expect(counters[reason] == 1) }
    for reason in TurnAwayReason.allCases { #expect(counters[reason] == 1) }
  }
}
