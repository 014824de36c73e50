// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Prometheus' text format 0.0.4, written family by family.

struct MetricsText {
  typealias Sample = (labels: KeyValuePairs<String, String>, value: String)

  private(set) var text = ""

  mutating func counter(_ name: String, _ help: String, _ value: Int) { family("counter", name, help, [([:], String(value))]) }

  /// A counter for each value of one label.
  mutating func counter(_ name: String, _ help: String, by label: String, _ values: [(String, Int)]) {
    family("counter", name, help, values.map { ([label: $0.0], String($0.1)) })
  }

  mutating func gauge(_ name: String, _ help: String, _ value: Int) { family("gauge", name, help, [([:], String(value))]) }
  mutating func gauge(_ name: String, _ help: String, _ value: String) { family("gauge", name, help, [([:], value)]) }
  mutating func gauge(_ name: String, _ help: String, _ samples: [Sample]) { family("gauge", name, help, samples) }

  /// One family. Without a sample it is left out: a head alone says nothing.
  mutating func family(_ type: String, _ name: String, _ help: String, _ samples: [Sample]) {
    if samples.isEmpty { return }
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    for sample in samples {
      let labels = sample.labels.map { "\($0.key)=\"\(MetricsText.escaped($0.value))\"" }.joined(separator: ",")
      text += labels.isEmpty ? "\(name) \(sample.value)\n" : "\(name){\(labels)} \(sample.value)\n"
    }
  }

  private static func escaped(_ value: String) -> String {
    var text = String.UnicodeScalarView()
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\\", "\"": text += ["\\", scalar]
      case "\n": text += ["\\", "n"]
      default: text.append(scalar)
      }
    }
    return String(text)
  }
}
