// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// Groups, middleware, and how a route gets into the tree.

/// Routes with a common prefix and middleware.
struct RouteGroup: Sendable {
  /// With the outer groups' prefixes; empty for the router itself.
  var prefix = ""
  var segments: [RoutePattern.Segment] = []
  var outer = 0
  var own: [any Middleware] = []
  /// The outer groups' middleware, then its own.
  var chain: [any Middleware] = []

  /// Whether `path` lies under the prefix.
  func contains(_ path: UnsafeRawBufferPointer) -> Bool {
    var rest = path[...]
    for segment in segments {
      guard rest.first == UInt8(ascii: "/") else { return false }
      rest = rest.dropFirst()
      let part = rest.prefix { $0 != UInt8(ascii: "/") }
      switch segment {
      case .literal(let bytes): guard part.elementsEqual(bytes) else { return false }
      case .parameter: guard !part.isEmpty else { return false }
      case .rest: return false
      }
      rest = rest[part.endIndex...]
    }
    return rest.isEmpty || rest.first == UInt8(ascii: "/")
  }
}

extension Router {
  /// Adds routes under a prefix, which may have parameters: `router.group("/api") { api in api.get("/lamps") { … } }` answers `/api/lamps`.
  ///
  /// Middleware of a group wraps its routes, and the router's own answers (404, 405, OPTIONS) to paths under its prefix; where groups share
  /// such a path, the longest prefix decides, then the first group. A prefix does not end in `/`; it may be empty.
  public mutating func group(_ prefix: String, _ middleware: any Middleware..., routes: (inout Router) throws -> Void) rethrows {
    let outer = current
    var group = RouteGroup(prefix: groups[outer].prefix + prefix, outer: outer)
    if !group.prefix.isEmpty {
      do {
        let pattern = try RoutePattern(group.prefix)
        group.segments = pattern.segments
        if pattern.segments.last == .rest || pattern.segments.last == .literal([]) { problems.append(.badPrefix(group.prefix)) }
      } catch { problems.append(error) }
    }
    groups.append(group)
    current = groups.count - 1
    defer { current = outer }
    for one in middleware { use(one) }
    try routes(&self)
  }

  /// Adds middleware: to the group if called inside one, else to the whole router, its refusals included. It also wraps routes added before.
  public mutating func use(_ middleware: any Middleware) {
    hasMiddleware = true
    groups[current].own.append(middleware)
    for index in current..<groups.count {
      groups[index].chain = (index == 0 ? [] : groups[groups[index].outer].chain) + groups[index].own
    }
  }

  /// Adds middleware that does not wait: `router.use { request, next in next(request).map { try $0.headers.set("Server", "door") } }`.
  ///
  /// It refuses by throwing a `Refusal` instead of calling `next`. What `map` changes is each answer and each `Refusal` behind it; the 500
  /// that stands for any other error is the server's own and stays as it is.
  public mutating func use(_ middleware: @escaping @Sendable (RouteRequest, Next) throws -> Reply<HTTPAnswer>) {
    use(PlainMiddleware(body: middleware))
  }

  /// Adds async middleware, which goes on with `try await next.answer(to: request)`. It makes a task of every route behind it.
  public mutating func use(_ middleware: nonisolated(nonsending) @escaping @Sendable (RouteRequest, Next) async throws -> HTTPAnswer) {
    use(AsyncMiddleware(body: middleware))
  }

  mutating func add(_ methods: [String], _ pattern: String, _ options: [RouteOption], _ action: Route.Action) {
    do {
      let pattern = try RoutePattern(groups[current].prefix + pattern)
      for method in methods {
        guard Router.isRoutable(method) else {
          problems.append(.badMethod(method, pattern: pattern.text))
          continue
        }
        let route = Route(method: method, pattern: pattern, options: options, group: current, action: action)
        if case .inline = route.action, !options.isEmpty { problems.append(.idleOption(method: method, pattern.text)) }
        if let problem = tree.add(route) { problems.append(problem) }
      }
    } catch { problems.append(error) }
  }

  /// Whether it is a token (RFC 9110 5.6.2), and not CONNECT, whose target is no path.
  private static func isRoutable(_ method: String) -> Bool {
    let isToken = method.utf8.allSatisfy { RoutePattern.isNameByte($0) || "!#$%&'*+.^`|~".utf8.contains($0) }
    return isToken && !method.isEmpty && method != "CONNECT"
  }
}
