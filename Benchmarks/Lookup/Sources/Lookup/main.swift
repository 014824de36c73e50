// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Routes
import Wire

// One thing, `count` times, for callgrind: the difference of two counts is the cost of one. `run` beside this package does that.

struct Small: Codable { var ok = true }

let arguments = CommandLine.arguments.dropFirst()
guard let what = arguments.first, let count = arguments.dropFirst().first.flatMap({ Int($0) }) else {
  print("usage: Lookup WHAT COUNT")
  exit(2)
}
let routes = arguments.dropFirst(2).first.flatMap { Int($0) } ?? 10

var router = Router()
router.get("/hello") { _ in .json(["ok": true]) }
router.get("/status") { _ in .status(204) }
router.get("/slow/:name") { request in
  await Task.yield()
  return .text(request.parameters["name"])
}
router.get("/lamps/:lamp") { request in .status(request.parameters["lamp"].isEmpty ? 500 : 204) }
for number in 4..<max(routes, 5) { router.get("/r\(number % 37)/s\(number)") { _ in .status(204) } }
if what == "middleware" { router.use { request, next in next(request).map { try $0.headers.set("Server", "door") } } }
try router.validate()

var sum = 0

func respond(_ target: String, _ router: Router, _ count: Int) throws -> Int {
  let request = try HTTPRequest(target: target)
  let context = Context()
  var sum = 0
  for _ in 0..<count {
    switch router.respond(to: request, in: context) {  // not bound to a name: a copy of the answer would be counted
    case .now, .later: sum += 1
    default: exit(1)
    }
  }
  return sum
}

let name = arguments.count > 7 ? "a longer text" : "lookup"

@inline(never)
func encode(_ answer: () -> HTTPAnswer) -> Int { if case .bytes = answer().body { 1 } else { 0 } }

switch what {
case "hello": sum = try respond("/hello", router, count)
case "status", "middleware": sum = try respond("/status", router, count)
case "parameter": sum = try respond("/lamps/seven", router, count)
case "later": sum = try respond("/slow/x", router, count)
case "deep": sum = try respond("/r3/s\(3 + 37)", router, count)
case "literal": for _ in 0..<count { sum += encode { .json(["ok": true]) } }
case "three": for _ in 0..<count { sum += encode { .json(["name": name, "ok": true, "version": "1.0.0"]) } }
case "encoder": for _ in 0..<count { sum += encode { .json(["ok": true] as [String: Bool]) } }
case "struct": for _ in 0..<count { sum += encode { .json(Small()) } }
default: exit(2)
}
print(sum)
