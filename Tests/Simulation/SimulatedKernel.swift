// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Wire

@testable import Loop

// The kernel of a simulated world: descriptors, the accept queue, sockets with buffers of limited size, and what they do at close.

final class SimulatedKernel: Kernel, @unchecked Sendable {  // one thread
  enum Slot {
    case free, listener, reserve
    case socket(Client)
  }

  unowned let world: World
  private(set) var slots: [Slot] = [.free, .free, .free]
  /// No descriptor has this number or a greater one.
  var limit = Int.max
  /// Until then the whole system is out of descriptors.
  var exhaustedUntil = Moment(nanoseconds: 0)
  var queue: [Client] = []
  /// The last accept found no means for a connection.
  private var isShort = false
  let listener: Int32

  init(_ world: World) {
    self.world = world
    slots.append(.listener)
    listener = 3
    super.init()
  }

  // MARK: Descriptors

  var openDescriptors: Int {
    slots.reduce(0) { sum, slot in
      if case .free = slot { return sum }
      return sum + 1
    }
  }

  private var hasReserve: Bool {
    slots.contains { slot in
      if case .reserve = slot { return true }
      return false
    }
  }

  /// The lowest that is free, as the kernel does it: a descriptor that was closed is soon another's.
  private func open(_ slot: Slot) -> Int? {
    for index in 3..<slots.count {
      if case .free = slots[index] {
        slots[index] = slot
        return index
      }
    }
    guard slots.count < limit else { return nil }
    slots.append(slot)
    return slots.count - 1
  }

  private func client(_ descriptor: Int32, _ call: StaticString) -> Client? {
    if descriptor >= 0, descriptor < slots.count, case .socket(let client) = slots[Int(descriptor)] { return client }
    world.fail(nil, "\(call) on descriptor \(descriptor), which is not an open socket")
    return nil
  }

  func closeListener() {
    slots[Int(listener)] = .free
    if !queue.isEmpty && !isShort { world.fail(queue[0], "was in the accept queue when the listener was closed") }
    for client in queue { world.rules.neverAccepted(client) }
    queue = []
  }

  func readiness(_ descriptor: Int32) -> (reads: Bool, writes: Bool) {
    guard descriptor >= 0, descriptor < slots.count else { return (false, false) }
    switch slots[Int(descriptor)] {
    case .listener: return (!queue.isEmpty, false)
    case .socket(let client):
      if client.isReset { return (true, true) }
      return (client.sent > client.read || client.sentEnd, client.room > 0)
    case .free, .reserve: return (false, false)
    }
  }

  // MARK: Calls

  override func accept(_ listener: Int32, from address: UnsafeMutablePointer<sockaddr_storage>) -> Int {
    if queue.isEmpty || world.fault == .droppedQueue && world.isStopping { return -Int(EAGAIN) }
    let wasShort = isShort
    isShort = true
    if world.poller.clock < exhaustedUntil && world.random.one(in: 2) { return -Int(ENFILE) }
    switch world.random.within(0...199) {
    case 0:
      isShort = wasShort
      world.rules.neverAccepted(queue.removeFirst())
      return -Int(ECONNABORTED)
    case 1:
      isShort = wasShort
      return -Int(EPROTO)
    case 2: return -Int(ENOBUFS)
    default: break
    }
    let client = queue[0]
    guard let number = open(.socket(client)) else { return -Int(EMFILE) }
    // With the reserve given up it is no better than before.
    isShort = wasShort && !hasReserve
    queue.removeFirst()
    client.descriptor = Int32(number)
    world.rules.accepted(client)
    _ = PeerAddress(ipv4: 0x0a00_0000 | UInt32(client.index), port: 1024).withSocketAddress { memcpy(address, $0, Int($1)) }
    return number
  }

  override func receive(_ descriptor: Int32, into start: UnsafeMutableRawPointer, count: Int) -> Int {
    guard let client = client(descriptor, "recv") else { return -Int(EBADF) }
    actEarly(client)
    if client.isReset {
      client.sawReset = true
      return -Int(ECONNRESET)
    }
    let available = client.sent - client.read
    guard available > 0 else {
      if client.sentEnd { client.readEnd = true }
      return client.sentEnd ? 0 : -Int(EAGAIN)
    }
    let taken = min(count, available)
    let room = UnsafeMutableRawBufferPointer(start: start, count: taken)
    client.stream.withUnsafeBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[client.read..<client.read + taken])) }
    client.read += taken
    world.rules.received(client)
    return taken
  }

  override func send(_ descriptor: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
    guard let client = client(descriptor, "send") else { return -Int(EBADF) }
    client.hadUnread = client.sent > client.read
    actEarly(client)
    if client.isReset {
      client.sawReset = true
      return -Int(EPIPE)
    }
    if client.serverEnded { world.fail(client, "send after the end of stream was sent") }
    let total = first.count + second.count
    // Where nobody is any more, the kernel takes it all the same, and the answer to it is a reset.
    var room = client.isClosed ? total : client.room
    if total > room || total > 4096 && world.random.one(in: 8) { room = min(room, world.random.within(0...total)) }
    let taken = min(total, room)
    world.trace("\(client.index) send of \(first.count) + \(second.count): \(taken)")
    defer { world.rules.offered(client, total, taken) }
    guard taken > 0 else { return -Int(EAGAIN) }
    for _ in 0..<(world.fault == .answerTwice && world.random.one(in: 1000) ? 2 : 1) {
      world.rules.took(client, UnsafeRawBufferPointer(rebasing: first.prefix(taken)))
      world.rules.took(client, UnsafeRawBufferPointer(rebasing: second.prefix(max(0, taken - first.count))))
    }
    if client.isClosed {
      client.isReset = true
    } else {
      client.unsent += taken
      client.transfer()
    }
    world.clientSees(client)
    if world.fault == .stallReset && taken < total && client.isServed {
      world.poller.postpone(descriptor, to: world.poller.clock + world.lifeRules.stall)
    }
    return world.fault == .lostTail ? total : taken
  }

  override func shutdownWriting(_ descriptor: Int32) {
    guard let client = client(descriptor, "shutdown") else { return }
    if client.serverEnded { world.fail(client, "the end of stream was sent twice") }
    world.rules.ended(client)
    client.serverEnded = true
    if world.fault == .skippedLinger {
      client.skippedLinger = true
      if client.sent > client.read { resetClient(client) }
    }
    world.clientSees(client)
  }

  override func close(_ descriptor: Int32) { end(descriptor, isReset: false) }
  override func reset(_ descriptor: Int32) { end(descriptor, isReset: true) }

  private func end(_ descriptor: Int32, isReset: Bool) {
    guard descriptor >= 3, descriptor < slots.count else { return world.fail(nil, "close of descriptor \(descriptor)") }
    switch slots[Int(descriptor)] {
    case .free: world.fail(nil, "descriptor \(descriptor) was closed twice")
    case .listener: world.fail(nil, "the listener was closed")
    case .reserve: slots[Int(descriptor)] = .free
    case .socket(let client):
      slots[Int(descriptor)] = .free
      if world.poller.entry(on: descriptor) != nil { world.fail(client, "closed while its watcher is active") }
      world.rules.closes(client, isReset: isReset)
      client.serverClosed = true
      client.serverEnded = true
      // What the server has not read makes its kernel reset the connection, and forget what it has not sent.
      if isReset { client.wasReset = true } else if client.sent > client.read && !client.isReset { resetClient(client) }
      world.clientSees(client)
      if world.fault == .doubleClose && world.random.one(in: 50) { end(descriptor, isReset: false) }
    }
  }

  /// The server's kernel resets a client that did not ask for it.
  func resetClient(_ client: Client) {
    world.rules.eaten(client)
    client.wasReset = true
    client.unsent = 0
  }

  override func unread(_ descriptor: Int32) -> Int {
    guard let client = client(descriptor, "FIONREAD") else { return 0 }
    return client.sent - client.read
  }

  override func unsent(_ descriptor: Int32) -> Int { client(descriptor, "SIOCOUTQ")?.unsent ?? 0 }

  override func credentials(_ descriptor: Int32) -> (pid: Int32, uid: UInt32, gid: UInt32)? { nil }

  override func openReserve() -> Int { open(.reserve) ?? -Int(EMFILE) }

  /// The other side does not wait for a good moment.
  private func actEarly(_ client: Client) {
    if world.random.one(in: 16) && client.canAct && client.nextStep < client.steps.count && client.nextStep > 0 { world.step(client) }
  }
}

extension Client {
  var room: Int { max(0, sendBuffer + window - unsent - unread) }

  /// The network is quick: what has room at the client's side is there.
  func transfer() {
    let moved = min(unsent, window - unread)
    if moved > 0 {
      unsent -= moved
      unread += moved
    }
  }
}
