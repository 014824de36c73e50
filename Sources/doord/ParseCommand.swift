// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop
import Wire

// `doord parse`: what the wire makes of some bytes, as one line of JSON, so that a request can be looked at without a server.

enum ParseCommand {
  /// Bytes of a body that are shown.
  static let shownBody = 4096

  /// Prints a line for each input. 0 if all of them are whole requests.
  static func run(_ options: Options) -> Int32 {
    let wire = options.wire
    // No request is longer than that; /dev/zero ends with its verdict too.
    let limit = wire.maximumHead + wire.maximumBody + (4 << 10) + 1
    var code: Int32 = 0
    for name in options.files.isEmpty ? ["-"] : options.files {
      guard let bytes = read(name, atMost: limit) else {
        code = 1
        continue
      }
      let (line, isComplete) = describe(bytes, wire)
      if !isComplete { code = 1 }
      if !print(line + [UInt8(ascii: "\n")]) { return 1 }
    }
    return code
  }

  /// The line, and whether the bytes hold a whole request.
  static func describe(_ bytes: [UInt8], _ wire: HTTPWire) -> (line: [UInt8], isComplete: Bool) {
    var json = JSONWriter()
    let outcome = wire.parse(bytes.span.bytes, resuming: nil)
    json.object { json in
      switch outcome {
      case .complete(let request, let consumed):
        let body = bytes[wire.bodyRange(of: request).clamped(to: 0..<bytes.count)]
        json.member("outcome", "complete")
        json.member("method", request.method)
        json.member("path", request.path)
        json.member("query") { for (name, value) in request.query.sorted(by: { $0.key < $1.key }) { $0.member(name, value) } }
        json.key("headers")
        json.array { list in
          for (name, value) in request.headers {
            list.array {
              $0.string(name)
              $0.string(value)
            }
          }
        }
        json.member("bodyLength", body.count)
        json.key("body")
        json.latin1(body.prefix(shownBody))
        json.member("consumed", consumed)
      case .incomplete(let need):
        json.member("outcome", "incomplete")
        json.member("wantsContinue", need.wantsContinue)
      case .invalid(let refusal):
        json.member("outcome", "invalid")
        json.member("status", refusal.status)
        json.member("reason", refusal.reason)
      }
    }
    if case .complete = outcome { return (json.bytes, true) }
    return (json.bytes, false)
  }

  /// The first bytes of a file, or of standard input for `-`, up to `limit`; nil after a sentence on standard error.
  private static func read(_ name: String, atMost limit: Int) -> [UInt8]? {
    let descriptor = name == "-" ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC)
    defer { if name != "-" && descriptor >= 0 { close(descriptor) } }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    var count = descriptor < 0 ? -1 : Glibc.read(descriptor, &buffer, buffer.count)
    while count > 0 || (count < 0 && descriptor >= 0 && errno == EINTR) {
      bytes += buffer.prefix(min(max(count, 0), limit - bytes.count))
      if bytes.count >= limit { return bytes }
      count = Glibc.read(descriptor, &buffer, buffer.count)
    }
    if count == 0 { return bytes }
    let reason = errorText(errno)
    say("doord: \(name == "-" ? "standard input" : name) cannot be read: \(reason)")
    return nil
  }

  private static func print(_ bytes: [UInt8]) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress.map { $0 + done }, $0.count - done) }
      if count < 0 && errno == EINTR { continue }
      if count < 0 {
        say("doord: standard output cannot be written: \(errorText(errno))")
        return false
      }
      done += count
    }
    return true
  }
}
