// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// What comes in: reading, telling whole requests from the bytes so far, and what a client sends that nobody asked for.

private let tryAgain = -11  // -EAGAIN: the kernel's answers are negated errno values

extension Connection {
  func read() {
    switch life.state {
    case .idle, .arriving: readRequest()
    case .handling, .writing: readAhead()
    case .lingering: discard()
    case .closed: break
    }
  }

  // MARK: Requests

  /// Reads and answers until the socket is empty or this connection has had its share of the turn.
  func readRequest() {
    var share = Station.bytesPerTurn
    while share > 0, life.state == .idle || life.state == .arriving {
      guard let (start, room) = space() else { return }
      let count = station.kernel.receive(descriptor, into: start, count: min(room, share))
      guard count > 0 else {
        if count == 0 { perform(life.endOfStream()) } else if count != tryAgain { perform(life.failed()) }
        return
      }
      share -= count
      if life.state == .idle {
        if !life.isFirst { began = station.now }
        life.received(count, at: began, station.rules)
      }
      // A read that left room has emptied the socket; the poller tells if more comes.
      justRead = count < room
      if input != nil { inputCount += count }
      // Counted here down to the last byte but one: a need for one byte means something else to a parser (a head is searched on).
      if let need, need.more > count + 1 {
        self.need?.more -= count
      } else {
        process(start, count)
        goOn()
      }
      if justRead { break }
    }
    justRead = false
  }

  /// Where to read to: the loop's own buffer, while nothing is kept; else behind what is kept. Nil while memory is short.
  private func space() -> (UnsafeMutableRawPointer, Int)? {
    guard let block = input else { return (station.scratch, Station.scratchSize) }
    if inputCount < block.byteCount { return (block.start + inputCount, block.byteCount - inputCount) }
    // Twice as much as has arrived, so that copying stays linear in sum, but not more than the parser says there will be.
    let whole = inputCount + (need?.more ?? 1)
    let wanted = whole <= inputCount + 1 ? max(2 * inputCount, 64) : min(whole, max(2 * inputCount, Budget.free))
    guard let larger = allocate(wanted) else { return nil }
    larger.start.copyMemory(from: block.start, byteCount: inputCount)
    input = larger
    return (larger.start + inputCount, larger.byteCount - inputCount)
  }

  /// Memory for input; over `Budget.free` bytes it is set aside from what all connections share, or waited for.
  private func allocate(_ capacity: Int) -> ByteBlock? {
    if capacity > Budget.free && capacity > charged {
      guard station.budget.take(capacity - charged, for: peer.id) else {
        isStarved = true
        station.starve(self)
        return nil
      }
      charged = capacity
    }
    return ByteBlock.bytes(capacity)
  }

  /// Memory may be there again.
  func feed() {
    guard isStarved else { return }
    isStarved = false
    readRequest()
    settle()
  }

  /// Looks at all that is kept, of which the last `count` bytes, at `start`, are new.
  private func process(_ start: UnsafeMutableRawPointer, _ count: Int) {
    if let block = input {
      advance(UnsafeRawBufferPointer(start: block.start, count: inputCount))
    } else {
      advance(UnsafeRawBufferPointer(start: start, count: count))
    }
  }

  /// Answers the requests in `bytes`, one after another; what is left of them is kept. Their answers leave together.
  private func advance(_ bytes: UnsafeRawBufferPointer) {
    var offset = 0
    var observed = 0
    station.window = bytes
    repeat {
      ticket = station.nextTicket()
      station.consumed = 0
      isAdvancing = true
      let progress = station.exchange.advance(self, UnsafeRawBufferPointer(rebasing: bytes[offset...]))
      isAdvancing = false
      if isClosed { return }
      if case .incomplete = progress {} else { isTold = false }
      offset += station.consumed
      station.window = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      switch progress {
      case .incomplete:
        keep(bytes, from: offset)
        sayContinue()
        return flush(observed: observed)
      case .refused:
        life.answered(refusing: true)
        drop()
        return flush(observed: observed)
      case .answered: life.answered()
      case .later:
        if life.state == .handling {
          keep(bytes, from: offset)
          flush(observed: observed)
          // A client that had sent its last before this handler began may be one that it waits for in vain.
          if life.sawEnd { perform(life.endOfStream()) }
          return
        }
      }
      guard life.goesOn, offset < bytes.count, station.output.pointee.source == nil, station.output.pointee.size < Station.bytesPerTurn
      else { break }
      // The next one's answer goes behind this one's, and both leave together.
      answerBytes = station.output.pointee.size - observed
      observed = station.output.pointee.size
      observeAnswer()
      isTold = true
      requestIsOver()
    } while true
    keep(bytes, from: offset)
    flush(observed: observed)
  }

  /// Keeps what was not consumed, in memory that holds just that.
  private func keep(_ bytes: UnsafeRawBufferPointer, from offset: Int) {
    let left = bytes.count - offset
    if left == 0 || !staysOpen && life.state != .arriving { return drop() }
    if offset == 0 && input != nil { return }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
    // The memory that is known to be needed, if it is not counted; else only what is there, and `space` asks for the rest.
    let whole = left + (need?.more ?? 0)
    let block = ByteBlock.bytes(need != nil && whole <= 4096 ? max(whole, 16) : max(left, 16))
    block.start.copyMemory(from: rest.baseAddress ?? UnsafeRawPointer(block.start), byteCount: left)
    input = block
    inputCount = left
  }

  private func drop() {
    input = nil
    inputCount = 0
  }

  /// The client waits for leave to send its body (RFC 9110 10.1.1); it is given once.
  private func sayContinue() {
    guard need?.wantsContinue == true, !saidContinue, life.state == .arriving, outbox == nil else { return }
    saidContinue = true
    station.exchange.writeContinue(&station.output.pointee)
    let out = station.output.pointee.buffered
    // A few bytes on a connection on which nothing was sent yet: if they do not fit, the client is not worth more effort.
    let sent = station.kernel.send(descriptor, out, UnsafeRawBufferPointer(start: nil, count: 0))
    let count = out.count
    station.output.pointee.removeAll()
    if sent < count && sent != tryAgain { perform(life.failed()) }
  }

  /// The next request is here already, at least in part: kept from before an answer that had to be waited for. A loop and not a call
  /// from where the answer was sent, or a client could choose how deep the stack gets.
  func goOn() {
    while !isClosed, life.state == .arriving, need == nil, let block = input {
      advance(UnsafeRawBufferPointer(start: block.start, count: inputCount))
    }
  }

  // MARK: Used by the exchange, while a request is handed over

  /// The bytes of a body, without a copy where they lie in memory of their own.
  @usableFromInline
  package func body(in range: Range<Int>) -> Bytes {
    let window = station.window
    let range = range.clamped(to: 0..<window.count)
    guard let start = window.baseAddress else { return Bytes() }
    if let block = input { return Bytes(unsafeStart: start + range.lowerBound, count: range.count, owner: block) }
    return Bytes(copying: UnsafeRawBufferPointer(start: start + range.lowerBound, count: range.count))
  }

  @usableFromInline
  package func requestIsWhole(consumed: Int) {
    station.consumed = consumed
    need = nil
    saidContinue = false
    omitsBody = false
    life.requestWhole(over: station.window.count - consumed)
  }

  // MARK: What nobody asked for

  /// While a handler runs or a stream waits: bytes are kept for the next request, up to a limit, and the end of stream is noticed.
  private func readAhead() {
    let keeps = staysOpen
    var share = ConnectionLife.extraLimit
    while share > 0, life.wantsRead {
      let count = station.kernel.receive(descriptor, into: station.scratch, count: share)
      guard count > 0 else {
        if count == 0 { perform(life.endOfStream()) } else if count != tryAgain { perform(life.failed()) }
        return
      }
      let full = count == share
      share -= count
      life.received(count, at: station.now, station.rules)
      if keeps { append(UnsafeRawBufferPointer(start: station.scratch, count: count)) }
      if !full { return }
    }
  }

  private func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    let block = ByteBlock.bytes(inputCount + bytes.count)
    if let old = input { block.start.copyMemory(from: old.start, byteCount: inputCount) }
    (block.start + inputCount).copyMemory(from: start, byteCount: bytes.count)
    input = block
    inputCount += bytes.count
  }

  /// After the answer: reads and forgets, so that the kernel has no reason to reset a client that is still sending.
  func discard() {
    var share = Station.bytesPerTurn
    while share > 0, life.state == .lingering {
      let count = station.kernel.receive(descriptor, into: station.scratch, count: Station.scratchSize)
      guard count > 0 else {
        if count == 0 { perform(life.endOfStream()) } else if count != tryAgain { perform(life.failed()) }
        return
      }
      share -= count
      life.received(count, at: station.now, station.rules)
      if count < Station.scratchSize { return }
    }
  }
}
