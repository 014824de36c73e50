// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

// One route: what it matches, what answers it and on which terms. Made while the router is filled, never changed after that.

/// How a route is answered, where that is not the plain way.
public struct RouteOption: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case waiting
    case offloaded
    case deadline(Duration)
  }

  let kind: Kind

  /// The route waits for something to happen (a long poll), so a client that closes its sending side is taken for gone, and the handler's
  /// task is cancelled. Without it, a half-closed client still gets its answer.
  public static let waiting = RouteOption(kind: .waiting)
  /// The closure runs on the server's blocking pool: it may read files, compute for long, call what blocks. Plain and async closures both.
  public static let offloaded = RouteOption(kind: .offloaded)
  /// How long the answer may take before the client is told 503, instead of the server's `handlerDeadline`. A task that ignores its
  /// cancellation goes on, and its late answer is dropped.
  public static func deadline(_ duration: Duration) -> RouteOption { RouteOption(kind: .deadline(duration)) }
}

final class Route: Sendable {
  /// What makes the answer, and where.
  enum Action: Sendable {
    /// On the loop's thread, before the call returns.
    case inline(Router.Plain)
    /// On the loop's thread, in a task.
    case task(Router.Async)
    /// On the blocking pool, in a task.
    case pool(Router.Async)
  }

  let method: String
  let verb: HTTPVerb
  let pattern: RoutePattern
  /// The pattern's parameters, and which segment of the path each one is.
  let parameters: [(name: String, segment: Int)]
  let action: Action
  let terms: Terms
  /// The group it belongs to, as an index into the router's groups.
  let group: Int

  init(method: String, pattern: RoutePattern, options: [RouteOption], group: Int, action: Action) {
    self.method = method
    self.pattern = pattern
    parameters = pattern.segments.enumerated().compactMap { index, segment in
      switch segment {
      case .literal: nil
      case .parameter(let name): (name, index)
      case .rest: ("*", index)
      }
    }
    self.group = group
    verb = HTTPVerb(routing: method)
    var terms = Terms()
    var isOffloaded = false
    for option in options {
      switch option.kind {
      case .waiting: terms.waits = true
      case .offloaded: isOffloaded = true
      case .deadline(let duration): terms.deadline = duration
      }
    }
    self.terms = terms
    self.action =
      switch action {
      case .inline(let answer) where isOffloaded: .pool { try answer($0) }
      case .task(let answer) where isOffloaded: .pool(answer)
      default: action
      }
  }

  /// Answers, without any middleware.
  @inline(__always)
  func respond(to request: RouteRequest) -> Reply<HTTPAnswer> {
    switch action {
    case .inline(let answer): Reply(catching: { try answer(request) })
    case .task(let answer): .later(terms) { try await answer(request).checked() }
    case .pool(let answer): .offloaded(terms) { try await answer(request).checked() }
    }
  }

  /// `body` as a reply: where this route's own answer is made, and on its terms.
  func reply(_ body: nonisolated(nonsending) @escaping @Sendable () async throws -> HTTPAnswer) -> Reply<HTTPAnswer> {
    if case .pool = action { .offloaded(terms, body) } else { .later(terms, body) }
  }
}

extension Route {
  /// Which segment of the path the parameter `name` is; -1 if there is none.
  func segment(of name: String) -> Int {
    for index in parameters.indices where parameters[index].name == name { return parameters[index].segment }
    return -1
  }
}

extension HTTPVerb {
  /// The verb with this name, which is case-sensitive (RFC 9110 9.1).
  init(routing method: String) {
    self =
      switch method {
      case "GET": .get
      case "HEAD": .head
      case "POST": .post
      case "PUT": .put
      case "DELETE": .delete
      case "PATCH": .patch
      case "OPTIONS": .options
      case "TRACE": .trace
      default: .other
      }
  }
}
