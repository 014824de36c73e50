// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import FoundationEssentials

// Finds the field whose number does not fit. Of `1.5` for an Int, or 300 for a UInt8, JSONDecoder says only that the whole body "was not
// valid JSON", without a path (FoundationEssentials of Swift 6.3). The number is found by halving: once it is 0, with all numbers before it,
// the body decodes. A text in its place then has the decoder name the field.

/// A body that JSONDecoder refused without naming a field.
struct NumberFault<Value: Decodable> {
  /// Longer bodies are not decoded again and again: their client is told less.
  static var limit: Int { 16 << 10 }

  private let body: Data
  private let numbers: [Range<Int>]

  /// The error that names the field; nil if no number is at fault.
  static func find(in body: Data, as type: Value.Type) -> DecodingError? {
    guard body.count <= limit else { return nil }
    let fault = NumberFault(body: body, numbers: NumberFault.numbers(in: body))
    var failing = 0
    var passing = fault.numbers.count
    if fault.isNameless(fault.error(zeros: passing)) { return nil }
    while passing - failing > 1 {
      let middle = (passing + failing) / 2
      if fault.isNameless(fault.error(zeros: middle)) { failing = middle } else { passing = middle }
    }
    return fault.error(zeros: failing, thenText: true)
  }

  private func isNameless(_ error: DecodingError?) -> Bool {
    if case .dataCorrupted(let context) = error { context.codingPath.isEmpty } else { false }
  }

  /// What the decoder says with the first numbers set to 0, and perhaps a text in place of the next.
  private func error(zeros: Int, thenText: Bool = false) -> DecodingError? {
    var changed = Data()
    var kept = 0
    for (index, number) in numbers.prefix(thenText ? zeros + 1 : zeros).enumerated() {
      changed += body[kept..<number.lowerBound]
      changed += (index < zeros ? "0" : "\"\"").utf8
      kept = number.upperBound
    }
    changed += body[kept...]
    do {
      _ = try JSONDecoder().decode(Value.self, from: changed)
      return nil
    } catch {
      return error as? DecodingError
    }
  }

  /// Where numbers stand: what begins with a digit or a minus, outside of texts.
  private static func numbers(in body: Data) -> [Range<Int>] {
    var numbers: [Range<Int>] = []
    var isText = false
    var index = 0
    while index < body.count {
      switch body[index] {
      case UInt8(ascii: "\\") where isText: index += 1
      case UInt8(ascii: "\""): isText.toggle()
      case UInt8(ascii: "-") where !isText, UInt8(ascii: "0")...UInt8(ascii: "9") where !isText:
        let end = body[index...].firstIndex { !isPartOfNumber($0) } ?? body.count
        numbers.append(index..<end)
        index = end - 1
      default: break
      }
      index += 1
    }
    return numbers
  }

  private static func isPartOfNumber(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"),
      UInt8(ascii: "E"):
      true
    default: false
    }
  }
}
