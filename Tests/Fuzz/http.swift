// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// libFuzzer target for the HTTP request parser. Not only must nothing trap: the outcome must depend on the bytes alone, never on how they
// were cut or what was remembered of a shorter beginning. Compiled as one module with Sources/Wire.

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let start, count > 1 else { return 0 }
  // The first two bytes choose small limits, so that short inputs reach them, and the needs that are made up.
  var wire = HTTPWire()
  if start[0] & 1 == 1 { wire.maximumHead = Int(start[0] >> 1) + 4 }
  if start[1] & 1 == 1 { wire.maximumBody = Int(start[1] >> 1) }
  let input = Array(UnsafeBufferPointer(start: start + 2, count: count - 2))
  let whole = outcome(wire, Copy(input[...]), nil)

  var needs: [Need] = []
  var verdictAt: Int?
  var waiting: Int?
  for cut in 0...input.count where input.count <= 300 || cut % 97 == 0 || cut == input.count {
    let beginning = Copy(input[..<cut])
    let plain = outcome(wire, beginning, nil)
    if case .incomplete(let need) = plain.outcome {
      require(verdictAt == nil, "a verdict was taken back")
      require(need.more >= 1, "a need for nothing")
      require(need.isCounting || mayEnd(input[..<cut], wire.maximumHead), "a head that is too long already")
      // A body is counted, and until it is whole there is nothing else to say.
      if let waiting { require(need.more == waiting - cut, "a miscounted body") }
      if need.isCounting { waiting = cut + need.more }
      if needs.last != need { needs.append(need) }
    } else {
      if case .invalid(let refusal) = plain.outcome, verdictAt == nil, refusal.reason.hasSuffix("is over \(wire.maximumHead) bytes") {
        require(!mayEnd(input[..<cut], wire.maximumHead), "a head that could still have ended in time")
      }
      verdictAt = verdictAt ?? cut
      require(waiting == nil || plain.isComplete, "a refusal while the body is waited for")
      require(plain == whole, "more bytes changed a verdict")
    }
    for need in needs.suffix(4) + needs.prefix(2) { require(plain == outcome(wire, beginning, need), "resuming changed the outcome") }
    let invented = Need(more: Int(start[0]) - 5, scanned: Int(start[1]) * 3 - 40, isCounting: start[0] & 2 != 0)
    _ = outcome(wire, beginning, invented)
  }
  if case .complete(let request, let consumed) = whole.outcome { check(wire, request, consumed, input) }
  return 0
}

/// The plainest reading of the limit: whether an empty line that begins at most `limit` bytes in is there or may still come.
private func mayEnd(_ bytes: ArraySlice<UInt8>, _ limit: Int) -> Bool {
  let end: [UInt8] = [13, 10, 13, 10]
  let first = bytes.starts(with: end[..<2]) ? 3 : 1
  if bytes.count <= limit { return true }
  return first <= limit && (first...limit).contains { bytes[$0...].starts(with: end) || end.starts(with: bytes[$0...]) }
}

/// What was found of a complete request.
private func check(_ wire: HTTPWire, _ request: HTTPRequest, _ consumed: Int, _ input: [UInt8]) {
  let body = wire.bodyRange(of: request)
  require(body.lowerBound > 0 && body.upperBound == consumed && consumed <= input.count, "a body outside the request")
  require(outcome(wire, Copy(input[..<consumed]), nil).isComplete, "consumed is too small")
  require(!outcome(wire, Copy(input[..<(consumed - 1)]), nil).isComplete, "consumed is too large")
  require(request.path.utf8.elementsEqual(request.withPath { Array($0) }), "the path is not its bytes")
  for (name, value) in request.headers {
    require(!name.isEmpty && name.utf8.allSatisfy(\.isToken) && name == name.lowercased(), "a name that is no token")
    require(value.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == .tab }, "a control byte in a value")
    require(request.headers[name.uppercased()] != nil, "a name that is not found")
  }
  for (name, value) in request.query { require(request.query(name) == value, "a query that is not found") }

  // Written again from its parts, it is the same request.
  var text = Array(request.label) + Array((request.isHTTP10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n").utf8)
  for (name, value) in request.headers { text += Array("\(name): \(value)\r\n".utf8) }
  text += [13, 10] + input[body]
  guard case .complete(let again, let length) = HTTPWire().request(in: text) else {
    return require(false, "not a request when written again")
  }
  require(length == text.count && again.path == request.path && again.query == request.query, "another request when written again")
  require(again.headers.elementsEqual(request.headers) { $0 == $1 }, "other headers when written again")
}

/// An outcome with what can be compared of it.
private struct Judged: Equatable {
  var outcome: Outcome<HTTPRequest>

  var isComplete: Bool { if case .complete = outcome { true } else { false } }

  static func == (a: Judged, b: Judged) -> Bool {
    switch (a.outcome, b.outcome) {
    case (.incomplete(let a), .incomplete(let b)): a == b
    case (.invalid(let a), .invalid(let b)): a == b
    case (.complete(let a, let aConsumed), .complete(let b, let bConsumed)): aConsumed == bConsumed && a.label == b.label
    default: false
    }
  }
}

/// A copy in memory of its own, so that the address sanitizer sees a read before or behind it.
private final class Copy {
  let bytes: UnsafeMutableRawBufferPointer

  init(_ input: ArraySlice<UInt8>) {
    bytes = .allocate(byteCount: input.count, alignment: 1)
    bytes.copyBytes(from: input)
  }

  deinit { bytes.deallocate() }
}

private func outcome(_ wire: HTTPWire, _ copy: Copy, _ need: Need?) -> Judged {
  defer { withExtendedLifetime(copy) {} }
  return Judged(outcome: wire.parse(UnsafeRawBufferPointer(copy.bytes).bytes, resuming: need))
}

private func require(_ holds: Bool, _ what: String) {
  if !holds { fatalError(what) }
}
