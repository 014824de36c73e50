// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// How an answer becomes bytes (RFC 9112 4 to 6). The same answer always gives the same bytes, but for the Date line.

extension HTTPWire {
  /// Writes one answer: status line, header lines in the order of their names in lower case, body.
  ///
  /// Every final answer says `Connection: close` and its `Content-Length`, also 0. No length stands with 1xx and 204 (RFC 9110 8.6), with
  /// a stream, and with a 304 that has no body to take it from: a length of 0 there would speak of the representation that is not sent.
  public func write(_ answer: HTTPAnswer, to request: HTTPRequest?, into output: inout Output) {
    let status = 100...599 ~= answer.status ? answer.status : 500
    let isFinal = status >= 200
    let hasContent = isFinal && status != 204 && status != 205 && status != 304

    var length = -1
    switch answer.body {
    case .empty: length = status == 304 ? -1 : 0
    case .text(let text): length = status == 205 ? 0 : text.utf8.count
    case .bytes(let bytes): length = status == 205 ? 0 : bytes.count
    case .stream: length = status == 205 ? 0 : -1
    }
    if !isFinal || status == 204 { length = -1 }

    output.appendStatusLine(status)
    if answer.headers.lines.isEmpty {
      if isFinal { output.append("Connection: close\r\n") }
      if length >= 0 { output.append(length: length) }
      if let type = answer.contentType { output.append(field: "Content-Type: ", type) }
      output.appendDateLine()
    } else {
      write(answer, isFinal: isFinal, length: length, into: &output)
    }
    output.append("\r\n")

    let sendsBody = hasContent && request?.facts.verb != .head
    switch answer.body {
    case .empty: break
    case .text(let text): if sendsBody { output.append(text) }
    case .bytes(let bytes): if sendsBody { output.append(bytes) }
    case .stream(let source): if sendsBody { output.append(source) } else { source.cancel() }
    }
  }

  /// The header lines of an answer that has some of its own, merged with the wire's.
  @inline(never)
  private func write(_ answer: HTTPAnswer, isFinal: Bool, length: Int, into output: inout Output) {
    var lines = answer.headers.lines
    lines.removeAll { line in
      ["connection", "content-length", "transfer-encoding"].contains { Headers.isSame($0, line.name) }
    }
    if let type = answer.contentType, answer.headers["content-type"] == nil { lines.append(("Content-Type", type)) }
    let hasDate = answer.headers["date"] != nil

    // Sorting the positions along keeps equal names in their own order.
    let order = lines.indices.sorted { a, b in
      if Headers.precedes(lines[a].name, lines[b].name) { return true }
      return a < b && !Headers.precedes(lines[b].name, lines[a].name)
    }
    var next = 0
    func writeLines(before name: String?, into output: inout Output) {
      while next < order.count {
        let line = lines[order[next]]
        if let name, !Headers.precedes(line.name, name) { return }
        output.append(line.name)
        output.append(field: ": ", line.value)
        next += 1
      }
    }
    writeLines(before: "connection", into: &output)
    if isFinal { output.append("Connection: close\r\n") }
    writeLines(before: "content-length", into: &output)
    if length >= 0 { output.append(length: length) }
    writeLines(before: "date", into: &output)
    if !hasDate { output.appendDateLine() }
    writeLines(before: nil, into: &output)
  }
}

extension Output {
  fileprivate mutating func append(length: Int) {
    append("Content-Length: ")
    append(decimal: length)
    append("\r\n")
  }

  fileprivate mutating func appendDateLine() {
    dateLine.withUnsafeBytes { append($0) }
  }

  /// A name with its colon, a value in which each CR, LF and NUL is a space, and the end of the line.
  fileprivate mutating func append(field name: StaticString, _ value: String) {
    append(name)
    let start = count
    append(value)
    clean(from: start)
    append("\r\n")
  }

  fileprivate mutating func appendStatusLine(_ status: Int) {
    if status == 200 {
      append("HTTP/1.1 200 OK\r\n")
    } else {
      append("HTTP/1.1 ")
      append(decimal: status)
      append(" ")
      append(reasonPhrase(status))
      append("\r\n")
    }
  }
}

/// The phrases of RFC 9110 15; empty for a status that it does not name.
func reasonPhrase(_ status: Int) -> StaticString {
  switch status {
  case 100: "Continue"
  case 101: "Switching Protocols"
  case 200: "OK"
  case 201: "Created"
  case 202: "Accepted"
  case 203: "Non-Authoritative Information"
  case 204: "No Content"
  case 205: "Reset Content"
  case 206: "Partial Content"
  case 300: "Multiple Choices"
  case 301: "Moved Permanently"
  case 302: "Found"
  case 303: "See Other"
  case 304: "Not Modified"
  case 305: "Use Proxy"
  case 307: "Temporary Redirect"
  case 308: "Permanent Redirect"
  case 400: "Bad Request"
  case 401: "Unauthorized"
  case 402: "Payment Required"
  case 403: "Forbidden"
  case 404: "Not Found"
  case 405: "Method Not Allowed"
  case 406: "Not Acceptable"
  case 407: "Proxy Authentication Required"
  case 408: "Request Timeout"
  case 409: "Conflict"
  case 410: "Gone"
  case 411: "Length Required"
  case 412: "Precondition Failed"
  case 413: "Content Too Large"
  case 414: "URI Too Long"
  case 415: "Unsupported Media Type"
  case 416: "Range Not Satisfiable"
  case 417: "Expectation Failed"
  case 421: "Misdirected Request"
  case 422: "Unprocessable Content"
  case 426: "Upgrade Required"
  case 500: "Internal Server Error"
  case 501: "Not Implemented"
  case 502: "Bad Gateway"
  case 503: "Service Unavailable"
  case 504: "Gateway Timeout"
  case 505: "HTTP Version Not Supported"
  default: ""
  }
}
