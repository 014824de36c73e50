// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The part of the HTTP parser that runs each time bytes arrive: where the head ends, and whether a byte in it is already a fault. It
// only scans bytes, so a head that trickles in byte by byte costs as much as one that comes whole.

/// How far a head has been looked at.
struct HeadScan {
  /// Offset of the first byte behind the head; 0 while its end is not in.
  var end = 0
  /// Bytes that need not be looked at again.
  var scanned = 0
  /// Where the request line begins: 2 behind an empty line, else 0.
  var start = 0
  /// Offset of the first line end that was seen; it is the request line's unless the scan began behind that.
  var lineEnd = 0
  /// What the request line says; only known to a scan that has seen it.
  var line = RequestLine()
  var hasLine = false
  /// Header lines seen.
  var fields = 0

  /// Judges steps 1 to 4 in the order in which the bytes came.
  /// - Parameters:
  ///   - count: Bytes there are, at least 1.
  ///   - from: Where to begin; anything but an earlier `scanned` of the same bytes only wastes the call.
  ///   - limit: Largest offset at which the CRLFCRLF may begin.
  mutating func read(_ bytes: UnsafeRawPointer, count: Int, from: Int, limit: Int) throws(Refusal) {
    // 1. The first byte, behind at most one empty line (RFC 9112 2.2).
    if bytes[0] == .carriageReturn {
      guard count > 1 else { return }
      guard bytes[1] == .lineFeed else { throw .carriageReturnAlone }
      guard count > 2 else { return }
      start = 2
    }
    guard bytes[start].isToken else { throw .firstByte }

    // 2. and 3. What lies behind `limit` is looked at only where it may still be part of the head's end.
    let stop = min(count, limit &+ 1)
    var at = from > start && from <= stop ? from : start
    let resumed = at
    while true {
      at = bytes.firstControl(from: at, to: stop)
      guard at < stop else { break }
      let byte = bytes[at]
      if byte == .carriageReturn {
        guard at &+ 1 < stop else { break }
        guard bytes[at &+ 1] == .lineFeed else { throw .carriageReturnAlone }
        if at > start && bytes[at &- 1] == .lineFeed {
          end = at &+ 2
          return
        }
        try lineEnded(bytes, at, resumed: resumed)
        at &+= 2
      } else if byte == .tab {
        at &+= 1
      } else {
        throw byte == .lineFeed ? .lineFeedAlone : .controlByte
      }
    }
    scanned = at
    if count > limit { try judgeSize(bytes, count: count, limit: limit) }
  }

  /// A line ended with the CRLF at `at`. The first one is the request line. Behind a resumed scan only a look back can tell, and each
  /// line is looked back over at most once.
  @inline(__always)
  private mutating func lineEnded(_ bytes: UnsafeRawPointer, _ at: Int, resumed: Int) throws(Refusal) {
    if lineEnd > 0 {
      fields &+= 1
      return
    }
    lineEnd = at
    if resumed > start && bytes.hasLineFeed(from: start, before: resumed) { return }
    try line.read(bytes, from: start, to: at)
    hasLine = true
  }

  /// 4. There are more than `limit` bytes and the head's end was not among them: it may still be, if it began in time and only its last
  /// bytes are missing. They are judged one by one, so that the outcome does not depend on how the bytes were cut.
  @inline(never)
  private mutating func judgeSize(_ bytes: UnsafeRawPointer, count: Int, limit: Int) throws(Refusal) {
    var seen = limit + 1
    while true {
      let matched = bytes.headEndMatched(before: seen, from: start)
      guard matched > 0, seen - matched <= limit else { throw tooLong(bytes, limit: limit) }
      guard seen < count else { return }
      let byte = bytes[seen]
      seen += 1
      switch matched {
      case 1:
        guard byte == .lineFeed else { throw .carriageReturnAlone }
        try lineEnded(bytes, seen - 2, resumed: scanned)
      case 2:
        if byte == .lineFeed { throw .lineFeedAlone }
        if (byte < 0x20 && byte != .tab && byte != .carriageReturn) || byte == 0x7F { throw .controlByte }
      default:
        guard byte == .lineFeed else { throw .carriageReturnAlone }
        end = seen
        return
      }
    }
  }

  /// RFC 9112 3 asks for 414 where it is the target that does not fit.
  private func tooLong(_ bytes: UnsafeRawPointer, limit: Int) -> Refusal {
    let seen = limit + 1
    let space = bytes.first(.space, from: start, to: seen)
    let isInTarget =
      space < limit && bytes.first(.space, from: space + 1, to: seen) == seen && bytes.first(.carriageReturn, from: start, to: seen) == seen
    return isInTarget ? .requestLineTooLong(limit) : .headTooLong(limit)
  }
}

extension UnsafeRawPointer {
  /// Whether a LF lies between `start` and `end`, searched from the end: near it where there is one.
  fileprivate func hasLineFeed(from start: Int, before end: Int) -> Bool {
    var at = end
    while at > start {
      at &-= 1
      if self[at] == .lineFeed { return true }
    }
    return false
  }

  /// How many of the bytes before `end` are a beginning of CRLFCRLF, 0 to 3, not counting what lies before or at `start`.
  fileprivate func headEndMatched(before end: Int, from start: Int) -> Int {
    var matched = 3
    while matched > 0 {
      let begin = end - matched
      if begin > start && self[begin] == .carriageReturn && (matched < 2 || self[begin + 1] == .lineFeed)
        && (matched < 3 || self[begin + 2] == .carriageReturn)
      {
        return matched
      }
      matched -= 1
    }
    return 0
  }
}
