// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// A router is filled here; how it answers is in RouterHandler.swift.

/// Decides which closure answers a request, by method and path.
///
/// ```swift
/// var router = Router()
/// router.get("/hello") { _ in .json(["ok": true]) }
/// router.get("/slow/:name") { request in
///   try await Task.sleep(for: .seconds(1))
///   return .text("hello, \(request.parameters["name"])\n")
/// }
/// ```
/// **Patterns** begin with `/` and are written decoded. A segment is literal, `:name` (any one segment that is not empty) or, as the last one, `*`
/// (the rest of the path, also an empty one, but `/files/*` does not match `/files`). The percent-decoded path is matched byte for byte; nothing
/// is normalised: `/a`, `/a/` and `//a` are three paths.
///
/// **Precedence**: of the routes that match the path and answer the method, the one wins whose first differing segment is more exact: literal, then parameter,
/// then `*`. The order of adding never matters.
///
/// **Answers of its own**: 404; 405 with `Allow` where only other methods match; a HEAD is answered by the GET route (the wire leaves the body out);
/// OPTIONS is answered with 204 and `Allow`, unless a route does it; `OPTIONS *` names every method of the router.
///
/// **Closures** that do not suspend answer inline, on the loop's thread: the cheapest way, and they must not block. Async ones run as a task on the
/// loop's thread, `.offloaded` ones on the blocking pool. A thrown `Refusal` is what the client is told; any other error is a 500 without details, which
/// the server's observer sees.
///
/// A router is a value: a server works with the copy it was given. Mistakes in patterns are collected and thrown by `validate()`.
public struct Router: Sendable {
  /// The routes.
  var tree = RouteTree()
  /// Number 0 is the router itself; an inner group's number is higher than its outer one's.
  var groups = [RouteGroup()]
  /// Whether any group has middleware.
  var hasMiddleware = false
  /// The group that is being filled.
  var current = 0
  /// What is wrong, in the order of adding.
  var problems: [RouteProblem] = []

  /// A router without routes.
  public init() {}

  /// Throws everything that is wrong with the routes, as one `RouterError`. A server does so before it starts.
  public func validate() throws {
    if !problems.isEmpty { throw RouterError(problems: problems) }
  }

  // MARK: Methods

  /// Answers inline.
  public typealias Plain = @Sendable (RouteRequest) throws -> HTTPAnswer
  /// Answers in a task.
  public typealias Async = nonisolated(nonsending) @Sendable (RouteRequest) async throws -> HTTPAnswer

  /// Answers GET, and HEAD where no route does.
  public mutating func get(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["GET"], pattern, options, .inline(answer))
  }

  /// Answers GET, and HEAD where no route does, with an async closure.
  public mutating func get(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["GET"], pattern, options, .task(answer))
  }

  /// Answers HEAD otherwise than by the GET route.
  public mutating func head(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["HEAD"], pattern, options, .inline(answer))
  }

  /// Answers HEAD otherwise than by the GET route, with an async closure.
  public mutating func head(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["HEAD"], pattern, options, .task(answer))
  }

  /// Answers POST.
  public mutating func post(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["POST"], pattern, options, .inline(answer))
  }

  /// Answers POST with an async closure.
  public mutating func post(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["POST"], pattern, options, .task(answer))
  }

  /// Answers PUT.
  public mutating func put(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["PUT"], pattern, options, .inline(answer))
  }

  /// Answers PUT with an async closure.
  public mutating func put(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["PUT"], pattern, options, .task(answer))
  }

  /// Answers PATCH.
  public mutating func patch(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["PATCH"], pattern, options, .inline(answer))
  }

  /// Answers PATCH with an async closure.
  public mutating func patch(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["PATCH"], pattern, options, .task(answer))
  }

  /// Answers DELETE.
  public mutating func delete(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["DELETE"], pattern, options, .inline(answer))
  }

  /// Answers DELETE with an async closure.
  public mutating func delete(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["DELETE"], pattern, options, .task(answer))
  }

  /// Answers OPTIONS otherwise than with 204 and `Allow`.
  public mutating func options(_ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(["OPTIONS"], pattern, options, .inline(answer))
  }

  /// Answers OPTIONS otherwise than with 204 and `Allow`, with an async closure.
  public mutating func options(_ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(["OPTIONS"], pattern, options, .task(answer))
  }

  /// Answers several methods, or one that has no function here. Methods are case-sensitive tokens (RFC 9110 9.1).
  public mutating func on(_ methods: [String], _ pattern: String, _ options: RouteOption..., answer: @escaping Plain) {
    add(methods, pattern, options, .inline(answer))
  }

  /// Answers several methods, or one that has no function here, with an async closure.
  public mutating func on(_ methods: [String], _ pattern: String, _ options: RouteOption..., answer: @escaping Async) {
    add(methods, pattern, options, .task(answer))
  }
}
