// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import Glibc
import Wire

// What a server says whose user gave it no observer: failures must not disappear. Any loop's thread.

/// Writes one line for each failed handler, long turn and notice, and sees nothing else.
///
/// A line is dropped rather than waited for: the descriptor is asked first whether it takes PIPE_BUF bytes (pipe(7)), and no line is
/// longer. One whose reader has gone is left alone, since writing would raise SIGPIPE.
final class StandardErrorObserver: Observer {
  private let descriptor: Int32

  init(_ descriptor: Int32 = STDERR_FILENO) { self.descriptor = descriptor }

  func handlerFailed(_ peer: Peer, _ error: any Error) { say("a handler failed for \(peer.address): \(error)") }
  func turnWasLong(loop: Int, _ duration: Duration) {
    say("a turn of loop \(loop) took \(duration.inNanoseconds / 1_000_000) ms: something in it blocks")
  }
  func notice(_ text: String) { say(text) }

  private func say(_ text: String) {
    // An error may quote what a peer sent, which must not make a line of its own.
    var line = Array(text.unicodeScalars.map { $0.value < 0x20 || $0.value > 0x7e ? $0.escaped(asASCII: true) : String($0) }.joined().utf8)
    line = Array("door: ".utf8) + line.prefix(Int(PIPE_BUF) - 7) + [UInt8(ascii: "\n")]
    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&state, 1, 0) == 1, state.revents == Int16(POLLOUT) else { return }
    _ = write(descriptor, line, line.count)
  }
}

extension Configuration {
  /// Who is told: the user's observer, or who stands in for it.
  var watching: any Observer { observer ?? fallback }
}
