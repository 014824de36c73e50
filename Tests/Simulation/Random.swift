// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// All chance of a simulated world comes from here, so that its seed repeats it.

/// SplitMix64: small, fast, and every seed is a good one.
struct Random {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
    return mixed ^ mixed >> 31
  }

  /// A number of `range`, each as likely as another.
  mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(truncatingIfNeeded: next() % UInt64(range.count))
  }

  mutating func one(in count: Int) -> Bool { next() % UInt64(count) == 0 }

  /// An index of `weights`, as likely as its weight.
  mutating func index(of weights: [Int]) -> Int {
    var rest = within(0...weights.reduce(0, +) - 1)
    for (index, weight) in weights.enumerated() {
      rest -= weight
      if rest < 0 { return index }
    }
    return 0
  }

  /// From nothing to 70 seconds, in nanoseconds; most often short.
  mutating func delay() -> Int64 {
    switch index(of: [40, 30, 20, 7, 3]) {
    case 0: 0
    case 1: Int64(within(1...2_000_000))
    case 2: Int64(within(1...400_000_000))
    case 3: Int64(within(1...8_000_000_000))
    default: Int64(within(1...70_000_000_000))
    }
  }

  /// From `least` to 400 KiB; most often short.
  mutating func size(_ least: Int) -> Int {
    switch index(of: [700, 200, 80, 20]) {
    case 0: within(least...200)
    case 1: within(least...20_000)
    case 2: within(least...100_000)
    default: within(least...400_000)
    }
  }
}
