// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Wire

// Where a path leads: a tree of segments in flat arrays. A lookup allocates nothing, and its cost depends on the path, not on the number of routes.

/// The tree. Children that are literals are found through one hash table for all nodes, keyed by parent and segment.
///
/// Precedence: at each segment a literal goes before a parameter, a parameter before `*`; the first segment that differs decides. Only routes
/// that answer the request's method count, and a choice that leads nowhere is taken back. Nodes on different ways are different, so a
/// lookup visits each node at most once, whatever the path.
struct RouteTree: Sendable {
  /// Absent, for indices of nodes and entries. Node 0 is the root, which is nobody's child, so 0 also marks a free slot.
  private static let none: Int32 = -1

  private struct Node {
    var parent: Int32
    /// The literal's bytes in `text`.
    var start = 0
    var length = 0
    /// The child for any one segment.
    var parameter = RouteTree.none
    /// The first entry of a route that ends here, and of one that ends in `*` here.
    var here = RouteTree.none
    var rest = RouteTree.none
  }

  private struct Slot {
    var hash: UInt32 = 0
    var node: Int32 = 0
  }

  /// A route at a node, in a list with the others of that node. The route itself has the same index in `routes`: a lookup reads entries
  /// only, and touches no reference count on its way.
  private struct Entry {
    let verb: HTTPVerb
    let next: Int32
  }

  private var nodes: ContiguousArray<Node> = [Node(parent: RouteTree.none)]
  private var entries: ContiguousArray<Entry> = []
  /// Every route, in the order of adding.
  private(set) var routes: ContiguousArray<Route> = []
  private var text: ContiguousArray<UInt8> = []
  /// A power of two, at most a quarter taken, so that a chain of collisions is rare and short.
  private var slots = ContiguousArray(repeating: Slot(), count: 16)
  /// Who first named the parameter below a node.
  private var names: [Int32: (name: String, pattern: String)] = [:]

  // MARK: Adding

  /// Adds a route, or says why not.
  mutating func add(_ route: Route) -> RouteProblem? {
    var node: Int32 = 0
    var endsInRest = false
    for segment in route.pattern.segments {
      switch segment {
      case .literal(let bytes): node = literalChild(of: node, bytes)
      case .rest: endsInRest = true
      case .parameter(let name):
        if let first = names[node], first.name != name { return .parameterNames(first.pattern, route.pattern.text) }
        names[node] = names[node] ?? (name, route.pattern.text)
        node = parameterChild(of: node)
      }
    }
    let list = endsInRest ? \Node.rest : \Node.here
    var entry = nodes[Int(node)][keyPath: list]
    while entry >= 0 {
      if routes[Int(entry)].method == route.method { return .duplicate(method: route.method, route.pattern.text) }
      entry = entries[Int(entry)].next
    }
    entries.append(Entry(verb: route.verb, next: nodes[Int(node)][keyPath: list]))
    routes.append(route)
    nodes[Int(node)][keyPath: list] = Int32(entries.count - 1)
    return nil
  }

  private mutating func parameterChild(of parent: Int32) -> Int32 {
    if nodes[Int(parent)].parameter < 0 {
      nodes.append(Node(parent: parent))
      nodes[Int(parent)].parameter = Int32(nodes.count - 1)
    }
    return nodes[Int(parent)].parameter
  }

  private mutating func literalChild(of parent: Int32, _ bytes: [UInt8]) -> Int32 {
    let hash = bytes.reduce(RouteTree.seed(parent), RouteTree.mix)
    let found = bytes.withUnsafeBytes { segment in withLookup(path: segment) { $0.literalChild(of: parent, 0, segment.count, hash) } }
    if found > 0 { return found }
    let node = Int32(nodes.count)
    nodes.append(Node(parent: parent, start: text.count, length: bytes.count))
    text += bytes
    if nodes.count * 4 > slots.count { grow() }
    insert(Slot(hash: hash, node: node))
    return node
  }

  private mutating func grow() {
    let old = slots
    slots = ContiguousArray(repeating: Slot(), count: old.count * 2)
    for slot in old where slot.node > 0 { insert(slot) }
  }

  private mutating func insert(_ slot: Slot) {
    var index = Int(slot.hash) & (slots.count - 1)
    while slots[index].node > 0 { index = (index + 1) & (slots.count - 1) }
    slots[index] = slot
  }

  // FNV-1a, begun anew for each parent. Only a program's own patterns are in the table, so nobody can make them collide from outside.
  @inline(__always)
  private static func seed(_ parent: Int32) -> UInt32 { (2_166_136_261 ^ UInt32(truncatingIfNeeded: parent)) &* 0x9e37_79b1 }
  @inline(__always)
  private static func mix(_ hash: UInt32, _ byte: UInt8) -> UInt32 {
    (hash ^ UInt32(byte)) &* 16_777_619
  }

  // MARK: Looking up

  /// The route that answers `verb` on `path`. A HEAD that no HEAD route answers in its place is answered by the GET there.
  func route(for verb: HTTPVerb, path: UnsafeRawBufferPointer) -> Route? {
    found(path) { lookup, list in
      let entry = lookup.entry(in: list, verb)
      return entry < 0 && verb == .head ? lookup.entry(in: list, .get) : entry
    }
  }

  /// The route that answers a method without a verb of its own.
  func route(forOther method: String, path: UnsafeRawBufferPointer) -> Route? {
    found(path) { lookup, list in lookup.entries(in: list).first { routes[Int($0)].method == method } ?? RouteTree.none }
  }

  /// The methods of all routes that match `path`.
  func methods(path: UnsafeRawBufferPointer) -> Set<String> {
    var methods: Set<String> = []
    _ = found(path) { lookup, list in
      for entry in lookup.entries(in: list) { methods.insert(routes[Int(entry)].method) }
      return RouteTree.none
    }
    return methods
  }

  /// The route of the first entry that `take` takes.
  @inline(__always)
  private func found(_ path: UnsafeRawBufferPointer, _ take: (Lookup, Int32) -> Int32) -> Route? {
    guard path.first == UInt8(ascii: "/") else { return nil }  // the path of "OPTIONS *"
    let found = withLookup(path: path) { lookup in lookup.walk(0, from: 1) { list in take(lookup, list) } }
    return found < 0 ? nil : routes[Int(found)]
  }

  @inline(__always)
  private func withLookup<Result>(path: UnsafeRawBufferPointer, _ body: (Lookup) -> Result) -> Result {
    nodes.withUnsafeBufferPointer { nodes in
      entries.withUnsafeBufferPointer { entries in
        slots.withUnsafeBufferPointer { slots in
          text.withUnsafeBufferPointer { text in
            let path = path.assumingMemoryBound(to: UInt8.self)
            return body(Lookup(nodes: nodes, entries: entries, slots: slots, text: text, path: path))
          }
        }
      }
    }
  }

  /// The arrays as memory, for the time of one lookup.
  private struct Lookup {
    let nodes: UnsafeBufferPointer<Node>
    let entries: UnsafeBufferPointer<Entry>
    let slots: UnsafeBufferPointer<Slot>
    let text: UnsafeBufferPointer<UInt8>
    let path: UnsafeBufferPointer<UInt8>

    /// Offers the lists of entries that match the path's segments from `start` on, the best first, until one is taken.
    /// It calls itself once for each segment of a pattern at most.
    func walk(_ node: Int32, from start: Int, _ take: (Int32) -> Int32) -> Int32 {
      var hash = RouteTree.seed(node)
      var end = start
      while end < path.count, path[end] != UInt8(ascii: "/") {
        hash = RouteTree.mix(hash, path[end])
        end &+= 1
      }
      let literal = literalChild(of: node, start, end, hash)
      if literal > 0 {
        let found = descend(literal, end, take)
        if found >= 0 { return found }
      }
      let here = nodes[Int(node)]
      if here.parameter > 0, end > start {
        let found = descend(here.parameter, end, take)
        if found >= 0 { return found }
      }
      return here.rest < 0 ? RouteTree.none : take(here.rest)
    }

    @inline(__always)
    private func descend(_ node: Int32, _ end: Int, _ take: (Int32) -> Int32) -> Int32 {
      end < path.count ? walk(node, from: end &+ 1, take) : take(nodes[Int(node)].here)
    }

    /// The child of `parent` for the literal segment `start..<end`; 0 if there is none.
    @inline(__always)
    func literalChild(of parent: Int32, _ start: Int, _ end: Int, _ hash: UInt32) -> Int32 {
      let mask = slots.count &- 1
      var index = Int(hash) & mask
      while slots[index].node > 0 {
        if slots[index].hash == hash, isChild(slots[index].node, of: parent, start, end) { return slots[index].node }
        index = (index &+ 1) & mask
      }
      return 0
    }

    @inline(__always)
    private func isChild(_ node: Int32, of parent: Int32, _ start: Int, _ end: Int) -> Bool {
      let node = nodes[Int(node)]
      guard node.parent == parent, node.length == end &- start else { return false }
      var offset = 0
      while offset < node.length, text[node.start &+ offset] == path[start &+ offset] { offset &+= 1 }
      return offset == node.length
    }

    /// The entry for one verb in a node's list.
    @inline(__always)
    func entry(in list: Int32, _ verb: HTTPVerb) -> Int32 {
      var index = list
      while index >= 0, entries[Int(index)].verb != verb { index = entries[Int(index)].next }
      return index
    }

    /// A node's list.
    func entries(in list: Int32) -> some Sequence<Int32> {
      sequence(state: list) { index in
        guard index >= 0 else { return nil }
        defer { index = entries[Int(index)].next }
        return index
      }
    }
  }
}
