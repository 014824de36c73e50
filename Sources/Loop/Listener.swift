// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
internal import Glibc
internal import Wire

// Accepts connections from one listening socket. On its loop's thread.
//
// What accept(2) may say, and what it means here:
//   a descriptor                          a connection
//   EAGAIN                                the queue is empty; wait
//   EMFILE ENFILE ENOBUFS ENOMEM          no means for a connection: turn one away with the reserve descriptor, pause, go on
//   ECONNABORTED EPROTO EPERM ENETDOWN …  the child's trouble, not the listener's; go on
//   EBADF EINVAL ENOTSOCK EOPNOTSUPP      the socket is dead; say so and wait for `reopen`
// Nothing that a peer does closes a listener.

package final class Listener: Waiter {
  /// The most that is accepted in one turn; then the connections have theirs.
  static let largestBatch = 64
  /// Full batches in a row, after which each doubles the next.
  static let patience = 8
  /// How long a listener rests that has no descriptors: those who end meanwhile give theirs back.
  static let pause: Int64 = 100_000_000

  private let station: Station
  /// A reuse-port socket is one of several and keeps what it accepts; a Unix-domain or inherited socket is alone and hands out in turn.
  private let crew: [Station]
  /// How many are accepted in the next turn. Asking until EAGAIN costs a call too many in each turn that brings one connection, as most do,
  /// and nothing is lost by leaving the rest: the poller tells of it again in the next turn. So the batch follows what comes: after one
  /// that met EAGAIN it is what there was, and it doubles when that has been too little for some turns.
  @exclusivity(unchecked) private var batch = 1
  /// Full batches in a row.
  @exclusivity(unchecked) private var full = 0
  @exclusivity(unchecked) private var turn = 0
  @exclusivity(unchecked) private var reserve: Int32
  @exclusivity(unchecked) private var isExhausted = false
  package private(set) var isDead = false
  @exclusivity(unchecked) private var address = sockaddr_storage()

  /// - Parameters:
  ///   - descriptor: Listening and non-blocking; whoever opened it closes it, after `close`.
  ///   - crew: Who gets the connections; just `station`, or all of a server's.
  package init(_ descriptor: Int32, station: Station, crew: [Station]) {
    self.station = station
    self.crew = crew
    reserve = Int32(max(-1, station.kernel.openReserve()))
    super.init()
    self.descriptor = descriptor
  }

  package func start() { station.poller.set(self, reading: true, writing: false) }

  package override func ready(toRead: Bool, toWrite: Bool) {
    let accepted = accept(atMost: batch)
    if accepted < batch {
      batch = max(1, accepted)
      full = 0
    } else {
      full = min(full + 1, Self.patience)
      if full == Self.patience { batch = min(batch * 2, Self.largestBatch) }
    }
  }

  package override func deadlineReached() {
    guard descriptor >= 0, !isDead else { return }
    if reserve < 0 { reserve = Int32(max(-1, station.kernel.openReserve())) }
    station.poller.set(self, reading: true, writing: false)
  }

  /// How many were accepted.
  private func accept(atMost limit: Int) -> Int {
    var accepted = 0
    for _ in 0..<Self.largestBatch {
      if accepted == limit { break }
      let result = station.kernel.accept(descriptor, from: &address)
      if result >= 0 {
        accepted += 1
        hand(Int32(result))
        continue
      }
      switch Int32(-result) {
      case EAGAIN:
        isExhausted = false  // and not at a success: while the queue is longer than what is free, it is the same spell
        return accepted
      case EMFILE, ENFILE, ENOBUFS, ENOMEM:
        exhausted(Int32(-result))
        return accepted
      case EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP:
        died(Int32(-result))
        return accepted
      default: continue
      }
    }
    return accepted
  }

  private func hand(_ descriptor: Int32) {
    let from = withUnsafePointer(to: &address) { PeerAddress(socketAddress: UnsafeRawPointer($0)) }
    guard crew.count > 1 else { return station.adopt(descriptor, from: from) }
    turn = (turn + 1) % crew.count
    let next = crew[turn]
    if next === station { return station.adopt(descriptor, from: from) }
    if !next.poller.submit({ next.adopt(descriptor, from: from) }) { station.kernel.close(descriptor) }
  }

  /// Without a descriptor a connection can be neither served nor refused, and it would stay in the queue and wake the loop for ever. So
  /// the reserve is given up for a moment, to take the connection and close it.
  private func exhausted(_ code: Int32) {
    if !isExhausted {
      isExhausted = true
      station.observer.notice("accept: \(errorText(code)); connections are turned away until descriptors are free")
    }
    if reserve >= 0 {
      station.kernel.close(reserve)
      reserve = -1
      let result = station.kernel.accept(descriptor, from: &address)
      if result >= 0 {
        station.kernel.reset(Int32(result))
        let from = withUnsafePointer(to: &address) { PeerAddress(socketAddress: UnsafeRawPointer($0)) }
        station.observer.turnedAway(from, .descriptors)
      }
      reserve = Int32(max(-1, station.kernel.openReserve()))
    }
    station.poller.set(self, reading: false, writing: false)
    station.poller.set(self, deadline: station.poller.now + Self.pause)
  }

  private func died(_ code: Int32) {
    isDead = true
    station.poller.stop(self)
    station.observer.notice("accept: \(errorText(code)); this listener is dead")
  }

  /// Accepts what the kernel has queued, and then no more: a queue that is closed with its socket is reset, connection by connection.
  /// Says how many those were. The descriptor may be closed afterwards.
  package func close() -> Int {
    guard descriptor >= 0 else { return 0 }
    var accepted = 0
    isExhausted = false
    while !isDead {
      let count = accept(atMost: Self.largestBatch)
      accepted += count
      if count == 0 || isExhausted { break }
    }
    station.poller.forget(self)
    descriptor = -1
    if reserve >= 0 { station.kernel.close(reserve) }
    reserve = -1
    return accepted
  }
}
