// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev

// Memory for the watches of one loop, on its thread: in slabs, which saves a header for each, and reused. A slab is given back with the
// loop: after ten thousand connections at once there is room for the next ten thousand, 96 bytes each.

struct WatchPool {
  private static let slabSize = 64
  private var slabs: [Watch] = []
  private var free: [Watch] = []

  /// Memory for a watch, not initialised.
  mutating func take() -> Watch {
    if let watch = free.popLast() { return watch }
    let slab = Watch.allocate(capacity: Self.slabSize)
    slabs.append(slab)
    for index in (1..<Self.slabSize).reversed() { free.append(slab + index) }
    return slab
  }

  /// Takes a stopped watch back.
  mutating func give(back watch: Watch) { free.append(watch) }

  func deallocate() { for slab in slabs { slab.deallocate() } }
}
