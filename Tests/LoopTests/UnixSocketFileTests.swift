// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing

@testable import Loop

/// Calls `body` with a fresh directory, which is removed with what is in it.
private func withDirectory(_ body: @escaping @Sendable (String) throws -> Void) throws {
  var template = Array("/tmp/door-XXXXXX".utf8CString)
  let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer { rmdir(directory) }
  try withPrivateDescriptors { try body(directory) }
}

private func open(_ path: String, mode: UInt16 = 0o600) throws(ListenError) -> ListeningGroup {
  try ListeningSocket.open(.unix(path, mode: mode), loops: 4, deferAccept: true) { _ in }[0]
}

private func status(_ path: String) -> stat? {
  var status = stat()
  return lstat(path, &status) == 0 ? status : nil
}

/// Binds a socket at `path` and leaves its file behind, as a server does that was killed.
private func leaveStaleFile(_ path: String, type: __socket_type = SOCK_STREAM) throws -> Descriptor {
  let old = Descriptor(owning: socket(AF_UNIX, Int32(type.rawValue), 0))
  try systemCall(withUnixAddress(path) { bind(old.number, $0, $1) } ?? -1)
  return old
}

@Suite struct UnixSocketFileTests {
  @Test func a_unix_socket_is_one_descriptor_with_its_mode_and_its_file_goes_with_it() throws {
    try withDirectory { directory in
      for mode in [0o600, 0o666, 0o000, 0o777] as [mode_t] {
        let path = directory + "/s"
        let group = try open(path, mode: UInt16(mode))
        #expect(group.address == .unix(path: path))
        #expect(group.descriptors.count == 1)
        #expect(try #require(status(path)).st_mode == S_IFSOCK | mode)
        let client = try connectClient(to: group.address)
        let accepted = Descriptor(owning: try systemCall(accept(group.descriptors[0].number, nil, nil)))
        group.close()
        #expect(status(path) == nil)
        withExtendedLifetime((client, accepted)) {}
      }
    }
  }

  @Test func a_stale_socket_is_replaced() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      try leaveStaleFile(path).close()
      let group = try open(path)
      _ = try connectClient(to: group.address)
    }
  }

  @Test func a_live_socket_is_left_alone() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      let first = try open(path)
      #expect(throws: ListenError.addressInUse("unix:" + path)) { try open(path) }
      _ = try connectClient(to: first.address)
    }
  }

  @Test func a_live_socket_with_a_full_queue_or_of_another_type_is_left_alone() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      do {
        let full = try leaveStaleFile(path)
        try systemCall(listen(full.number, 0))
        let waiting = try connectClient(to: .unix(path: path))
        #expect(throws: ListenError.addressInUse("unix:" + path)) { try open(path) }
        unlink(path)
        withExtendedLifetime(waiting) {}
      }
      let datagrams = try leaveStaleFile(path, type: SOCK_DGRAM)
      #expect(throws: ListenError.addressInUse("unix:" + path)) { try open(path) }
      unlink(path)
      withExtendedLifetime(datagrams) {}
    }
  }

  @Test func what_is_not_a_socket_is_left_alone() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      close(creat(path, 0o600))
      #expect(throws: ListenError.notASocket(path)) { try open(path) }
      let link = directory + "/link"
      for target in [path, directory, directory + "/nothing"] {
        symlink(target, link)
        #expect(throws: ListenError.notASocket(link)) { try open(link) }
        unlink(link)
      }
      unlink(path)
      mkdir(path, 0o700)
      #expect(throws: ListenError.notASocket(path)) { try open(path) }
      rmdir(path)
    }
  }

  @Test func a_path_over_107_bytes_or_empty_is_refused_with_the_limit() throws {
    try withDirectory { directory in
      let longest = directory + "/" + String(repeating: "s", count: 107 - directory.utf8.count - 1)
      let group = try open(longest)
      _ = try connectClient(to: group.address)
      group.close()
      for path in [longest + "s", "", directory + "/s\0"] {
        #expect(throws: ListenError.pathTooLong(path)) { try open(path) }
      }
      #expect(ListenError.pathTooLong(longest + "s").description.contains("1 to 107 bytes, this one has 108"))
    }
  }

  @Test func a_directory_that_is_missing_is_the_systems_error() throws {
    try withDirectory { directory in
      let path = directory + "/no/s"
      #expect(throws: ListenError.system(call: "bind", address: "unix:" + path, errno: ENOENT)) { try open(path) }
    }
  }

  @Test func a_directory_that_somebody_keeps_locked_delays_and_does_not_hinder() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      try leaveStaleFile(path).close()
      let stranger = Descriptor(owning: try systemCall(Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)))
      try systemCall(flock(stranger.number, LOCK_EX))
      let group = try open(path)
      _ = try connectClient(to: group.address)
      group.close()
      #expect(status(path) == nil)
      let again = ContinuousClock().measure { group.withdraw() }
      #expect(again < .seconds(1))
      withExtendedLifetime(stranger) {}
    }
  }

  @Test func another_servers_file_at_the_path_is_not_removed() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      let first = try open(path)
      unlink(path)
      let second = try open(path)
      first.close()
      _ = try connectClient(to: second.address)
    }
  }

  @Test func withdrawing_keeps_who_waits_in_the_queue() throws {
    try withDirectory { directory in
      let group = try open(directory + "/s")
      let client = try connectClient(to: group.address)
      group.withdraw()
      #expect(throws: SystemError(code: ENOENT)) { try connectClient(to: group.address) }
      let accepted = Descriptor(owning: try systemCall(accept(group.descriptors[0].number, nil, nil)))
      withExtendedLifetime((client, accepted)) {}
    }
  }

  @Test func of_many_servers_that_find_a_stale_file_exactly_one_wins() throws {
    try withDirectory { directory in
      let path = directory + "/s"
      for _ in 0..<50 {
        try leaveStaleFile(path).close()
        let winners = Locked<[ListeningGroup]>([])
        let refusals = Locked(0)
        let threads = (0..<4).map { _ in
          startThread {
            do throws(ListenError) {
              let group = try open(path)
              winners.withLock { $0.append(group) }
            } catch {
              refusals.withLock { if case .addressInUse = error { $0 += 1 } }
            }
          }
        }
        for thread in threads { pthread_join(thread, nil) }
        let won = winners.withLock { winners in
          defer { winners = [] }
          return winners
        }
        #expect(won.count == 1 && refusals.withLock { $0 } == 3)
        _ = try connectClient(to: .unix(path: path))
      }
    }
  }
}
