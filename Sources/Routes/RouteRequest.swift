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
      let segment = request.route?.segment(of: name) ?? -1
      if segment < 0 { return "" }
      return request.http.withPath { path in
        String(decoding: RouteRequest.segment(segment, of: path, toTheEnd: name == "*"), as: UTF8.self)
      }
    }
  }

  /// The path's segment number `index`, or everything from it on. The pattern matched, so it is there.
  private static func segment(_ index: Int, of path: UnsafeRawBufferPointer, toTheEnd: Bool) -> UnsafeRawBufferPointer {
    let bytes = path.assumingMemoryBound(to: UInt8.self)
    let slash = UInt8(ascii: "/")
    var left = index
    var start = 1
    while start < bytes.count, left > 0 {
      if bytes[start] == slash { left -= 1 }
      start += 1
    }
    var end = toTheEnd ? bytes.count : start
    while end < bytes.count, bytes[end] != slash { end += 1 }
    return UnsafeRawBufferPointer(rebasing: path[min(start, end)..<end])
  }
}
