// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
package import Glibc

// Every system call of connections and listeners, in one place. A class, so that a test or the simulation can play the kernel: short
// writes, EAGAIN, EMFILE, a reset in the middle. The price is an indirect call beside a system call.
//
// Each call answers the result, or -errno. errno is read here and only after a -1: a read of 0 leaves an old errno standing.
// EINTR is looped here, except at close(2), where Linux has closed the descriptor all the same.

package class Kernel: @unchecked Sendable {  // no state; subclasses are used on one loop, or guard their own
  package init() {}

  package func accept(_ listener: Int32, from address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
    while true {
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let result = address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        accept4(listener, $0, &length, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
      }
      if result >= 0 { return Int(result) }
      let code = errno
      if code != EINTR { return -Int(code) }
    }
  }

  package func receive(_ descriptor: Int32, into start: UnsafeMutableRawPointer, count: Int) -> Int {
    while true {
      let result = recv(descriptor, start, count, 0)
      if result >= 0 { return result }
      let code = errno
      if code != EINTR { return -Int(code) }
    }
  }

  /// Sends the first run and then the second, which may be empty. MSG_NOSIGNAL, because a peer that left must not raise SIGPIPE.
  package func send(_ descriptor: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
    while true {
      let result: Int
      if second.isEmpty {
        result = Glibc.send(descriptor, first.baseAddress, first.count, Int32(MSG_NOSIGNAL))
      } else {
        result = sendBoth(descriptor, first, second)
      }
      if result >= 0 { return result }
      let code = errno
      if code != EINTR { return -Int(code) }
    }
  }

  private func sendBoth(_ descriptor: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
    // sendmsg only reads through these pointers.
    var runs = (
      iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count),
      iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
    )
    return withUnsafeMutablePointer(to: &runs) {
      $0.withMemoryRebound(to: iovec.self, capacity: 2) { runs in
        var message = msghdr()
        message.msg_iov = runs
        message.msg_iovlen = 2
        return sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
      }
    }
  }

  package func shutdownWriting(_ descriptor: Int32) {
    _ = shutdown(descriptor, Int32(SHUT_WR))
  }

  package func close(_ descriptor: Int32) {
    _ = Glibc.close(descriptor)
  }

  /// Closes so that the peer is reset at once and nothing lingers in the kernel (SO_LINGER of 0, socket(7)).
  package func reset(_ descriptor: Int32) {
    var off = linger(l_onoff: 1, l_linger: 0)
    _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, socklen_t(MemoryLayout<linger>.size))
    close(descriptor)
  }

  /// Bytes received and not read (FIONREAD, tcp(7)); 0 where that cannot be told.
  package func unread(_ descriptor: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
  }

  /// Bytes sent and not acknowledged by the peer (SIOCOUTQ, tcp(7)); 0 where that cannot be told.
  package func unsent(_ descriptor: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
  }

  /// The process at the other end of a Unix-domain socket, as it was at connect.
  package func credentials(_ descriptor: Int32) -> (pid: Int32, uid: UInt32, gid: UInt32)? {
    var result = door_ucred()
    var length = socklen_t(MemoryLayout<door_ucred>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &result, &length) == 0 else { return nil }
    return (result.pid, result.uid, result.gid)
  }

  /// A descriptor to be given up when there are no others; -errno if there is none.
  package func openReserve() -> Int {
    let result = open("/dev/null", O_RDONLY | O_CLOEXEC)
    return result >= 0 ? Int(result) : -Int(errno)
  }
}
