// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import Wire

// What goes out. The answer is sent at once; only what the kernel does not take waits, with a write watcher.

private let tryAgain = -11  // -EAGAIN: the kernel's answers are negated errno values

extension Connection {
  /// Above this many bytes the kernel may still hold so much of an answer at close that it is worth asking (SIOCOUTQ).
  private static let askAbove = 64 << 10

  /// Sends what was written to the loop's output, which is empty afterwards. Observers have been told of its first `observed` bytes.
  func flush(observed: Int = 0) {
    if station.output.pointee.isEmpty && outbox == nil { return allSent() }
    let total = station.output.pointee.size
    answerBytes = total - observed
    if outbox != nil {
      outbox?.take(&station.output.pointee, after: 0)
      return sendRest()
    }
    let sent = send(station.output)
    guard sent >= 0 || sent == tryAgain else {
      let source = station.output.pointee.source
      station.output.pointee.removeAll()
      perform(life.failed())
      source?.cancel()
      return
    }
    sentBytes += max(0, sent)
    if sent == total && station.output.pointee.source == nil {
      station.output.pointee.removeAll()
      return allSent()
    }
    let rest = Outbox()
    rest.take(&station.output.pointee, after: max(0, sent))
    outbox = rest
    if station.isStopping { rest.source?.finish() }
    justRead = false
    // A socket that took a part is full; one that took everything is asked for a stream's first bytes.
    if sent < total { blocked(took: max(0, sent)) } else { pull() }
  }

  private func send(_ output: UnsafeMutablePointer<Output>) -> Int {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    // Nearly always; lending the tail counts references.
    if output.pointee.tail.count == 0 { return station.kernel.send(descriptor, output.pointee.buffered, nothing) }
    return output.pointee.tail.withUnsafeBytes { station.kernel.send(descriptor, output.pointee.buffered, $0) }
  }

  /// Sends what is kept, as far as there is room and this connection has had its share of the turn.
  func sendRest() {
    justRead = false
    var share = Station.bytesPerTurn
    while outbox?.hasBytes == true {
      guard share > 0 else { return blocked(took: 0) }
      let sent = outbox?.send { station.kernel.send(descriptor, $0, $1) } ?? 0
      guard sent >= 0 || sent == tryAgain else { return perform(life.failed()) }
      guard sent > 0 else { return blocked(took: 0) }
      share -= sent
      sentBytes += sent
      blocked(took: sent)
    }
    if outbox?.source == nil {
      outbox = nil
      if life.state == .handling { perform(life.caughtUp()) } else { allSent() }
    } else {
      pull()
    }
  }

  private func blocked(took count: Int) {
    let begins = life.wouldBlock(took: count, at: station.now, station.rules)
    if begins { outbox?.takenBefore = takenByClient }
  }

  /// What the client has taken of what the kernel was given since all was sent last.
  private var takenByClient: Int { sentBytes - station.kernel.unsent(descriptor) }

  /// The deadline passed while an answer was sent: a client that takes its time with a full buffer is given more of it.
  func takenSinceDeadlineWasSet() -> Int {
    guard life.state == .writing, let outbox else { return 0 }
    let taken = takenByClient
    defer { outbox.takenBefore = taken }
    return taken - outbox.takenBefore
  }

  /// Asks the stream for more, as long as the socket takes it.
  func pull() {
    let before = sentBytes
    while !isClosed, let source = outbox?.source, outbox?.hasBytes == false {
      guard sentBytes - before < Station.bytesPerTurn else { return blocked(took: sentBytes - before) }
      let state = source.next(into: &station.output.pointee)
      if state == .end { _ = outbox?.dropSource() }
      let written = station.output.pointee.size
      answerBytes += written
      outbox?.take(&station.output.pointee, after: 0)
      while outbox?.hasBytes == true {
        let sent = outbox?.send { station.kernel.send(descriptor, $0, $1) } ?? 0
        guard sent >= 0 || sent == tryAgain else { return perform(life.failed()) }
        guard sent > 0 else { return blocked(took: sentBytes - before) }
        sentBytes += sent
      }
      if state == .end {
        outbox = nil
        return allSent()
      }
      if state == .wait { return perform(life.sourcePaused()) }
      // More, and none of it here: it is asked again in the next turn, and the others have theirs before.
      if written == 0 { return blocked(took: 0) }
    }
  }

  /// Everything is with the kernel: the answer is given, and the connection closes, lingers or goes on.
  private func allSent() {
    guard life.state == .writing else { return }
    if !isTold { observeAnswer() }
    isTold = false
    let action = life.drained(unsettled: isUnsettled, at: station.now, station.rules)
    sentBytes = 0
    if case .next = action {
      requestIsOver()
      began = station.now
    } else if life.state == .idle {
      requestIsOver()
    } else {
      perform(action)
    }
  }

  /// Whether a close now could cost the client its answer: it has sent what is unread (the kernel then resets it), or a large part of
  /// the answer is still with this kernel, where any byte from the client would discard it.
  private var isUnsettled: Bool {
    if staysOpen && !station.isStopping { return false }
    if !justRead && station.kernel.unread(descriptor) > 0 { return true }
    return sentBytes > Self.askAbove && station.kernel.unsent(descriptor) > 0
  }
}
