// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop
import Wire

// One question of the self-probe: a blocking client with a time limit. On the probe's thread.

struct ProbeClient {
  /// Seconds, for connecting and for each read.
  var timeout = 5

  /// Asks a Unix-domain socket.
  func ask(unix path: String) -> Probe.Answer {
    withSocket(AF_UNIX) { descriptor in
      converse(descriptor, connected: withUnixAddress(path, abstract: true) { connect(descriptor, $0, $1) })
    }
  }

  /// Asks a TCP address. `exempting` is called with the local address before the connection is made, and calls its argument.
  func ask(_ address: PeerAddress, exempting: (PeerAddress, () -> Probe.Answer) -> Probe.Answer) -> Probe.Answer {
    withSocket(address.family == .ipv4 ? AF_INET : AF_INET6) { descriptor in
      guard let local = bindAnyPort(descriptor, address) else { return .unasked }
      return exempting(local) {
        converse(descriptor, connected: address.withSocketAddress { connect(descriptor, $0, $1) })
      }
    }
  }

  private func withSocket(_ family: Int32, _ body: (Int32) -> Probe.Answer) -> Probe.Answer {
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return .unasked }
    defer { close(descriptor) }
    var limit = timeval(tv_sec: timeout, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))  // also connect's
    return body(descriptor)
  }

  /// A local port, before the connection exists. The address is the one that is asked: the door's own, so that it knows the probe by it.
  private func bindAnyPort(_ descriptor: Int32, _ address: PeerAddress) -> PeerAddress? {
    var yes: Int32 = 1  // ports of closed connections serve too: a busy machine has no others
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var local = address
    local.port = 0
    guard local.withSocketAddress({ bind(descriptor, $0, $1) }) == 0 else { return nil }
    return localAddress(descriptor)
  }

  /// Sends the request and judges the first bytes of the answer; then reads to the end, so that neither side has to reset.
  private func converse(_ descriptor: Int32, connected: Int32?) -> Probe.Answer {
    guard connected == 0 else {
      switch connected == nil ? ENOMEM : errno {
      case ECONNREFUSED, ENOENT: return .dead
      case EADDRNOTAVAIL, EADDRINUSE, ENOBUFS, ENOMEM: return .unasked
      default: return .silent
      }
    }
    var request = Array("GET /hello HTTP/1.1\r\nHost: localhost\r\nUser-Agent: doord-probe\r\n\r\n".utf8)
    guard send(descriptor, &request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return .silent }
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1024)
    while answer.count < 1 << 16 {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count <= 0 { break }
      answer += buffer.prefix(count)
    }
    // A 503 is one of the door's own limits: it lives and says so.
    return ["HTTP/1.1 200", "HTTP/1.1 503"].contains { answer.starts(with: $0.utf8) } ? .hit : .silent
  }
}
