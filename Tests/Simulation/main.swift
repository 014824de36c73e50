// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Simulation --seed N --count N [--trace]   runs that many connections, in worlds that begin with that seed
// Simulation --faults [--count N]           plants each fault and runs until it is found, at most that many connections
//
// Exit 0 if every rule held, or every fault was found; 1 if not; 2 for a wrong option. The seed that is printed repeats its world.

import Glibc

private struct Options {
  var seed: UInt64 = 1
  var count = 100_000
  var findsFaults = false
  var fault: Fault?
  var isTraced = false

  init?(_ arguments: some Sequence<String>) {
    var arguments = arguments.makeIterator()
    while let name = arguments.next() {
      switch name {
      case "--seed":
        guard let value = arguments.next().flatMap({ UInt64($0) }) else { return nil }
        seed = value
      case "--count":
        guard let value = arguments.next().flatMap({ Int($0) }), value > 0 else { return nil }
        count = value
      case "--fault":
        guard let value = arguments.next().flatMap({ Fault(rawValue: $0) }) else { return nil }
        fault = value
      case "--faults": findsFaults = true
      case "--trace": isTraced = true
      default: return nil
      }
    }
  }
}

/// What was found, and after how many connections.
private func search(from seed: UInt64, count: Int, fault: Fault?, isTraced: Bool) -> (violation: String?, seed: UInt64, connections: Int) {
  var connections = 0
  var seed = seed
  while true {
    var random = Random(seed: ~seed)
    // Now and then more than a listener accepts in one turn.
    let clients = random.one(in: 30) ? random.within(100...200) : random.within(1...40)
    let violation = World(seed: seed, fault: fault, isTraced: isTraced).run(clients: clients)
    connections += clients
    if violation != nil || connections >= count { return (violation, seed, connections) }
    seed &+= 1
  }
}

private func main() -> Int32 {
  guard let options = Options(CommandLine.arguments.dropFirst()) else {
    print("usage: Simulation [--seed N] [--count N] [--trace] [--faults | --fault NAME]")
    return 2
  }
  guard options.findsFaults else {
    let result = search(from: options.seed, count: options.count, fault: options.fault, isTraced: options.isTraced)
    guard let violation = result.violation else {
      print("\(result.connections) connections from seed \(options.seed): every rule held")
      return 0
    }
    print("\(violation)\nafter \(result.connections) connections; repeat it with: make simulate SEED=\(result.seed) COUNT=1")
    return 1
  }
  var allFound = true
  for fault in Fault.allCases {
    let result = search(from: options.seed, count: options.count, fault: fault, isTraced: false)
    allFound = allFound && result.violation != nil
    print("\(fault.rawValue): \(result.violation.map { "found after \(result.connections) connections: \($0)" } ?? "NOT FOUND")")
  }
  return allFound ? 0 : 1
}

exit(main())
