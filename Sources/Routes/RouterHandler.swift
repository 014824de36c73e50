// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// How a router answers. Runs on the loop's thread for every request, so the way to a plain closure makes no text and no collection.

extension Router: Handler {
  /// Finds the route and has it answer, through the middleware around it.
  public func respond(to request: HTTPRequest, in context: consuming Context) -> Reply<HTTPAnswer> {
    let verb = request.verb
    let route = request.withPath { path in
      verb == .other ? tree.route(forOther: request.method, path: path) : tree.route(for: verb, path: path)
    }
    guard let route else { return refuse(RouteRequest(http: request, context: context, route: nil)) }
    let routed = RouteRequest(http: request, context: context, route: route)
    return hasMiddleware ? Next(chain: groups[route.group].chain, position: 0, end: .route(route))(routed) : route.respond(to: routed)
  }

  /// Answers as a server would, without one: for tests. Closures that are async or offloaded run here and now; deadlines do not count.
  public func answer(to request: HTTPRequest, peer: Peer = Peer(), link: (any ConnectionLink)? = nil) async -> HTTPAnswer {
    do {
      return try await respond(to: request, in: Context(peer: peer, link: link)).value()
    } catch {
      return .refusal(error as? Refusal ?? .handlerFailed)
    }
  }

  /// What the router says where no route answers, through the middleware of the group that the path lies in.
  private func refuse(_ request: RouteRequest) -> Reply<HTTPAnswer> {
    let reply = request.http.withPath { path in ownReply(to: request.http, path) }
    let chain = request.http.withPath { path in middleware(around: path) }
    return Next(chain: chain, position: 0, end: .reply(reply))(request)
  }

  private func middleware(around path: UnsafeRawBufferPointer) -> [any Middleware] {
    var best = 0
    for index in groups.indices.dropFirst()
    where groups[index].segments.count > groups[best].segments.count && groups[index].contains(path) {
      best = index
    }
    return groups[best].chain
  }

  private func ownReply(to request: HTTPRequest, _ path: UnsafeRawBufferPointer) -> Reply<HTTPAnswer> {
    let isServer = path.elementsEqual([UInt8(ascii: "*")])
    var methods = isServer ? Set(tree.routes.map(\.method)) : tree.methods(path: path)
    guard isServer || !methods.isEmpty else { return .failed(Refusal.notFound("there is nothing at this path")) }
    methods.insert("OPTIONS")
    if methods.contains("GET") { methods.insert("HEAD") }
    let allowed = methods.sorted().joined(separator: ", ")
    var answer = HTTPAnswer.status(204)
    if request.verb != .options { answer = .refusal(Refusal(405, "this method is not allowed here; allowed: \(allowed)")) }
    do { try answer.headers.set("Allow", allowed) } catch { return .failed(error) }
    return .now(answer)
  }
}
