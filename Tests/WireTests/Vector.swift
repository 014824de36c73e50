// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Foundation
import Testing
import Wire

// One case of Tests/Vectors/http-requests.json; the format is described in Tests/Vectors/README.md.

struct Vector: Sendable, CustomTestStringConvertible {
  var name: String
  var input: [UInt8]
  var outcome: String
  var method: String?
  var path: String?
  var query: [String: String]?
  var headers: [String: String]?
  var body: [UInt8]?
  var consumed: Int?
  var wantsContinue: Bool?
  var status: Int?
  var reason: String?

  var testDescription: String { name }

  static let all: [Vector] = {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Vectors/http-requests.json")
    guard let data = try? Data(contentsOf: file), let json = try? JSONSerialization.jsonObject(with: data) as? [[String: Any]] else {
      Issue.record("no vectors in \(file.path)")
      return []
    }
    return json.compactMap(Vector.init)
  }()

  init?(_ json: [String: Any]) {
    guard let name = json["name"] as? String, let input = json["input"] as? String, let expect = json["expect"] as? [String: Any],
      let outcome = expect["outcome"] as? String
    else { return nil }
    // Latin-1: a character is a byte. Scalars, because CR LF is one Character.
    func bytes(_ text: String) -> [UInt8] {
      (json["repeat"] as? [[String: Any]] ?? []).reduce(text.unicodeScalars.map { UInt8($0.value) }) { bytes, entry in
        guard let mark = entry["placeholder"] as? String, let part = entry["text"] as? String, let times = entry["times"] as? Int,
          let range = bytes.firstRange(of: Array(mark.utf8))
        else { return bytes }
        return bytes[..<range.lowerBound] + Array(String(repeating: part, count: times).utf8) + bytes[range.upperBound...]
      }
    }
    /// The only placeholders in texts stand for ASCII.
    func text(_ text: String) -> String {
      text.contains("@") ? String(decoding: bytes(text), as: UTF8.self) : text
    }
    self.name = name
    self.input = bytes(input)
    self.outcome = outcome
    method = expect["method"] as? String
    path = (expect["path"] as? String).map(text)
    query = expect["query"] as? [String: String]
    headers = (expect["headers"] as? [String: String])?.mapValues(text)
    body = (expect["body"] as? String).map(bytes)
    consumed = expect["consumed"] as? Int
    wantsContinue = expect["wantsContinue"] as? Bool
    status = expect["status"] as? Int
    reason = expect["reason"] as? String
  }

  /// Every byte of a short input; of a long one both ends, the places around the head's limit, and some between.
  var cuts: [Int] {
    let count = input.count
    guard count > 1500 else { return Array(0...count) }
    let chosen = Array(0...64) + Array(16370...16400) + Array(stride(from: 64, through: count, by: max(count / 9, 997)))
    return Set((chosen + Array((count - 6)...count)).filter { $0 <= count }).sorted()
  }

  /// The whole input gave what is expected.
  func expectMatch(_ result: Outcome<HTTPRequest>) {
    switch result {
    case .incomplete(let need):
      #expect(outcome == "incomplete")
      if let wantsContinue { #expect(need.wantsContinue == wantsContinue) }
    case .invalid(let refusal):
      #expect(outcome == "invalid", "\(refusal)")
      #expect(status == refusal.status, "\(refusal)")
      if let reason { #expect(reason == refusal.reason) }
    case .complete(let request, let consumed):
      #expect(outcome == "complete")
      #expect(consumed == self.consumed)
      #expect(request.method == method)
      #expect(request.path == path)
      #expect(request.query == query)
      for (name, value) in headers ?? [:] { #expect(request.headers[name] == value, "\(name)") }
      if let body { #expect(request.body == Bytes(body)) }
    }
  }

  /// The first `cut` bytes gave what a beginning of this input may give.
  func expectBeginning(_ result: Outcome<HTTPRequest>, cut: Int) {
    switch (outcome, result) {
    case ("complete", .complete) where cut >= consumed ?? 0: break
    case ("complete", .incomplete) where cut < consumed ?? 0: break
    case ("incomplete", .incomplete): break
    case ("invalid", .incomplete) where cut < input.count: break
    case ("invalid", .invalid(let refusal)) where refusal.status == status: break
    default: Issue.record("\(name) at \(cut): \(result)")
    }
  }
}
