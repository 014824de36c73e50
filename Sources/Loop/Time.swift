// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Moments as the loop counts them. Swift.Duration is 128 bits wide and wants a call for each sum; the hot path adds two integers.

/// A moment: nanoseconds of CLOCK_MONOTONIC. A simulated clock starts where it likes.
package struct Moment: Comparable, Hashable, Sendable {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// Later than every deadline.
  package static let never = Moment(nanoseconds: .max)

  @inline(__always)
  package static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }

  /// `span` nanoseconds later; never overflows.
  @inline(__always)
  package static func + (a: Moment, span: Int64) -> Moment {
    let (sum, overflow) = a.nanoseconds.addingReportingOverflow(span)
    return overflow ? .never : Moment(nanoseconds: sum)
  }

  /// Nanoseconds from `b` to `a`.
  @inline(__always)
  package static func - (a: Moment, b: Moment) -> Int64 { a.nanoseconds &- b.nanoseconds }
}

extension Duration {
  /// Whole nanoseconds, clamped to 0 and about 146 years, so that a sum with a moment stays in range.
  package var inNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    guard seconds < Int64.max / 2_000_000_000 else { return .max / 2 }
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }
}
