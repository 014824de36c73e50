// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// libFuzzer target for the wire of lines, against the plainest reading of the same bytes. Compiled as one module with Sources/Wire.

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLines(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let start, count > 0 else { return 0 }
  let wire = LineWire(maximumLength: Int(start[0]))
  let input = Array(UnsafeBufferPointer(start: start + 1, count: count - 1))

  // All lines of the input, one behind the other.
  var at = 0
  while at < input.count, case .complete(let line, let consumed) = outcome(wire, Copy(input[at...]), nil) {
    guard let end = input[at...].firstIndex(of: 10) else { fatalError("a line without an end") }
    let bytes = input[at..<end].last == 13 ? input[at..<(end - 1)] : input[at..<end]
    require(line.bytes.elementsEqual(bytes) && consumed == end + 1 - at, "not the line")
    require(bytes.count <= wire.maximumLength, "a line over the limit")
    at += consumed
  }

  // The first one, at every cut.
  let whole = outcome(wire, Copy(input[...]), nil)
  var needs: [Need] = []
  var isDecided = false
  for cut in 0...input.count where cut <= 600 {
    let beginning = Copy(input[..<cut])
    let plain = outcome(wire, beginning, nil)
    for need in needs.suffix(4) + needs.prefix(2) {
      require(same(plain, outcome(wire, beginning, need)), "resuming changed the outcome")
    }
    if case .incomplete(let need) = plain {
      require(!isDecided && need.more >= 1, "a verdict was taken back")
      needs.append(need)
    } else {
      isDecided = true
      require(same(plain, whole), "more bytes changed a verdict")
    }
    _ = outcome(wire, beginning, Need(more: -1, scanned: Int(start[0]) - 40))
  }
  return 0
}

private func same(_ a: Outcome<Line>, _ b: Outcome<Line>) -> Bool {
  switch (a, b) {
  case (.incomplete(let a), .incomplete(let b)): a == b
  case (.invalid(let a), .invalid(let b)): a == b
  case (.complete(let a, let aConsumed), .complete(let b, let bConsumed)): a == b && aConsumed == bConsumed
  default: false
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

private func outcome(_ wire: LineWire, _ copy: Copy, _ need: Need?) -> Outcome<Line> {
  defer { withExtendedLifetime(copy) {} }
  return wire.parse(UnsafeRawBufferPointer(copy.bytes).bytes, resuming: need)
}

private func require(_ holds: Bool, _ what: String) {
  if !holds { fatalError(what) }
}
