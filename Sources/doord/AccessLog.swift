// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Dispatch
import Glibc
import Loop
import Synchronization
import Wire

// The log: access lines and what else is worth a line. A loop only copies a record into a bounded buffer under a lock held for that copy;
// a thread of the log's own makes text of it and writes. When the buffer is full the record is dropped and counted: a log that nobody
// reads must not hold up the door.

/// A log on a descriptor. Any thread may add to it.
final class AccessLog: Sendable {
  /// Records and their bytes that may wait for the log's thread: some 8 000 usual lines, over 100 ms at 60 000 requests a second.
  static let maximumRecords = 8192
  static let maximumBytes = 1 << 20
  /// How long the thread waits for company after the first record of a batch, so that a busy loop wakes it 50 times a second and not for
  /// each request.
  private static let batching: useconds_t = 20_000

  private let waiting = Locked(LogBatch())
  private let droppedCount = Atomic<Int>(0)
  private let isEnding = Atomic<Bool>(false)
  private let wakeup = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private let format: LogFormat
  private let writer: LogWriter

  init(format: LogFormat, descriptor: Int32) {
    self.format = format
    writer = LogWriter(descriptor: descriptor)
  }

  /// Lines that were not written, because the buffer was full or the descriptor takes no more.
  var dropped: Int { droppedCount.load(ordering: .relaxed) }

  /// Starts the log's thread. Once.
  func start() {
    startOwnThread("doord-log") { self.run() }
  }

  /// An answered request.
  func add(_ answer: AnswerRecord) {
    let time = now()
    append { $0.append(answer, at: time) }
  }

  /// A sentence for the operator.
  func add(_ message: String) {
    let time = now()
    append { $0.append(message, at: time) }
  }

  /// Writes what waits, for at most `limit`, and ends the thread. What is added later is not written.
  func finish(within limit: DispatchTimeInterval) {
    isEnding.store(true, ordering: .relaxed)
    wakeup.signal()
    _ = ended.wait(timeout: .now() + limit)
  }

  private func append(_ body: (inout LogBatch) -> Void) {
    let wasEmpty = waiting.withLock { batch -> Bool? in
      if batch.records.count >= AccessLog.maximumRecords || batch.text.count >= AccessLog.maximumBytes { return nil }
      let wasEmpty = batch.records.isEmpty
      body(&batch)
      return wasEmpty
    }
    switch wasEmpty {
    case nil: droppedCount.add(1, ordering: .relaxed)
    case true?: wakeup.signal()
    case false?: break
    }
  }

  /// The log's thread. A descriptor that takes nothing holds up this thread only; meanwhile the buffer fills.
  private func run() {
    var batch = LogBatch()
    var lines = LogLines(format: format)
    while true {
      wakeup.wait()
      if !isEnding.load(ordering: .relaxed) { usleep(AccessLog.batching) }
      batch.removeAll()
      waiting.withLock { swap(&$0, &batch) }
      for record in batch.records { lines.append(record, in: batch.text) { droppedCount.add(writer.write($0), ordering: .relaxed) } }
      lines.flush { droppedCount.add(writer.write($0), ordering: .relaxed) }
      if isEnding.load(ordering: .relaxed) && waiting.withLock(\.records.isEmpty) { break }
    }
    ended.signal()
  }
}

/// Records on their way to the log's thread, with the bytes they refer to. No references: adding one costs a copy and nothing else.
struct LogBatch: Sendable {
  var records: [LogRecord] = []
  var text: [UInt8] = []

  /// Longer texts are cut. A line must fit into `LogLines.chunk`, also with every byte escaped, which takes six for one.
  static let maximumText = 512, maximumReason = 128

  mutating func removeAll() {
    records.removeAll(keepingCapacity: true)
    text.removeAll(keepingCapacity: true)
  }

  mutating func append(_ answer: AnswerRecord, at time: timespec) {
    let label = keep(answer.label, LogBatch.maximumText)
    let reason = answer.refusal.map { keep($0.reason.utf8, LogBatch.maximumReason) }
    records.append(
      LogRecord(
        time: time, peer: answer.peer.address, origin: answer.origin, text: label, reason: reason, status: answer.status,
        bytes: answer.bytes, duration: answer.duration))
  }

  mutating func append(_ message: String, at time: timespec) {
    records.append(LogRecord(time: time, text: keep(message.utf8, LogBatch.maximumText)))
  }

  private mutating func keep(_ bytes: some Collection<UInt8>, _ limit: Int) -> Range<Int> {
    let start = text.count
    text.append(contentsOf: bytes.prefix(limit))
    if bytes.count > limit { text.append(contentsOf: "...".utf8) }
    return start..<text.count
  }
}

/// One line before it is text. Ranges are in the batch's bytes.
struct LogRecord: Sendable {
  var time: timespec
  /// nil: a message, which is `text`.
  var peer: PeerAddress?
  var origin: PeerAddress?
  /// The request's label, or the message.
  var text: Range<Int>
  var reason: Range<Int>?
  var status = 0
  var bytes = 0
  var duration = Duration.zero
}

/// Wall-clock time.
func now() -> timespec {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return time
}
