// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Foundation
import Testing

// The layers, as the import lines show them: each target may name these of ours, and Foundation in this form. System modules are free,
// except in Wire.

@Suite("Layers") struct LayerTests {
  static let system: Set = ["Glibc", "Synchronization", "Dispatch"]
  static let allowed: [String: Set<String>] = [
    "Wire": [],
    "Loop": ["CLibev", "Wire"],
    "TLS": ["Loop", "COpenSSL"],
    "Sockets": ["Loop", "TLS"],
    "Routes": ["Wire", "FoundationEssentials"],
    "NetSocket": ["Sockets", "Foundation"],
    "EventSource": ["Sockets", "Wire", "FoundationEssentials"],
    "doord": ["CSystem", "Loop", "TLS", "Sockets", "Routes", "Wire", "EventSource", "FoundationEssentials"],
  ]

  private static func imports(of file: URL) throws -> [String] {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard let at = words.firstIndex(of: "import"),
        words[..<at].allSatisfy({ $0.hasPrefix("@") || ["public", "package", "internal"].contains($0) })
      else { return nil }
      // `import struct Module.Name` names its module in the last word.
      return words.dropFirst(at + 1).first { !["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"].contains($0) }?
        .split(separator: ".").first.map(String.init)
    }
  }

  @Test("Every file imports only what its layer may")
  func imports() throws {
    let sources = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources").standardizedFileURL
    let targets = try FileManager.default.contentsOfDirectory(at: sources, includingPropertiesForKeys: nil)
    var seen = 0
    for target in targets {
      let files = FileManager.default.enumerator(at: target, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
      for file in files where file.pathExtension == "swift" {
        let name = target.lastPathComponent
        guard var allowed = LayerTests.allowed[name] else {
          Issue.record("\(name) has no row in the table of layers")
          continue
        }
        if name != "Wire" { allowed.formUnion(LayerTests.system) }
        let extra = Set(try LayerTests.imports(of: file)).subtracting(allowed)
        #expect(extra.isEmpty, "\(name)/\(file.lastPathComponent) imports \(extra.sorted())")
        seen += 1
      }
    }
    #expect(seen > 20)
  }
}
