// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// What a route's closure gets: the request, who asks, and the path's parameters. A field that nobody reads costs nothing: text is
// made from the request's bytes when it is asked for.

/// A request on its way through a router.
public struct RouteRequest: Sendable {
  /// The request as the wire read it.
  public let http: HTTPRequest
  /// The connection, as far as a handler may use it: the peer, timers, `wake()`.
  public let context: Context
  /// Nil where the router itself answers: 404, 405, OPTIONS.
  let route: Route?

  /// The method as it was sent; it is case-sensitive (RFC 9110 9.1).
  public var method: String { http.method }
  /// The path, percent-decoded, not normalised. `*` only with OPTIONS.
  public var path: String { http.path }
  /// The query, percent-decoded; of a repeated name the last value. `+` stays `+`. Made anew by each call.
  public var query: [String: String] { http.query }
  /// The last value of that name in the query, percent-decoded; nil if there is none. Cheaper than `query` for one name.
  public func query(_ name: String) -> String? { http.query(name) }
  /// The header lines, in their order. `headers["content-type"]` finds the last of a name, in any case.
  public var headers: HTTPRequest.Fields { http.headers }
  /// The body; empty if there is none.
  public var body: Bytes { http.body }
  /// Who asks.
  public var peer: Peer { context.peer }
  /// What the pattern's `:name` and `*` stand for in this path.
  public var parameters: Parameters { Parameters(request: self) }
  /// The pattern of the route that was found, with its groups' prefixes; nil where the router itself answers. A name for metrics that does
  /// not grow with what clients send.
  public var pattern: String? { route?.pattern.text }

  /// The values of a pattern's parameters. Each is cut out of the path when it is asked for.
  public struct Parameters: Sendable {
    let request: RouteRequest

    /// The percent-decoded value of `:name`, or, for `"*"`, the rest of the path without its leading `/`. Empty if the pattern has no such parameter.
    public subscript(name: String) -> String {
      guard let place = request.route?.place(of: name) else { return "" }
      return request.http.withPath { path in
        String(decoding: RouteRequest.part(of: path, place.segment, toTheEnd: place.isRest), as: UTF8.self)
      }
    }
  }

  /// The path's segment number `index`, or everything from it on. The pattern matched, so it is there.
  static func part(of path: UnsafeRawBufferPointer, _ index: Int, toTheEnd: Bool) -> Slice<UnsafeRawBufferPointer> {
    var rest = path.dropFirst()
    for _ in 0..<index {
      guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return rest.prefix(0) }
      rest = rest[(slash + 1)...]
    }
    return toTheEnd ? rest : rest.prefix { $0 != UInt8(ascii: "/") }
  }
}
