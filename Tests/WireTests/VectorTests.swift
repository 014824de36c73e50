// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// The conformance cases of Tests/Vectors/http-requests.json, each cut wherever it can be cut.

@Suite("HTTP request vectors") struct VectorTests {
  @Test("Every vector gives what it expects, in one piece", arguments: Vector.all)
  func whole(_ vector: Vector) {
    vector.expectMatch(HTTPWire().request(in: vector.input))
  }

  @Test("Every vector gives the same as a slice that does not begin at the buffer's start", arguments: Vector.all)
  func slice(_ vector: Vector) {
    let padded = [13, 10, 71] + vector.input + [13, 10, 13, 10]
    padded.withUnsafeBytes { buffer in
      vector.expectMatch(attached(HTTPWire(), UnsafeRawBufferPointer(rebasing: buffer[3..<(3 + vector.input.count)]), nil))
    }
  }

  @Test("Every vector gives the same wherever it is cut, and with every need handed out for a shorter beginning", arguments: Vector.all)
  func cuts(_ vector: Vector) {
    let wire = HTTPWire()
    var verdict: Outcome<HTTPRequest>?
    var needs: [Need] = []
    vector.input.withUnsafeBytes { buffer in
      for cut in vector.cuts {
        let beginning = UnsafeRawBufferPointer(rebasing: buffer[..<cut])
        let outcome = attached(wire, beginning, nil)
        vector.expectBeginning(outcome, cut: cut)
        // Once it is not incomplete, it never changes.
        if let verdict, !same(verdict, outcome) { Issue.record("\(vector.name) changed at \(cut)") }
        if case .incomplete(let need) = outcome {
          #expect(need.more >= 1)
          if needs.last != need { needs.append(need) }
        } else {
          verdict = outcome
        }
        for need in needs where !same(attached(wire, beginning, need), outcome) {
          Issue.record("\(vector.name) at \(cut), resuming \(need)")
        }
      }
    }
  }

  @Test("No need that was made up traps or reads out of bounds", arguments: Vector.all.filter { $0.input.count <= 1500 })
  func inventedNeeds(_ vector: Vector) {
    let wire = HTTPWire()
    for cut in stride(from: 0, through: vector.input.count, by: 7) {
      // Memory of its own, so that the address sanitizer would see a read behind it.
      let beginning = Array(vector.input[..<cut])
      for more in [Int.min, -1, 0, 1, Int.max] {
        for scanned in [Int.min, -1, 0, 1, cut / 2, cut - 1, cut, cut + 1, Int.max] {
          for bits in 0..<4 {
            let need = Need(more: more, scanned: scanned, wantsContinue: bits & 1 != 0, isCounting: bits & 2 != 0)
            _ = beginning.withUnsafeBytes { attached(wire, $0, need) }
          }
        }
      }
    }
  }
}

/// Parses, and hands over the body.
func attached(_ wire: HTTPWire, _ bytes: UnsafeRawBufferPointer, _ need: Need?) -> Outcome<HTTPRequest> {
  let outcome = wire.parse(bytes.bytes, resuming: need)
  guard case .complete(var request, let consumed) = outcome else { return outcome }
  let range = wire.bodyRange(of: request)
  wire.attach(Bytes(unsafeStart: bytes.baseAddress.map { $0 + range.lowerBound }, count: range.count, owner: nil), to: &request)
  return .complete(request, consumed: consumed)
}

/// Whether two outcomes say the same.
func same(_ a: Outcome<HTTPRequest>, _ b: Outcome<HTTPRequest>) -> Bool {
  switch (a, b) {
  case (.incomplete(let a), .incomplete(let b)): a == b
  case (.invalid(let a), .invalid(let b)): a == b
  case (.complete(let a, let aConsumed), .complete(let b, let bConsumed)):
    aConsumed == bConsumed && a.label == b.label && a.path == b.path && a.isHTTP10 == b.isHTTP10 && a.body.count == b.body.count
      && a.headers.elementsEqual(b.headers) { $0 == $1 }
  default: false
  }
}
