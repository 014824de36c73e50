// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

private let upper = PlainHandler { (line: Line) in Line(line.text.uppercased()) }

/// "later" is answered when the valve opens, "wait" waits for its client to leave; others at once.
private func lines(_ valve: Valve, _ calls: Locked<[String]> = Locked([])) -> ReplyHandler<Line, Line> {
  ReplyHandler { line, _ in
    calls.withLock { $0.append(line.text) }
    let answer = Line(line.text.uppercased())
    switch line.text {
    case "later":
      return .later(Terms()) {
        await valve.pass()
        return answer
      }
    case "wait":
      return .later(Terms(waits: true)) {
        let left = Valve()
        await withTaskCancellationHandler {
          await left.pass()
        } onCancel: {
          left.open()
        }
        return answer
      }
    default: return .now(answer)
    }
  }
}

@Suite struct ConnectionTests {
  @Test func pipelined_requests_are_answered_in_order_each_once() {
    let stage = Stage(LineWire(), upper)
    stage.accept("a\nb\nc")
    stage.send("c\n")
    #expect(stage.kernel.text == "A\nB\nCC\n")
  }

  @Test func an_observer_is_told_of_each_answer_once() {
    let stage = Stage(LineWire(), upper)
    stage.accept("a\nbb\nc")
    stage.send("c\n")
    #expect(stage.seen.answers.map(\.bytes) == [2, 3, 3])
  }

  @Test func a_handler_that_waits_is_cancelled_when_the_end_of_stream_came_before_it_began() {
    let valve = Valve()
    let stage = Stage(LineWire(), lines(valve))
    stage.accept("later\nwait\n")
    stage.end()
    #expect(stage.isOpen)
    valve.open()
    stage.turn()
    #expect(stage.kernel.text == "LATER\n")
    #expect(stage.kernel.closes == 1)
    #expect(stage.station.connections.isEmpty && stage.station.liveTasks == 0)
  }

  @Test func answers_before_a_handler_that_waits_are_sent_before_the_end_of_stream_ends_it() {
    let valve = Valve()
    let stage = Stage(LineWire(), lines(valve))
    stage.accept("later\na\nwait\n")
    stage.end()
    valve.open()
    stage.turn()
    #expect(stage.kernel.text == "LATER\nA\n")
    #expect(stage.kernel.closes == 1)
  }

  @Test func a_request_in_time_is_answered_though_the_one_before_it_was_not() {
    let valve = Valve()
    let stage = Stage(LineWire(), lines(valve))
    stage.accept("later\nb\n")
    stage.poller.pass(.seconds(60))
    stage.turn()
    #expect(stage.kernel.text == "error: the answer was not ready in time\nB\n")
    valve.open()
    stage.turn()
    stage.send("c\n")
    #expect(stage.kernel.text == "error: the answer was not ready in time\nB\nC\n")
  }

  @Test func a_refused_request_is_the_last_also_behind_others() {
    let stage = Stage(LineWire(maximumLength: 8), upper)
    stage.accept("a\n0123456789\nb\n")
    #expect(stage.kernel.text == "A\nerror: the line is over 8 bytes\n")
    #expect(stage.kernel.shutdowns == 1)
    stage.end()
    #expect(stage.kernel.closes == 1)
  }

  @Test func a_stopping_server_starts_no_handler_whose_answer_would_be_dropped() {
    let calls = Locked<[String]>([])
    let valve = Valve()
    let stage = Stage(LineWire(), lines(valve, calls))
    stage.accept()
    stage.station.stop()
    stage.send("a\nlater\nb\n")
    #expect(stage.kernel.text == "A\n")
    #expect(calls.withLock { $0 } == ["a"])
    stage.end()
    #expect(stage.kernel.closes == 1)
  }

  @Test func an_answer_of_no_bytes_is_an_answer() {
    let stage = Stage(SilentWire(), upper)
    stage.accept("a\nb\n")
    stage.send("c\n")
    #expect(stage.seen.answers.count == 3)
    stage.end()
    #expect(stage.seen.ends == [.done] || stage.seen.ends == [.clientClosed])
  }
}

/// Lines that are not answered.
private struct SilentWire: WireFormat {
  var conversation: Conversation { .manyRequests }
  func parse(_ bytes: RawSpan, resuming: Need?) -> Outcome<Line> { LineWire().parse(bytes, resuming: resuming) }
  func write(_ answer: Line, to request: Line?, into output: inout Output) {}
  func refusal(_ refusal: Refusal) -> Line { Line("") }
}

// MARK: - Streams

/// A stream that gives `chunk` bytes `count` times; before each, if `waits`, it has to be let.
private final class Chunks: OutputSource {
  private let state: Locked<(left: Int, allowed: Int, finished: Bool, cancelled: Int)>
  private let chunk: [UInt8]

  init(_ chunk: [UInt8], count: Int, allowed: Int = .max) {
    self.chunk = chunk
    state = Locked((count, allowed, false, 0))
  }

  func next(into output: inout Output) -> OutputSourceState {
    let state = state.withLock { state -> OutputSourceState in
      if state.left == 0 || state.finished { return .end }
      if state.allowed == 0 { return .wait }
      state.left -= 1
      state.allowed -= 1
      return .more
    }
    if case .more = state { chunk.withUnsafeBytes { output.append($0) } }
    return state
  }

  func cancel() { state.withLock { $0.cancelled += 1 } }
  func finish() { state.withLock { $0.finished = true } }
  func allow(_ count: Int) { state.withLock { $0.allowed += count } }
  var cancelled: Int { state.withLock { $0.cancelled } }
}

/// A wire of lines whose answers may be streams.
private struct StreamWire: WireFormat {
  enum Answer: Sendable {
    case line(String)
    case stream(any OutputSource)
  }

  var conversation: Conversation { .manyRequests }
  func parse(_ bytes: RawSpan, resuming: Need?) -> Outcome<Line> { LineWire().parse(bytes, resuming: resuming) }
  func write(_ answer: Answer, to request: Line?, into output: inout Output) {
    switch answer {
    case .line(let text): output.append(text + "\n")
    case .stream(let source): output.append(source)
    }
  }
  func refusal(_ refusal: Refusal) -> Answer { .line("error: \(refusal.reason)") }
}

@Suite struct StreamTests {
  private static let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  private func stage(_ source: Chunks, waitingFor valve: Valve? = nil) -> Stage<HTTPWire> {
    Stage(
      HTTPWire(),
      ReplyHandler { (_: HTTPRequest, _) in
        guard let valve else { return .now(HTTPAnswer(body: .stream(source))) }
        return .later(Terms()) {
          await valve.pass()
          return HTTPAnswer(body: .stream(source))
        }
      })
  }

  @Test func a_request_behind_a_stream_is_answered_when_the_stream_has_ended() {
    let source = Chunks(Array("s\n".utf8), count: 2, allowed: 1)
    let context = Locked<Context?>(nil)
    let stage = Stage(
      StreamWire(),
      ReplyHandler { (line: Line, at: Context) in
        guard line.text == "stream" else { return .now(.line(line.text)) }
        context.withLock { $0 = at }
        return .now(.stream(source))
      })
    stage.accept("a\nstream\nb\n")
    #expect(stage.kernel.text == "a\ns\n")
    source.allow(1)
    context.withLock { $0 }?.wake()
    stage.poller.settle()
    #expect(stage.kernel.text == "a\ns\ns\nb\n")
  }

  @Test func a_client_that_takes_all_of_a_long_stream_does_not_stall() {
    let stage = stage(Chunks([UInt8](repeating: 0, count: 32 << 10), count: 2000))
    stage.accept(Self.request)
    for _ in 0..<60 where stage.isOpen {
      stage.poller.pass(.seconds(1))
      stage.turn()
    }
    #expect(stage.isOpen)
    #expect(stage.kernel.sent.count > 60 * (200 << 10))
  }

  @Test func a_client_that_takes_30_KiB_of_a_stream_in_each_window_does_not_stall() {
    let stage = stage(Chunks([UInt8](repeating: 0, count: 1 << 10), count: 2000))
    stage.kernel.room = 31 << 10
    stage.accept(Self.request)
    for _ in 0..<20 where stage.isOpen {
      stage.poller.pass(.seconds(29))
      stage.kernel.room = 31 << 10
      stage.turn()
    }
    #expect(stage.isOpen)
  }

  @Test func a_client_that_reads_from_a_full_buffer_does_not_stall_although_the_kernel_takes_nothing() {
    let stage = stage(Chunks([UInt8](repeating: 0, count: 1 << 10), count: 2000))
    stage.kernel.room = 300 << 10
    stage.kernel.queued = 300 << 10
    stage.accept(Self.request)
    for _ in 0..<5 {
      stage.kernel.queued -= 31 << 10
      stage.poller.pass(.seconds(30))
      #expect(stage.isOpen)
    }
    stage.poller.pass(.seconds(30))
    #expect(stage.kernel.resets == 1 && stage.seen.ends == [.stall])
  }

  @Test func what_was_taken_before_a_stall_window_began_does_not_count_in_it() {
    let stage = stage(Chunks([UInt8](repeating: 0, count: 1 << 10), count: 2000))
    stage.kernel.room = 10 << 10
    stage.accept(Self.request)
    // A second window begins at the same moment as the first.
    stage.kernel.room = 100 << 10
    stage.turn()
    stage.poller.pass(.seconds(30))
    #expect(stage.kernel.resets == 1 && stage.seen.ends == [.stall])
  }

  @Test func a_client_that_takes_a_byte_now_and_then_stalls() {
    let stage = stage(Chunks([UInt8](repeating: 0, count: 1 << 10), count: 2000))
    stage.kernel.room = 31 << 10
    stage.accept(Self.request)
    for _ in 0..<29 {
      stage.poller.pass(.seconds(1))
      stage.kernel.room = 1
      stage.turn()
    }
    #expect(stage.isOpen)
    stage.poller.pass(.seconds(1))
    #expect(stage.kernel.resets == 1 && stage.seen.ends == [.stall])
  }

  @Test func a_stream_whose_head_meets_a_reset_is_cancelled() {
    let source = Chunks([1], count: 1)
    let stage = stage(source)
    stage.kernel.sendError = -Int(EPIPE)
    stage.accept(Self.request)
    #expect(source.cancelled == 1 && stage.seen.ends == [.reset])
  }

  @Test func a_stream_that_begins_while_the_server_stops_is_told_to_finish() {
    let valve = Valve()
    let source = Chunks([1], count: 2000, allowed: 1)
    let stage = stage(source, waitingFor: valve)
    stage.accept(Self.request)
    stage.station.stop()
    valve.open()
    stage.turn()
    #expect(stage.kernel.closes == 1 && stage.seen.ends == [.done])
  }
}

// MARK: - Bodies

@Suite struct BodyTests {
  @Test func a_refused_connection_that_waited_for_memory_goes_on_reading_at_once() {
    let stage = Stage(
      HTTPWire(), PlainHandler { (request: HTTPRequest) in HTTPAnswer.text("\(request.body.count)") },
      { $0.maximumBuffered = 100_000 })
    // Another request is favoured and has taken all there is.
    #expect(stage.station.budget.take(1, for: 1_000_001) && stage.station.budget.take(100_000, for: 1_000_001))
    stage.accept("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
    stage.send(String(repeating: "x", count: 70_000))
    #expect(stage.watcher?.reads == false)
    stage.poller.pass(.seconds(30))
    #expect(stage.kernel.text.hasPrefix("HTTP/1.1 408 "))
    #expect(stage.watcher?.reads == true)
    stage.end()
    #expect(stage.seen.ends == [.done])
  }
}

@Suite struct BudgetTests {
  @Test func what_is_announced_takes_nothing_what_has_arrived_does() {
    let stage = Stage(
      HTTPWire(), PlainHandler { (request: HTTPRequest) in HTTPAnswer.text("\(request.body.count)") },
      { $0.maximumBuffered = 1 << 20 })
    stage.accept("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33554300\r\n\r\nabc")
    #expect(stage.station.budget.usedBytes <= 64 << 10)
  }

  @Test func one_request_is_favoured_when_all_is_taken_and_then_the_next() {
    let budget = Budget(maximum: 100)
    #expect(budget.take(60, for: 1) && budget.take(40, for: 2))
    #expect(budget.take(60, for: 1))  // it needs more than there is, and is the first to say so
    #expect(!budget.take(1, for: 2))
    budget.give(back: 120, from: 1)
    #expect(budget.take(60, for: 2) && budget.take(60, for: 2))
    #expect(!budget.take(1, for: 3))
    budget.give(back: 160, from: 2)
    #expect(budget.usedBytes == 0)
  }
}
