// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc

// Chunks of whole lines to a descriptor that others may share: the log's, and what is said without it. On the thread that calls.

/// Writes to a descriptor it does not own.
///
/// The descriptor stays blocking: O_NONBLOCK would belong to the open file description, and with it to every process that shares the
/// terminal or the pipe. Instead poll(2) says when there is room. A pipe that is writable takes PIPE_BUF bytes without waiting, and no
/// call writes more than that; to a socket MSG_DONTWAIT says it for each call. Where that is not enough (another writer was faster, a
/// terminal was stopped), this thread waits and nobody else.
struct LogWriter {
  let descriptor: Int32
  private let isSocket: Bool

  init(descriptor: Int32) {
    self.descriptor = descriptor
    var facts = stat()
    isSocket = fstat(descriptor, &facts) == 0 && facts.st_mode & S_IFMT == S_IFSOCK
  }

  /// Writes `lines`, waiting for room as long as it takes or `milliseconds` each time, and returns how many of them were lost: the reader
  /// is gone or does not read, the disk is full.
  @discardableResult
  func write(_ lines: [UInt8], waiting milliseconds: Int32 = -1) -> Int {
    lines.withUnsafeBytes { lines in
      var done = 0
      while done < lines.count {
        var watch = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        let ready = poll(&watch, 1, milliseconds)
        if ready == 0 || (ready < 0 && errno != EINTR) { break }
        if ready < 0 { continue }
        let rest = UnsafeRawBufferPointer(rebasing: lines[done...].prefix(Int(PIPE_BUF)))
        let sent =
          isSocket
          ? send(descriptor, rest.baseAddress, rest.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
          : Glibc.write(descriptor, rest.baseAddress, rest.count)
        if sent < 0 && errno != EINTR && errno != EAGAIN { break }
        done += max(sent, 0)
      }
      return lines[done...].count { $0 == UInt8(ascii: "\n") }
    }
  }
}
