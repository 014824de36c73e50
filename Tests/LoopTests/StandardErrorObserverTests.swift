// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

private struct Broken: Error, CustomStringConvertible {
  var description: String
}

/// A pipe, to be written like a standard error.
private struct Pipe {
  let reading: Descriptor
  let writing: Descriptor

  init() throws {
    var ends: [Int32] = [-1, -1]
    try systemCall(pipe(&ends))
    (reading, writing) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }

  /// What is in it; reads once, and there must be something.
  func text() -> String {
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = read(reading.number, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }
}

@Suite struct StandardErrorObserverTests {
  @Test func without_an_observer_what_a_handler_threw_is_a_line_and_requests_are_not_recorded() throws {
    let pipe = try Pipe()
    let handler = ReplyHandler<Line, Line> { line, _ in .failed(Broken(description: "no lamp at \(line.text)")) }
    let stage = Stage(LineWire(), handler) {
      $0.observer = nil
      $0.fallback = StandardErrorObserver(pipe.writing.number)
    }
    #expect(!stage.station.isObserved)
    stage.accept("desk\n")
    #expect(pipe.text() == "door: a handler failed for 127.0.0.1:1: no lamp at desk\n")
  }

  @Test func a_notice_and_a_long_turn_are_a_line_each() throws {
    let pipe = try Pipe()
    let observer = StandardErrorObserver(pipe.writing.number)
    observer.notice("accept: no descriptors")
    observer.turnWasLong(loop: 1, .milliseconds(70))
    #expect(pipe.text() == "door: accept: no descriptors\ndoor: a turn of loop 1 took 70 ms: something in it blocks\n")
  }

  @Test func a_line_stays_one_line_whatever_the_error_quotes() throws {
    let pipe = try Pipe()
    let observer = StandardErrorObserver(pipe.writing.number)
    observer.handlerFailed(Peer(), Broken(description: "a\nb\u{1b}[2J\u{85}"))
    #expect(pipe.text() == "door: a handler failed for unknown: a\\nb\\u{1B}[2J\\u{0085}\n")
    observer.notice(String(repeating: "x", count: 10000))
    let long = pipe.text()
    #expect(long.utf8.count == 4096 && long.hasSuffix("x\n"))
  }

  @Test func a_pipe_that_is_full_or_has_no_reader_drops_the_line() throws {
    let pipe = try Pipe()
    let observer = StandardErrorObserver(pipe.writing.number)
    // A write that waited for a reader would never return.
    let capacity = fcntl(pipe.writing.number, 1032)  // F_GETPIPE_SZ, which needs _GNU_SOURCE
    try systemCall(capacity)
    for _ in 0...capacity / 4096 { observer.notice(String(repeating: "x", count: 10000)) }
    #expect(pipe.text().utf8.count == Int(capacity))

    // Nor would this process outlive SIGPIPE.
    let orphan = try Pipe()
    let lonely = StandardErrorObserver(orphan.writing.number)
    orphan.reading.close()
    lonely.notice("nobody reads this")
  }
}
