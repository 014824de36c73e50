// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// Middleware: what stands between the router and its routes. It sees each request before and each answer after, without turning a route
// that answers inline into a task.

/// Wraps what answers: looks at requests, turns them away, adorns answers.
///
/// ```swift
/// struct ServerName: Middleware {
///   func respond(to request: RouteRequest, next: Next) -> Reply<HTTPAnswer> {
///     next(request).map { try $0.headers.set("Server", "door") }
///   }
/// }
/// ```
/// The first one added is the outermost: it sees the request first and the answer last; a router's own go before its groups', an outer
/// group's before an inner one's. Called on the loop's thread, so it must not block.
public protocol Middleware: Sendable {
  /// Answers by itself, or calls `next` and hands on what comes of it.
  func respond(to request: RouteRequest, next: Next) -> Reply<HTTPAnswer>
}

/// What a middleware wraps: the next middleware, and in the end the route, or the refusal that the router made.
public struct Next: Sendable {
  enum End: Sendable {
    case route(Route)
    case reply(Reply<HTTPAnswer>)
  }

  let chain: [any Middleware]
  let position: Int
  let end: End

  /// Goes on with `request`. The reply may be there or may still have to be run; `Reply.map` serves both.
  public func callAsFunction(_ request: RouteRequest) -> Reply<HTTPAnswer> {
    if position < chain.count { return chain[position].respond(to: request, next: Next(chain: chain, position: position + 1, end: end)) }
    switch end {
    case .route(let route): return route.respond(to: request)
    case .reply(let reply): return reply
    }
  }

  /// Goes on with `request` and waits for the answer, for middleware that is async. Throws what the handler throws.
  public nonisolated(nonsending) func answer(to request: RouteRequest) async throws -> HTTPAnswer { try await self(request).value() }

  /// `body` as a reply, run where the route asks to be run and on its terms.
  func reply(_ body: nonisolated(nonsending) @escaping @Sendable () async throws -> HTTPAnswer) -> Reply<HTTPAnswer> {
    switch end {
    case .route(let route): route.reply(body)
    case .reply: .later(Terms(), body)
    }
  }
}

/// Middleware made of a closure that does not wait.
struct PlainMiddleware: Middleware {
  let body: @Sendable (RouteRequest, Next) throws -> Reply<HTTPAnswer>

  func respond(to request: RouteRequest, next: Next) -> Reply<HTTPAnswer> {
    do { return try body(request, next) } catch { return .failed(error) }
  }
}

/// Middleware made of an async closure. Every answer behind it is a task's.
struct AsyncMiddleware: Middleware {
  let body: nonisolated(nonsending) @Sendable (RouteRequest, Next) async throws -> HTTPAnswer

  func respond(to request: RouteRequest, next: Next) -> Reply<HTTPAnswer> {
    next.reply { try await body(request, next).checked() }
  }
}

extension Reply<HTTPAnswer> {
  /// The same reply with its answer changed by `change`, when it is there: at once if it is, else in the task that makes it.
  ///
  /// A `Refusal` that was thrown becomes its answer first, so a header can be added to that too. Any other error passes: the server
  /// logs it and answers 500 by itself. What `change` throws takes the answer's place.
  public func map(_ change: @escaping @Sendable (inout HTTPAnswer) throws -> Void) -> Reply {
    switch self {
    case .now(let answer): Reply(catching: { try answer.changed(by: change) })
    case .failed(let refusal as Refusal): Reply(catching: { try HTTPAnswer.refusal(refusal).changed(by: change) })
    case .failed: self
    case .later(let terms, let body): .later(terms) { try await HTTPAnswer(awaiting: body).changed(by: change) }
    case .offloaded(let terms, let body): .offloaded(terms) { try await HTTPAnswer(awaiting: body).changed(by: change) }
    }
  }

  /// The answer, run here and now; on which thread and for how long is the caller's business.
  nonisolated(nonsending) func value() async throws -> HTTPAnswer {
    switch self {
    case .now(let answer): answer
    case .failed(let error): throw error
    case .later(_, let body), .offloaded(_, let body): try await body()
    }
  }

  /// What `body` returns, or its error.
  @inline(__always)
  init(catching body: () throws -> HTTPAnswer) {
    do {
      self = .now(try body().checked())
    } catch {
      self = .failed(error)
    }
  }
}

extension HTTPAnswer {
  fileprivate nonisolated(nonsending) init(awaiting body: nonisolated(nonsending) @Sendable () async throws -> HTTPAnswer) async throws {
    do { self = try await body() } catch let refusal as Refusal { self = .refusal(refusal) }
  }

  fileprivate func changed(by change: (inout HTTPAnswer) throws -> Void) throws -> HTTPAnswer {
    var answer = self
    try change(&answer)
    return answer
  }
}
