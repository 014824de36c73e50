// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev
package import Glibc

// A Unix-domain socket's place in the file system: taking it from a server that is gone and never from a live one, and giving it up.
// Runs at start and stop, on a thread that may block.

/// The file of a listening Unix-domain socket of ours.
///
/// Looking and then acting on a path is a race: two servers that both find a stale file would both remove it, the second one the fresh
/// file of the first. So both sides do it with the directory locked (flock(2)), which needs no lock file that stays behind. Where the
/// directory cannot be locked (it cannot be read, its file system knows no locks, or somebody who may read it keeps it locked) it goes
/// without.
final class UnixSocketFile: Sendable {
  /// sockaddr_un's path has 108 bytes, the last a NUL.
  static let maximumPath = 107
  /// How long another server's start may hold the directory, in steps of 10 ms.
  private static let lockAttempts = 200

  private let path: String
  /// Which file it is, nil once it was removed.
  private let identity: Locked<Identity?>

  private struct Identity: Equatable {
    var device: dev_t
    var inode: ino_t
  }

  private init(path: String, identity: Identity?) {
    self.path = path
    self.identity = Locked(identity)
  }

  /// Listens at `path`. The mode is right before anybody can connect: until listen(2) a connection is refused. (umask(2) would need no
  /// second call, but it is the whole process's.)
  static func open(path: String, mode: UInt16) throws(ListenError) -> ListeningGroup {
    guard (1...maximumPath).contains(path.utf8.count), !path.utf8.contains(0) else { throw .pathTooLong(path) }
    let address = BoundAddress.unix(path: path)
    let name = address.description
    let socket = try makeSocket(name)
    let lock = lockDirectory(of: path)
    defer { lock?.close() }
    try removeStaleFile(path, name)
    try succeed("bind", name, withUnixAddress(path) { bind(socket.number, $0, $1) } ?? -1)
    let file = UnixSocketFile(path: path, identity: identify(path)?.identity)
    do throws(ListenError) {
      try succeed("chmod", name, chmod(path, mode_t(mode) & 0o777))
      try succeed("listen", name, listen(socket.number, ListeningSocket.backlog))
    } catch {
      file.removeLocked()
      throw error
    }
    return ListeningGroup(address: address, descriptors: [socket], file: file)
  }

  /// Removes the file if it is still this socket's: somebody may have put another in its place. The socket must still be open, so that
  /// the inode's number is not in use again.
  func remove() {
    guard identity.withLock({ $0 != nil }) else { return }
    let lock = UnixSocketFile.lockDirectory(of: path)
    removeLocked()
    lock?.close()
  }

  private func removeLocked() {
    guard let ours = identity.withLock({ identity in identity.take() }) else { return }
    if UnixSocketFile.identify(path)?.identity == ours { unlink(path) }
  }

  /// The path a socket is bound to, as the kernel has it; an abstract name begins with `@`, a socket without a name has none.
  static func boundPath(_ number: Int32) -> String {
    var address = sockaddr_un()
    var length = socklen_t(MemoryLayout<sockaddr_un>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
    }
    guard result == 0 else { return "" }
    return withUnsafeBytes(of: address.sun_path) { bytes in
      let named = bytes.prefix(max(0, min(Int(length), MemoryLayout<sockaddr_un>.size) - MemoryLayout<sa_family_t>.size))
      guard named.first == 0 else { return String(decoding: named.prefix { $0 != 0 }, as: UTF8.self) }
      return "@" + String(decoding: named.dropFirst(), as: UTF8.self)
    }
  }

  // MARK: - What is at the path

  /// Clears the way: nothing is there, or a socket nobody listens on. Connecting is the only way to know.
  private static func removeStaleFile(_ path: String, _ name: String) throws(ListenError) {
    guard let found = identify(path) else { return }
    guard found.isSocket else { throw .notASocket(path) }
    let probe = try makeSocket(name)
    if withUnixAddress(path, { connect(probe.number, $0, $1) }) == 0 { throw .addressInUse(name) }
    switch errno {
    case ECONNREFUSED: try succeed("unlink", name, unlink(path))
    case ENOENT: return
    // A full queue, or a live socket of another type.
    case EAGAIN, EPROTOTYPE: throw .addressInUse(name)
    case let code: throw .system(call: "connect", address: name, errno: code)
    }
  }

  /// The file itself, not what a symbolic link points to: bind(2) does not follow one either.
  private static func identify(_ path: String) -> (identity: Identity, isSocket: Bool)? {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    return (Identity(device: status.st_dev, inode: status.st_ino), status.st_mode & S_IFMT == S_IFSOCK)
  }

  private static func lockDirectory(of path: String) -> Descriptor? {
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let number = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard number >= 0 else { return nil }
    let lock = Descriptor(owning: number)
    for _ in 0..<lockAttempts {
      if flock(number, LOCK_EX | LOCK_NB) == 0 { return lock }
      guard errno == EWOULDBLOCK || errno == EINTR else { return nil }
      usleep(10_000)
    }
    return nil
  }

  private static func makeSocket(_ name: String) throws(ListenError) -> Descriptor {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    return Descriptor(owning: try succeed("socket", name, socket(AF_UNIX, type, 0)))
  }
}

/// Calls `body` with a path as a Unix-domain socket's address; where `abstract` is true a leading `@` stands for the NUL of Linux's abstract
/// names (unix(7)). nil if it is empty or too long.
package func withUnixAddress<Result>(
  _ path: String, abstract: Bool = false, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result? {
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  let count = path.utf8.count
  guard (1...UnixSocketFile.maximumPath).contains(count) else { return nil }
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  let isAbstract = abstract && path.utf8.first == UInt8(ascii: "@")
  if isAbstract { address.sun_path.0 = 0 }
  // An abstract name ends where the length says, a path at its NUL.
  let length = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path) + count + (isAbstract ? 0 : 1)
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(length)) }
  }
}
