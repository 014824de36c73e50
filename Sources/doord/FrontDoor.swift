// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Wire

// What every request passes before the router: whether its Host is ours, and whom it comes from where a proxy asks. A door without
// these rules pays two tests of a nil.

/// Judges Host and X-Forwarded-For, then has `inner` answer. On the loops' threads.
struct FrontDoor<Inner: Handler>: Handler where Inner.Request == HTTPRequest, Inner.Answer == HTTPAnswer {
  let inner: Inner
  /// nil: every name is ours.
  let names: Names?
  /// nil: no proxy is trusted.
  let forwarded: Forwarded?
  /// Clients that are served, where a proxy asks for them; none: all.
  let allowed: [Network]
  let mark: ProbeMark

  func validate() throws { try inner.validate() }

  func respond(to request: HTTPRequest, in context: consuming Context) -> Reply<HTTPAnswer> {
    let address = context.peer.address
    if let names, address.family != .unix, !accepts(request, names), !mark.covers(context.peer) { return .failed(Refusal.foreignName) }
    if let forwarded, forwarded.trusts(address), let refusal = judge(request, context, forwarded) { return .failed(refusal) }
    return inner.respond(to: request, in: context)
  }

  private func accepts(_ request: HTTPRequest, _ names: Names) -> Bool {
    // An HTTP/1.0 request may have none.
    request.withHost { names.accepts($0) } ?? true
  }

  /// A proxy's request: the client is put into the log, and judged as the gate judges a peer.
  private func judge(_ request: HTTPRequest, _ context: Context, _ forwarded: Forwarded) -> Refusal? {
    let lines = request.headers.filter { $0.name == "x-forwarded-for" }.map { $0.value }
    var client = context.peer.address
    switch forwarded.client(lines) {
    case .peer: break
    case .unreadable: return allowed.isEmpty ? nil : .unreadableOrigin
    case .address(let address):
      client = address
      context.setOrigin(address)
    }
    let isLetIn = allowed.isEmpty || allowed.contains { $0.contains(client) } || mark.covers(context.peer)
    return isLetIn ? nil : .foreignOrigin
  }
}

extension Refusal {
  static let foreignName = Refusal(421, "this door does not answer to that Host name; the flag --name NAME makes it do so")
  static let foreignOrigin = Refusal(403, "this door does not serve the address this request comes from")
  static let unreadableOrigin = Refusal(403, "X-Forwarded-For does not say where this request comes from")
}
