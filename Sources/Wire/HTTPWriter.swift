// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// How an answer becomes bytes (RFC 9112 4 to 6). The same answer always gives the same bytes, but for the Date line.

extension HTTPWire {
  /// Writes one answer: status line, header lines in the order of their names in lower case, body.
  ///
  /// Every final answer says `Connection: close` and its `Content-Length`, also 0. No length stands with 1xx and 204 (RFC 9110 8.6), with
  /// a stream, and with a 304 that has no body to take it from: a length of 0 there would speak of the representation that is not sent.
  public func write(_ answer: HTTPAnswer, to request: HTTPRequest?, into output: inout Output) {
    write(answer, omittingBody: request.map { omitsBody(for: $0) } ?? false, into: &output)
  }

  /// HEAD's answers leave without their body (RFC 9110 9.3.2).
  public func omitsBody(for request: HTTPRequest) -> Bool { request.facts.verb == .head }

  /// Writes one answer, with or without its body; the head is the same.
  public func write(_ answer: HTTPAnswer, omittingBody isHEAD: Bool, into output: inout Output) {
    switch answer.body {
    case .empty:
      _ = writeHead(answer, length: answer.status == 304 ? -1 : 0, into: &output)
    case .text(let text):
      if writeHead(answer, length: text.utf8.count, into: &output) && !isHEAD { output.append(text) }
    case .bytes(let bytes):
      if writeHead(answer, length: bytes.count, into: &output) && !isHEAD { output.append(bytes) }
    case .stream(let source):
      if writeHead(answer, length: -1, into: &output) && !isHEAD { output.append(source) } else { source.cancel() }
    }
  }

  /// Writes everything before the body and says whether a body may follow.
  /// - Parameter length: The body's length, -1 where it is not to be said.
  private func writeHead(_ answer: HTTPAnswer, length: Int, into output: inout Output) -> Bool {
    let status = status(of: answer)
    let isFinal = status >= 200
    var length = length
    if !isFinal || status == 204 { length = -1 }
    if status == 205 { length = 0 }
    if status == 200 && length >= 0 && answer.headers.lines.isEmpty {
      writePlainHead(answer.contentType, length: length, into: &output)
      return true
    }
    output.append(literal: "HTTP/1.1 ")
    output.append(decimal: status)
    output.append(.space)
    output.append(literal: reasonPhrase(status))
    output.append(literal: "\r\n")
    writeLines(answer, isFinal: isFinal, length: length, into: &output)
    output.append(literal: "\r\n")
    return isFinal && status != 204 && status != 205 && status != 304
  }

  /// The head that nearly every answer has, in one go: one check for room, and literals that become plain stores.
  @inline(__always)
  private func writePlainHead(_ type: String?, length: Int, into output: inout Output) {
    var type = type ?? ""
    type.withUTF8 { type in
      let date = output.dateLine.count
      var to = output.reserve(128 + type.count + date)
      to.put("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ")
      to.put(decimal: UInt(bitPattern: length))
      to.put("\r\n")
      if let start = type.baseAddress, type.count > 0 {
        to.put("Content-Type: ")
        to.copyMemory(from: start, byteCount: type.count)
        to.clean(count: type.count)
        to += type.count
        to.put("\r\n")
      }
      output.dateLine.withUnsafeBytes { if let start = $0.baseAddress { to.copyMemory(from: start, byteCount: date) } }
      to += date
      to.put("\r\n")
      output.fill(to: to)
    }
  }

  /// The answer's own lines, sorted, and the wire's where their names sort among them. A Date of the handler's own is kept
  /// (RFC 9110 6.6.1).
  private func writeLines(_ answer: HTTPAnswer, isFinal: Bool, length: Int, into output: inout Output) {
    let lines = answer.headers.lines
    withUnsafeTemporaryAllocation(of: Int.self, capacity: lines.count) { order in
      // By insertion, which keeps equal names in their own order: there are a handful.
      var count = 0
      for line in lines.indices where !lines[line].isOfWire {
        var at = count
        while at > 0 && lines[line].precedes(lines[order[at - 1]].name, lines[order[at - 1]].key) {
          order[at] = order[at - 1]
          at -= 1
        }
        order[at] = line
        count += 1
      }
      var next = 0
      // `key` is `HeaderLine.key(name)`.
      func writeLines(before name: String, _ key: UInt64, into output: inout Output) {
        while next < count && lines[order[next]].precedes(name, key) {
          output.append(lines[order[next]].name)
          output.append(value: lines[order[next]].value)
          next += 1
        }
      }
      writeLines(before: "connection", 0x636F_6E6E_6563_7469, into: &output)
      if isFinal { output.append(literal: "Connection: close\r\n") }
      writeLines(before: "content-length", 0x636F_6E74_656E_742D, into: &output)
      if length >= 0 {
        output.append(literal: "Content-Length: ")
        output.append(decimal: length)
        output.append(literal: "\r\n")
      }
      writeLines(before: "content-type", 0x636F_6E74_656E_742D, into: &output)
      if let type = answer.contentType, !type.isEmpty, answer.headers["content-type"] == nil {
        output.append(literal: "Content-Type")
        output.append(value: type)
      }
      writeLines(before: "date", 0x6461_7465_0000_0000, into: &output)
      if answer.headers["date"] == nil { output.dateLine.withUnsafeBytes { output.append($0) } }
      writeLines(before: "", .max, into: &output)
    }
  }
}

extension Output {
  /// A value in which each CR, LF and NUL is a space, between its colon and the end of its line.
  fileprivate mutating func append(value: String) {
    append(literal: ": ")
    let start = count
    append(value)
    clean(from: start)
    append(literal: "\r\n")
  }
}

extension UnsafeMutableRawPointer {
  /// Stores a literal and moves behind it.
  @inline(__always)
  fileprivate mutating func put(_ literal: StaticString) {
    copyMemory(from: literal.utf8Start, byteCount: literal.utf8CodeUnitCount)
    self += literal.utf8CodeUnitCount
  }
}
