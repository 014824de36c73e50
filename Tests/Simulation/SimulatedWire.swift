// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

// The wire that simulated clients speak: heads of fixed length, so that a byte that is lost, doubled or out of place shows at once.
//
//   request   Q kind flags 0  id(4)  body length(4)  0(4)   and the body, a part of the pattern
//   answer    A 0 0 0         id(4)  length(4)              and the body
//   stream    S 0 0 0         id(4)  0(4)                   and bytes until the source ends
//   refusal   E code 0 0
//   leave     C 0 0 0                                       to send the body

/// Bytes that no part of repeats itself within.
struct Pattern: @unchecked Sendable {  // written once, before anybody else sees it
  static let shared = Pattern()
  static let count = 1 << 20
  let start: UnsafeRawPointer

  private init() {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: Pattern.count, alignment: 16)
    var random = Random(seed: 4711)
    for offset in stride(from: 0, to: Pattern.count, by: 8) { memory.storeBytes(of: random.next(), toByteOffset: offset, as: UInt64.self) }
    start = UnsafeRawPointer(memory)
  }

  /// Where the bytes of a request or an answer begin.
  static func offset(id: Int, isAnswer: Bool) -> Int { (id &* 7919 + (isAnswer ? 131 : 0)) & 0x3ffff }

  func bytes(at offset: Int, count: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start + offset, count: count) }
}

enum Heads {
  static let request = 16
  static let answer = 12
  static let short = 4
  static let bodyLimit = 400 << 10
}

struct SimulatedRequest: Sendable {
  var id: Int
  var bodyLength: Int
  var body = Bytes()
}

enum SimulatedAnswer: Sendable {
  case bytes(id: Int, count: Int)
  case stream(id: Int, any OutputSource)
  case refusal(RefusalCode)
}

/// The refusals that can occur, as the wire says them.
enum RefusalCode: UInt8, CaseIterable {
  case garbage = 1, tooLarge, teapot, arrival, handler, stopping, tooMany, failed

  var refusal: Refusal {
    switch self {
    case .garbage: Refusal(400, "not a request")
    case .tooLarge: Refusal(413, "too large")
    case .teapot: Refusal(418, "a teapot")
    case .arrival: .arrivalTimeout
    case .handler: .handlerTimeout
    case .stopping: .stopping
    case .tooMany: .tooManyConnections
    case .failed: .handlerFailed
    }
  }
}

struct SimulatedWire: WireFormat {
  let conversation: Conversation

  func parse(_ bytes: RawSpan, resuming: Need?) -> Outcome<SimulatedRequest> {
    bytes.withUnsafeBytes { bytes in
      if let resuming, resuming.scanned > bytes.count { return .invalid(RefusalCode.garbage.refusal) }
      if bytes.count > 0 && bytes[0] != UInt8(ascii: "Q") { return .invalid(RefusalCode.garbage.refusal) }
      guard bytes.count >= Heads.request else { return .incomplete(Need(more: Heads.request - bytes.count, scanned: bytes.count)) }
      let id = Int(bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
      let length = Int(bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
      guard length <= Heads.bodyLimit else { return .invalid(RefusalCode.tooLarge.refusal) }
      let whole = Heads.request + length
      guard bytes.count >= whole else {
        let wants = bytes[2] == 1 && bytes.count == Heads.request
        return .incomplete(Need(more: whole - bytes.count, scanned: bytes.count, wantsContinue: wants))
      }
      return .complete(SimulatedRequest(id: id, bodyLength: length), consumed: whole)
    }
  }

  func bodyRange(of request: SimulatedRequest) -> Range<Int> { Heads.request..<Heads.request + request.bodyLength }
  func attach(_ body: Bytes, to request: inout SimulatedRequest) { request.body = body }

  func write(_ answer: SimulatedAnswer, to request: SimulatedRequest?, into output: inout Output) {
    switch answer {
    case .bytes(let id, let count):
      head("A", id, count, into: &output)
      output.append(
        Bytes(unsafeStart: Pattern.shared.start + Pattern.offset(id: id, isAnswer: true), count: count, owner: nil))
    case .stream(let id, let source):
      head("S", id, 0, into: &output)
      output.append(source)
    case .refusal(let code):
      output.append(literal: "E")
      output.append(code.rawValue)
      output.append(literal: "\0\0")
    }
  }

  func writeContinue(into output: inout Output) { output.append(literal: "C\0\0\0") }

  func refusal(_ refusal: Refusal) -> SimulatedAnswer { .refusal(RefusalCode.allCases.first { $0.refusal == refusal } ?? .failed) }

  private func head(_ type: StaticString, _ id: Int, _ count: Int, into output: inout Output) {
    output.append(literal: type)
    output.append(literal: "\0\0\0")
    withUnsafeBytes(of: (UInt32(truncatingIfNeeded: id), UInt32(truncatingIfNeeded: count))) { output.append($0) }
  }
}
