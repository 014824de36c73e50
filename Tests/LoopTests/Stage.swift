// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Wire

@testable import Loop

// One real connection over a kernel and a poller that a test plays by hand: what is sent, what is taken, what time it is.

/// A kernel with one socket, whose peer is the test.
final class PlayedKernel: Kernel, @unchecked Sendable {  // used on the test's thread only
  /// Sent by the peer and not read yet.
  var incoming: [UInt8] = []
  /// The peer has sent its end of stream.
  var ended = false
  /// What receive answers once all is read; -EAGAIN unless told otherwise.
  var receiveError = -Int(EAGAIN)
  /// How much more the socket takes, and the most it takes at once.
  var room = Int.max
  var atOnce = Int.max
  /// Taken by the socket.
  var sent: [UInt8] = []
  /// What SIOCOUTQ would say.
  var queued = 0
  var sendError: Int?
  var closes = 0
  var resets = 0
  var shutdowns = 0

  override func receive(_ descriptor: Int32, into start: UnsafeMutableRawPointer, count: Int) -> Int {
    if incoming.isEmpty { return ended ? 0 : receiveError }
    let taken = min(count, incoming.count)
    incoming.withUnsafeBytes { start.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(start), byteCount: taken) }
    incoming.removeFirst(taken)
    return taken
  }

  override func send(_ descriptor: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
    if let sendError { return sendError }
    let taken = min(room, atOnce, first.count + second.count)
    guard taken > 0 else { return -Int(EAGAIN) }
    sent += first.prefix(taken)
    sent += second.prefix(max(0, taken - first.count))
    room -= taken
    return taken
  }

  override func shutdownWriting(_ descriptor: Int32) { shutdowns += 1 }
  override func close(_ descriptor: Int32) { closes += 1 }
  override func reset(_ descriptor: Int32) { resets += 1 }
  override func unread(_ descriptor: Int32) -> Int { incoming.count }
  override func unsent(_ descriptor: Int32) -> Int { queued }
  override func credentials(_ descriptor: Int32) -> (pid: Int32, uid: UInt32, gid: UInt32)? { nil }

  var text: String { String(decoding: sent, as: UTF8.self) }
}

/// A poller whose clock the test moves, and whose jobs run when the test says so. It is the executor of handlers' tasks, too.
final class PlayedPoller: Poller, TaskExecutor, @unchecked Sendable {  // used on the test's thread only
  private enum Job {
    case task(UnownedJob)
    case closure(() -> Void)
  }

  var clock: Int64 = 0
  private var jobs: [Job] = []
  private(set) var waiters: [ObjectIdentifier: Waiter] = [:]

  override var now: Moment { Moment(nanoseconds: clock) }
  override var executor: any TaskExecutor { self }
  override func submit(_ body: @escaping @Sendable () -> Void) -> Bool {
    jobs.append(.closure(body))
    return true
  }
  override func later(_ body: @escaping () -> Void) { jobs.append(.closure(body)) }
  func enqueue(_ job: consuming ExecutorJob) { jobs.append(.task(UnownedJob(job))) }
  override func interestChanged(_ waiter: Waiter) { note(waiter) }
  override func deadlineChanged(_ waiter: Waiter) { note(waiter) }
  override func forget(_ waiter: Waiter) { stop(waiter) }

  private func note(_ waiter: Waiter) {
    let waits = waiter.reads || waiter.writes || waiter.deadline != .never
    waiters[ObjectIdentifier(waiter)] = waits ? waiter : nil
  }

  /// Runs jobs until there are none.
  func settle() {
    while !jobs.isEmpty {
      switch jobs.removeFirst() {
      case .task(let job): job.runSynchronously(on: asUnownedTaskExecutor())
      case .closure(let body): body()
      }
    }
  }

  /// Moves the clock and tells what is due, in order.
  func pass(_ span: Duration) {
    let end = clock + span.inNanoseconds
    while let next = waiters.values.filter({ $0.deadline <= Moment(nanoseconds: end) }).min(by: { $0.deadline < $1.deadline }) {
      clock = max(clock, next.deadline.nanoseconds)
      set(next, deadline: .never)
      next.deadlineReached()
      settle()
    }
    clock = end
  }
}

/// A station with one connection on it.
final class Stage<Format: WireFormat> {
  let kernel = PlayedKernel()
  let poller = PlayedPoller()
  let station: Station
  let seen = Seen()

  init<Answering: Handler>(_ wire: Format, _ handler: Answering, _ change: (inout Configuration) -> Void = { _ in })
  where Answering.Request == Format.Request, Answering.Answer == Format.Answer {
    var configuration = Configuration()
    configuration.observer = seen
    change(&configuration)
    station = Station(
      poller: poller, kernel: kernel, exchange: Exchange(wire, handler), configuration: configuration,
      admission: Admission(maximum: configuration.maximumConnections, perAddress: configuration.maximumPerAddress, allowed: []),
      budget: Budget(maximum: configuration.maximumBuffered), pool: nil)
  }

  deinit { station.dismantle() }

  /// Accepts a connection whose peer has sent `text` already.
  func accept(_ text: String = "") {
    kernel.incoming += text.utf8
    station.adopt(7, from: PeerAddress(ipv4: 0x7f00_0001, port: 1))
    poller.settle()
    station.endOfTurn()
  }

  /// The peer sends, and the connection is told if it listens.
  func send(_ text: String) {
    kernel.incoming += text.utf8
    turn()
  }

  /// The peer sends its end of stream.
  func end() {
    kernel.ended = true
    turn()
  }

  /// Tells the connection what it waits for and what is there.
  func turn() {
    for waiter in Array(poller.waiters.values) where waiter.descriptor >= 0 {
      let toRead = waiter.reads && (!kernel.incoming.isEmpty || kernel.ended || kernel.receiveError != -Int(EAGAIN))
      let toWrite = waiter.writes && (kernel.room > 0 || kernel.sendError != nil)
      if toRead || toWrite { waiter.ready(toRead: toRead, toWrite: toWrite) }
    }
    poller.settle()
    station.endOfTurn()
  }

  var isOpen: Bool { kernel.closes + kernel.resets == 0 }
  var watcher: Waiter? { poller.waiters.values.first { $0.descriptor >= 0 } }
}

/// What an observer was told.
final class Seen: Observer {
  private let seen = Locked((answers: [AnswerRecord](), ends: [CloseReason]()))

  func answered(_ answer: AnswerRecord) { seen.withLock { $0.answers.append(answer) } }
  func closed(_ peer: Peer, _ reason: CloseReason) { seen.withLock { $0.ends.append(reason) } }

  var answers: [AnswerRecord] { seen.withLock { $0.answers } }
  var ends: [CloseReason] { seen.withLock { $0.ends } }
}

/// A handler made of a closure that says how the answer comes.
struct ReplyHandler<Request: Sendable, Answer: Sendable>: Handler {
  var reply: @Sendable (Request, Context) -> Reply<Answer>
  init(_ reply: @escaping @Sendable (Request, Context) -> Reply<Answer>) { self.reply = reply }
  func respond(to request: Request, in context: Context) -> Reply<Answer> { reply(request, context) }
}

/// Something that handlers wait for until the test lets them go on. Any thread.
final class Valve: Sendable {
  private let state = Locked((isOpen: false, waiting: [CheckedContinuation<Void, Never>](), arrived: 0, cancelled: 0))

  /// Waits until `open`, also when it is cancelled.
  func pass() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOpen = state.withLock { state in
          state.arrived += 1
          if !state.isOpen { state.waiting.append(continuation) }
          return state.isOpen
        }
        if isOpen { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.cancelled += 1 }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  var arrived: Int { state.withLock { $0.arrived } }
  var cancelled: Int { state.withLock { $0.cancelled } }
}
