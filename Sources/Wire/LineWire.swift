// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The second wire: lines. A line is a request, a line is the answer, and the connection stays open.

/// One line, without its end.
public struct Line: Sendable, Equatable {
  /// The line's bytes.
  public var bytes: Bytes
  /// The line as text; what is not UTF-8 becomes U+FFFD.
  public var text: String { bytes.text }

  /// A line of these bytes.
  public init(bytes: Bytes) { self.bytes = bytes }
  /// A line of this text's UTF-8.
  public init(_ text: String) { bytes = Bytes(text) }
}

/// Lines that end in LF or CRLF, as requests and as answers.
public struct LineWire: WireFormat {
  /// Most bytes of a line without its end. 64 KiB.
  public var maximumLength: Int

  /// A wire whose lines have at most `maximumLength` bytes.
  public init(maximumLength: Int = 65536) { self.maximumLength = maximumLength }

  /// Requests one after another.
  public var conversation: Conversation { .manyRequests }

  /// The first line of the bytes. A line is refused as soon as it is too long, whether or not its end is in.
  public func parse(_ bytes: RawSpan, resuming: Need?) -> Outcome<Line> {
    bytes.withUnsafeBytes { buffer in
      guard let start = buffer.baseAddress, buffer.count > 0 else { return .incomplete(Need(more: 1)) }
      let limit = min(max(maximumLength, 0), Int.max - 2)
      // One byte over the limit may be the CR of the line's end, the next one its LF.
      let stop = min(buffer.count, limit + 2)
      let from = resuming.map { $0.scanned > 0 && $0.scanned <= stop ? $0.scanned : 0 } ?? 0
      let end = UnsafeRawPointer(start).first(.lineFeed, from: from, to: stop)
      let hasReturn = end > 0 && start[end - 1] == .carriageReturn
      let length = hasReturn ? end - 1 : end
      guard length <= limit else { return .invalid(Refusal(413, "the line is over \(limit) bytes")) }
      guard end < stop else { return .incomplete(Need(more: 1, scanned: end)) }
      return .complete(Line(bytes: Bytes(copying: UnsafeRawBufferPointer(start: start, count: length))), consumed: end + 1)
    }
  }

  /// Writes the line and a LF. A CR or LF inside it becomes a space: an answer is one line.
  public func write(_ answer: Line, to request: Line?, into output: inout Output) {
    let start = output.count + output.tail.count
    answer.bytes.withUnsafeBytes { output.append($0) }
    output.clean(from: start)
    output.append(literal: "\n")
  }

  /// `error: ` and the reason.
  public func refusal(_ refusal: Refusal) -> Line { Line("error: \(refusal.reason)") }
}
