// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Refusals by name, so that a handler reads `throw Refusal.notFound("there is no such lamp")`.

public import Wire

extension Refusal {
  /// 400: the request does not make sense (RFC 9110 15.5.1).
  public static func badRequest(_ reason: String) -> Refusal { Refusal(400, reason) }
  /// 401: who are you? (RFC 9110 15.5.2, which also wants a `WWW-Authenticate` field; middleware can add it.)
  public static func unauthorized(_ reason: String) -> Refusal { Refusal(401, reason) }
  /// 403: not for you (RFC 9110 15.5.4).
  public static func forbidden(_ reason: String) -> Refusal { Refusal(403, reason) }
  /// 404: no such thing (RFC 9110 15.5.5).
  public static func notFound(_ reason: String) -> Refusal { Refusal(404, reason) }
  /// 409: not in the state it is in (RFC 9110 15.5.10).
  public static func conflict(_ reason: String) -> Refusal { Refusal(409, reason) }
  /// 422: understood, but its content cannot be used (RFC 9110 15.5.21).
  public static func unprocessable(_ reason: String) -> Refusal { Refusal(422, reason) }
  /// 503: not now; `retryAfter` in seconds (RFC 9110 15.6.4).
  public static func unavailable(_ reason: String, retryAfter: Int? = nil) -> Refusal { Refusal(503, reason, retryAfter: retryAfter) }
}
