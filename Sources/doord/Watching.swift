// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop
import Synchronization
import Wire

// What doord sees of its server: events become counts and log lines.

/// The server's observer. On the loops' threads. A class: the server copies what it calls, and a reference is the cheapest to copy.
final class Watching: Observer {
  private let counters: Counters
  private let log: AccessLog?
  private let mark: ProbeMark

  /// - Parameter log: nil: nothing is logged.
  init(counters: Counters, log: AccessLog?, mark: ProbeMark) {
    self.counters = counters
    self.log = log
    self.mark = mark
  }

  func accepted(_ peer: Peer) { counters.add(.accepted) }

  func answered(_ answer: AnswerRecord) {
    counters.add(status: answer.status, bytes: answer.bytes, refusal: answer.refusal)
    if let log, !mark.covers(answer.peer) { log.add(answer) }
  }

  func closed(_ peer: Peer, _ reason: CloseReason) { counters.add(reason) }

  func turnedAway(_ address: PeerAddress, _ reason: TurnAwayReason) { counters.add(reason) }

  func handlerFailed(_ peer: Peer, _ error: any Error) {
    counters.add(.handlerFailures)
    log?.add("a handler failed for \(peer.address): \(error)")
  }

  func turnWasLong(loop: Int, _ duration: Duration) {
    counters.add(.longTurns)
    log?.add("a turn of loop \(loop) took \(duration.milliseconds) ms: something in it blocks")
  }

  func notice(_ text: String) {
    counters.add(.notices)
    log?.add(text)
  }
}

/// How the door knows its own probe: by its local address while it asks. Its requests are not worth a line every 20 seconds.
final class ProbeMark: Sendable {
  /// Looked at first: it says no without the lock.
  private let port = Atomic<UInt16>(0)
  private let address = Locked(PeerAddress.unknown)
  private let process = getpid()

  /// Marks a local address; `.unknown` ends that.
  func set(_ address: PeerAddress) {
    self.address.withLock { $0 = address }
    port.store(address.port, ordering: .releasing)
  }

  /// Whether this peer is the probe. On a Unix-domain socket, where there is no address, it is this process itself.
  func covers(_ peer: Peer) -> Bool {
    if peer.address.family == .unix { return peer.credentials?.pid == process }
    return peer.address.port == port.load(ordering: .acquiring) && peer.address.port != 0 && peer.address == address.withLock { $0 }
  }
}
