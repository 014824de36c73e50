// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Routes
import Testing
import Wire

// What the router's tests share: requests made without a socket, and answers looked at.

/// A request as the wire would hand it over.
func request(_ method: String, _ target: String, headers: [(String, String)] = [], body: String = "") throws -> HTTPRequest {
  try HTTPRequest(method: method, target: target, headers: headers, body: Bytes(body))
}

extension Router {
  /// The answer to a request without a body.
  func answer(_ method: String, _ target: String) async throws -> HTTPAnswer { await answer(to: try request(method, target)) }

  /// The text that answers a GET.
  func text(_ target: String) async throws -> String { try await answer("GET", target).text }

  /// Adds a GET route that answers with its own pattern.
  mutating func echo(_ pattern: String) { get(pattern) { _ in .text(pattern) } }

  /// What `validate()` throws.
  var problems: [String] {
    do {
      try validate()
      return []
    } catch {
      return (error as? RouterError)?.problems.map(\.description) ?? ["\(error)"]
    }
  }
}

extension HTTPAnswer {
  /// The body as text.
  var text: String { bodyText }
}
