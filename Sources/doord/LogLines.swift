// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Wire

// Records as lines, text or JSON. On the log's thread only. What a peer sent is escaped byte by byte, so that no line can be forged.

typealias LogFormat = Options.LogFormat

/// Lines that are collected to chunks of at most `chunk` bytes, so that each chunk is one write of whole lines.
struct LogLines {
  /// PIPE_BUF: what a pipe takes in one piece or not at all (pipe(7)).
  static let chunk = 4096

  private let format: LogFormat
  private var line: [UInt8] = []
  private var ready: [UInt8] = []
  private var second = Timestamp()

  init(format: LogFormat) { self.format = format }

  /// Appends one record and hands over what has become a chunk.
  mutating func append(_ record: LogRecord, in text: [UInt8], _ write: ([UInt8]) -> Void) {
    line.removeAll(keepingCapacity: true)
    switch format {
    case .text: writeText(record, text)
    case .json: writeJSON(record, text)
    case .off: return
    }
    line.append(UInt8(ascii: "\n"))
    if ready.count + line.count > LogLines.chunk { flush(write) }
    ready += line
  }

  /// Hands over what there is.
  mutating func flush(_ write: ([UInt8]) -> Void) {
    if ready.isEmpty { return }
    write(ready)
    ready.removeAll(keepingCapacity: true)
  }

  /// `TIME PEER [for ORIGIN] "METHOD PATH" STATUS BYTESB DURATIONms ["REASON"]`, or `TIME doord: MESSAGE`.
  private mutating func writeText(_ record: LogRecord, _ text: [UInt8]) {
    second.append(record.time, to: &line)
    guard let peer = record.peer else {
      line += " doord: ".utf8
      escape(text[record.text])
      return
    }
    line.append(UInt8(ascii: " "))
    append(peer)
    if let origin = record.origin {
      line += " for ".utf8
      append(origin, port: false)
    }
    line += " \"".utf8
    if record.text.isEmpty { line.append(UInt8(ascii: "-")) } else { escape(text[record.text]) }
    line += "\" ".utf8
    line.append(decimal: record.status)
    line.append(UInt8(ascii: " "))
    line.append(decimal: record.bytes)
    line += "B ".utf8
    line.append(record.duration.microseconds, decimals: 3)
    line += "ms".utf8
    if let reason = record.reason {
      line += " \"".utf8
      escape(text[reason])
      line.append(UInt8(ascii: "\""))
    }
  }

  private mutating func writeJSON(_ record: LogRecord, _ text: [UInt8]) {
    var json = JSONWriter(bytes: line)
    line = []
    json.object { json in
      json.key("time")
      json.bytes.append(UInt8(ascii: "\""))
      second.append(record.time, to: &json.bytes)
      json.bytes.append(UInt8(ascii: "\""))
      guard let peer = record.peer else {
        json.member("message", String(decoding: text[record.text], as: UTF8.self))
        return
      }
      json.member("peer", peer.description)
      if let origin = record.origin { json.member("origin", origin.host) }
      let label = text[record.text]
      let space = label.firstIndex(of: UInt8(ascii: " ")) ?? label.endIndex
      json.key("method")
      if label.isEmpty { json.null() } else { json.latin1(label[..<space]) }
      json.key("path")
      if space == label.endIndex { json.null() } else { json.latin1(label[(space + 1)...]) }
      json.member("status", record.status)
      json.member("bytes", record.bytes)
      json.key("duration")
      json.millionths(record.duration.microseconds)
      if let reason = record.reason { json.member("reason", String(decoding: text[reason], as: UTF8.self)) }
    }
    line = json.bytes
  }

  private mutating func append(_ address: PeerAddress, port: Bool = true) {
    guard address.family == .ipv4 else {
      line += (port ? address.description : address.host).utf8
      return
    }
    for shift in [24, 16, 8, 0] as [UInt64] {
      line.append(decimal: address.low >> shift & 0xff)
      if shift > 0 { line.append(UInt8(ascii: ".")) }
    }
    guard port else { return }
    line.append(UInt8(ascii: ":"))
    line.append(decimal: address.port)
  }

  /// Printable ASCII as it is, but for the quote and the backslash; every other byte as \xHH.
  private mutating func escape(_ bytes: ArraySlice<UInt8>) {
    let isPlain = bytes.allSatisfy { 0x20...0x7e ~= $0 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    if isPlain {
      line += bytes
      return
    }
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        line.append(UInt8(ascii: "\\"))
        line.append(byte)
      case 0x20...0x7e:
        line.append(byte)
      default:
        line += "\\x".utf8
        line.append(hexDigit(UInt16(byte >> 4)))
        line.append(hexDigit(UInt16(byte)))
      }
    }
  }
}

/// RFC 3339 times in UTC with milliseconds; the date is made once a second.
struct Timestamp {
  private var second: Int?
  private var text: [UInt8] = []

  mutating func append(_ time: timespec, to line: inout [UInt8]) {
    if second != time.tv_sec {
      second = time.tv_sec
      var parts = tm()
      var seconds = time.tv_sec
      gmtime_r(&seconds, &parts)
      text.removeAll(keepingCapacity: true)
      text.append(decimal: Int(parts.tm_year) + 1900, width: 4)
      for (mark, value) in [("-", parts.tm_mon + 1), ("-", parts.tm_mday), ("T", parts.tm_hour), (":", parts.tm_min), (":", parts.tm_sec)] {
        text += mark.utf8
        text.append(decimal: value, width: 2)
      }
      text.append(UInt8(ascii: "."))
    }
    line += text
    line.append(decimal: time.tv_nsec / 1_000_000, width: 3)
    line.append(UInt8(ascii: "Z"))
  }
}
