// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// Short ways to say what goes in and what comes out.

/// The bytes of a text in which each character stands for one byte (Latin-1), so that any byte can be written.
func latin1(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8($0.value) } }

/// What the wire makes of these bytes: `ok`, `wait`, or the refusal as `400 its sentence`.
func verdict(_ text: String, _ wire: HTTPWire = HTTPWire()) -> String {
  switch wire.request(in: latin1(text)) {
  case .incomplete: "wait"
  case .complete: "ok"
  case .invalid(let refusal): "\(refusal.status) \(refusal.reason)"
  }
}

/// The request that these bytes are.
func request(_ text: String) throws -> HTTPRequest {
  switch HTTPWire().request(in: latin1(text)) {
  case .complete(let request, _): return request
  case .invalid(let refusal): throw refusal
  case .incomplete: throw Refusal(0, "incomplete")
  }
}

/// A GET with this target.
func get(_ target: String) -> String { "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n" }

/// A GET with these lines behind its Host.
func lines(_ lines: String...) -> String { "GET / HTTP/1.1\r\nHost: a\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n" }

/// An answer's bytes as text, with the loop's Date line if one is given.
func written(_ answer: HTTPAnswer, to request: HTTPRequest? = nil, date: String = "") -> String {
  var output = Output()
  output.dateLine = Array(date.utf8)
  HTTPWire().write(answer, to: request, into: &output)
  return text(of: output)
}

/// All that will be sent of an output, without its stream.
func text(of output: borrowing Output) -> String {
  String(decoding: output.buffered, as: UTF8.self) + output.tail.text
}

/// A stream that only remembers whether it was cancelled. Used on one thread.
final class Silence: OutputSource, @unchecked Sendable {
  var cancelled = 0
  func next(into output: inout Output) -> OutputSourceState { .wait }
  func cancel() { cancelled += 1 }
  func finish() {}
}
