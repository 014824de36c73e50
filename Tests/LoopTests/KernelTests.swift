// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Wire

@testable import Loop

// The real kernel behind the seam, and a listener over a played one.

@Suite struct KernelTests {
  private func pair() throws -> (Descriptor, Descriptor) {
    var pair: [Int32] = [-1, -1]
    try systemCall(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair))
    return (Descriptor(owning: pair[0]), Descriptor(owning: pair[1]))
  }

  @Test func a_send_to_a_peer_that_left_is_an_error_and_no_signal() throws {
    let (near, far) = try pair()
    far.close()
    // This thread does not block SIGPIPE: a signal would end the process.
    var former = sigset_t()
    var pipe = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    pthread_sigmask(SIG_UNBLOCK, &pipe, &former)
    defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
    let kernel = Kernel()
    let bytes: [UInt8] = [1, 2]
    bytes.withUnsafeBytes {
      #expect(kernel.send(near.number, $0, UnsafeRawBufferPointer(start: nil, count: 0)) == -Int(EPIPE))
      #expect(kernel.send(near.number, $0, $0) == -Int(EPIPE))
    }
  }

  @Test func an_end_of_stream_is_no_error_though_errno_is_stale() throws {
    let (near, far) = try pair()
    let kernel = Kernel()
    var byte: UInt8 = 0
    #expect(kernel.receive(near.number, into: &byte, count: 1) == -Int(EAGAIN))
    #expect(errno == EAGAIN)
    far.close()
    #expect(kernel.receive(near.number, into: &byte, count: 1) == 0)
  }

  @Test func two_runs_are_sent_as_one() throws {
    let (near, far) = try pair()
    let kernel = Kernel()
    let (first, second): ([UInt8], [UInt8]) = ([1, 2], [3, 4, 5])
    let sent = first.withUnsafeBytes { a in second.withUnsafeBytes { kernel.send(near.number, a, $0) } }
    #expect(sent == 5)
    var buffer = [UInt8](repeating: 0, count: 8)
    #expect(kernel.receive(far.number, into: &buffer, count: 8) == 5)
    #expect(buffer.prefix(5) == [1, 2, 3, 4, 5])
    #expect(kernel.unread(far.number) == 0)
  }

  @Test func a_closed_descriptor_is_an_error_of_every_call() throws {
    let kernel = Kernel()
    var byte: UInt8 = 0
    #expect(kernel.receive(-1, into: &byte, count: 1) == -Int(EBADF))
    #expect(kernel.unread(-1) == 0 && kernel.unsent(-1) == 0 && kernel.credentials(-1) == nil)
    var address = sockaddr_storage()
    #expect(kernel.accept(-1, from: &address) == -Int(EBADF))
  }

  @Test func the_process_at_the_other_end_of_a_Unix_socket_is_known() throws {
    let (near, _) = try pair()
    let process = try #require(Kernel().credentials(near.number))
    #expect(process.pid == getpid() && process.uid == getuid() && process.gid == getgid())
  }
}

/// A kernel that answers accept from a list.
private final class AcceptingKernel: Kernel, @unchecked Sendable {  // used on the test's thread only
  var answers: [Int] = []
  var accepts = 0
  var closed: [Int32] = []
  var wasReset: [Int32] = []
  var reserves = 0

  override func accept(_ listener: Int32, from address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
    accepts += 1
    return answers.isEmpty ? -Int(EAGAIN) : answers.removeFirst()
  }
  override func receive(_ descriptor: Int32, into start: UnsafeMutableRawPointer, count: Int) -> Int { -Int(EAGAIN) }
  override func close(_ descriptor: Int32) { closed.append(descriptor) }
  override func reset(_ descriptor: Int32) { wasReset.append(descriptor) }
  override func openReserve() -> Int {
    reserves += 1
    return 99
  }
}

@Suite struct ListenerTests {
  private let kernel = AcceptingKernel()
  private let poller = PlayedPoller()
  private let station: Station
  private let listener: Listener

  init() {
    station = Station(
      poller: poller, kernel: kernel, exchange: Exchange(LineWire(), PlainHandler { (line: Line) in line }), configuration: Configuration(),
      admission: Admission(maximum: 1000, perAddress: nil, allowed: []), budget: Budget(maximum: 1000), pool: nil)
    listener = Listener(5, station: station, crew: [station])
    listener.start()
  }

  private func end() {
    station.cut()
    _ = listener.close()
    station.dismantle()
  }

  @Test func a_child_that_died_in_the_queue_does_not_hide_those_behind_it() {
    kernel.answers = [-Int(ECONNABORTED), -Int(EPROTO), -Int(EPERM), -Int(ENETDOWN), 10]
    listener.ready(toRead: true, toWrite: false)
    #expect(station.connections.count == 1 && listener.reads && !listener.isDead)
    end()
  }

  @Test(arguments: [EMFILE, ENFILE, ENOBUFS, ENOMEM])
  func without_descriptors_one_connection_is_turned_away_and_the_listener_rests_and_recovers(code: Int32) {
    kernel.answers = [-Int(code), 10]
    listener.ready(toRead: true, toWrite: false)
    #expect(kernel.closed == [99] && kernel.wasReset == [10] && kernel.reserves == 2)
    #expect(!listener.reads)
    poller.pass(.milliseconds(99))
    #expect(!listener.reads)
    poller.pass(.milliseconds(1))
    #expect(listener.reads)
    kernel.answers = [11]
    listener.ready(toRead: true, toWrite: false)
    #expect(station.connections.count == 1)
    end()
  }

  @Test(arguments: [EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP])
  func a_dead_socket_is_asked_no_more(code: Int32) {
    kernel.answers = [-Int(code)]
    listener.ready(toRead: true, toWrite: false)
    #expect(listener.isDead && !listener.reads && kernel.accepts == 1)
    end()
  }

  @Test func a_turn_accepts_a_batch_and_leaves_the_rest_to_the_next() {
    kernel.answers = Array(10..<410)
    // One for some turns, then each time twice as many, up to the largest.
    for total in Array(1...8) + [10, 14, 22, 38, 70, 134, 198] {
      listener.ready(toRead: true, toWrite: false)
      #expect(station.connections.count == total)
    }
    // At the end, all that is queued.
    #expect(listener.close() == 400 - 198)
    #expect(station.connections.count == 400)
    station.cut()
    station.dismantle()
  }

  @Test func a_turn_that_brings_one_connection_asks_once() {
    // The tenth turn asks for four, and finds two and the end of the queue; so the next is of two, and then of one.
    kernel.answers = Array(10..<22)
    for _ in 0..<10 { listener.ready(toRead: true, toWrite: false) }
    #expect(station.connections.count == 12 && kernel.accepts == 13)
    for (next, accepts) in [(22, 15), (23, 16), (24, 17)] {
      kernel.answers = [next]
      listener.ready(toRead: true, toWrite: false)
      #expect(kernel.accepts == accepts)
    }
    end()
  }
}
