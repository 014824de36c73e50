// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Dispatch
import FoundationEssentials
import Glibc
import Loop
import Testing
import Wire

@testable import doord

@Suite("The log")
struct LogTests {
  /// As doord's main does: a reader that leaves is an error of the write.
  init() { signal(SIGPIPE, SIG_IGN) }

  private func record(_ label: String = "GET /a?b=c", origin: PeerAddress? = nil, refusal: Refusal? = nil) -> AnswerRecord {
    AnswerRecord(
      peer: Peer(address: PeerAddress(ipv4: 0x7f00_0001, port: 4000)), origin: origin, label: Bytes(label), status: refusal?.status ?? 200,
      bytes: 157, duration: .microseconds(1234), refusal: refusal)
  }

  private func line(_ format: Options.LogFormat, _ fill: (inout LogBatch) -> Void) -> String {
    var batch = LogBatch()
    fill(&batch)
    var lines = LogLines(format: format)
    var text: [UInt8] = []
    for record in batch.records { lines.append(record, in: batch.text) { text += $0 } }
    lines.flush { text += $0 }
    return String(decoding: text, as: UTF8.self)
  }

  private let time = timespec(tv_sec: 1_796_054_405, tv_nsec: 7_999_999)

  @Test func an_answer_is_one_line_of_text() {
    #expect(
      line(.text) { $0.append(record(), at: time) } == "2026-11-30T16:00:05.007Z 127.0.0.1:4000 \"GET /a?b=c\" 200 157B 1.234ms\n")
    let origin = PeerAddress(family: .ipv6, high: 0x2001_0db8_0000_0000, low: 1, port: 0)
    #expect(
      line(.text) { $0.append(record("", origin: origin, refusal: Refusal(400, "no \"GET\"")), at: time) }
        == "2026-11-30T16:00:05.007Z 127.0.0.1:4000 for 2001:db8::1 \"-\" 400 157B 1.234ms \"no \\\"GET\\\"\"\n")
    #expect(line(.text) { $0.append("a notice", at: time) } == "2026-11-30T16:00:05.007Z doord: a notice\n")
  }

  @Test func an_answer_is_one_line_of_JSON() {
    #expect(
      line(.json) { $0.append(record(refusal: Refusal(404, "nothing")), at: time) }
        == """
        {"time":"2026-11-30T16:00:05.007Z","peer":"127.0.0.1:4000","method":"GET","path":"/a?b=c","status":404,"bytes":157,\
        "duration":0.001234,"reason":"nothing"}

        """)
    #expect(line(.json) { $0.append(record(""), at: time) }.contains("\"method\":null,\"path\":null"))
    #expect(line(.json) { $0.append("ü", at: time) } == "{\"time\":\"2026-11-30T16:00:05.007Z\",\"message\":\"\\u00fc\"}\n")
  }

  @Test(arguments: [Options.LogFormat.text, .json])
  func no_byte_of_a_peer_can_end_a_line_or_a_field(format: Options.LogFormat) throws {
    for byte in UInt8.min...UInt8.max {
      var answer = record()
      answer.label = Bytes(Array("GET /".utf8) + [byte] + Array("x".utf8))
      let text = line(format) { $0.append(answer, at: time) }
      #expect(text.utf8.count { $0 == 10 } == 1 && text.hasSuffix("\n") && text.utf8.dropLast().allSatisfy { 0x20...0x7e ~= $0 })
      if format == .text {
        #expect(text.replacing("\\\\", with: "").replacing("\\\"", with: "").utf8.count { $0 == UInt8(ascii: "\"") } == 2)
      } else {
        struct Line: Decodable { let path: String }
        let path = try JSONDecoder().decode(Line.self, from: Data(text.utf8)).path
        #expect(Array(path.unicodeScalars.map(\.value)) == [0x2f, UInt32(byte), 0x78])
      }
    }
  }

  @Test(arguments: [Options.LogFormat.text, .json])
  func the_longest_line_fits_into_one_write_to_a_pipe(format: Options.LogFormat) {
    var answer = record(origin: PeerAddress(family: .ipv6, high: .max, low: .max, port: 0))
    answer.peer.address = PeerAddress(family: .ipv6, high: .max, low: .max, port: .max, scope: .max)
    answer.label = Bytes([0x47, 0x20] + [UInt8](repeating: 0xff, count: 20000))
    answer.refusal = Refusal(400, String(repeating: "\u{1}", count: 1000))
    answer.bytes = .max
    let text = line(format) { $0.append(answer, at: time) }
    #expect(text.utf8.count <= LogLines.chunk && text.contains("..."))
  }

  @Test func what_is_added_is_written_in_order_before_it_ends() throws {
    let (reader, writer) = try makePipe()
    defer { close(reader) }
    let log = AccessLog(format: .text, descriptor: writer)
    log.start()
    for number in 0..<500 { log.add("line \(number)") }
    log.finish(within: .seconds(5))
    close(writer)
    let lines = readAll(reader).split(separator: "\n")
    #expect(lines.count == 500 && log.dropped == 0)
    #expect(lines.enumerated().allSatisfy { $1.hasSuffix("doord: line \($0)") })
  }

  @Test func a_full_pipe_drops_lines_and_blocks_nobody() throws {
    let (reader, writer) = try makePipe()
    let log = AccessLog(format: .text, descriptor: writer)
    log.start()
    let begin = ContinuousClock.now
    for _ in 0..<100_000 { log.add(record()) }
    log.finish(within: .milliseconds(100))
    #expect(ContinuousClock.now - begin < .seconds(5))
    #expect(log.dropped > 50_000)
    close(reader)
    log.finish(within: .seconds(5))  // the error that gives it ends the log's thread, before the number is another test's
    close(writer)
  }

  @Test func a_reader_that_left_and_a_full_disk_are_counted() throws {
    let (reader, writer) = try makePipe()
    close(reader)
    let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
    for descriptor in [writer, full] {
      let log = AccessLog(format: .json, descriptor: descriptor)
      log.start()
      for _ in 0..<100 { log.add(record()) }
      log.finish(within: .seconds(5))
      #expect(log.dropped == 100)
      close(descriptor)
    }
  }

  @Test func a_socket_takes_lines_without_being_made_non_blocking() throws {
    var pair: [Int32] = [0, 0]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0)
    let log = AccessLog(format: .text, descriptor: pair[0])
    log.start()
    log.add("hello")
    log.finish(within: .seconds(5))
    #expect(fcntl(pair[0], F_GETFL) & O_NONBLOCK == 0)
    close(pair[0])
    #expect(readAll(pair[1]).hasSuffix("doord: hello\n"))
    close(pair[1])
  }

  private func makePipe() throws -> (reader: Int32, writer: Int32) {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    return (ends[0], ends[1])
  }

  private func readAll(_ descriptor: Int32) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count <= 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += buffer.prefix(count)
    }
  }
}
