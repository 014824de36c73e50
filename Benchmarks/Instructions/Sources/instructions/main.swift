// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop
import Routes
import Wire

// The server whose instructions per request are counted. Usage: instructions PORT [ROUTES], where ROUTES of them (10) stand in the
// router besides those that are asked for.

let arguments = CommandLine.arguments.dropFirst().map { UInt16($0) ?? 0 }
let port = arguments.first ?? 0
let others = arguments.count > 1 ? arguments[1] : 10

var router = Router()
for number in 0..<others { router.get("/group\(number % 31)/thing\(number)/:name") { _ in .text("other\n") } }
let hello = HTTPAnswer.json(["name": "instructions", "ok": true, "version": "1.0.0"])
router.get("/hello") { _ in hello }  // made once, as doord's is
router.get("/json") { _ in .json(["name": "instructions", "ok": true, "version": "1.0.0"]) }
router.get("/async") { _ async in hello }
router.get("/suspend") { _ in
  await Task.yield()
  return hello
}
let server = Server(HTTPWire(), handler: router)

// Not `try await` here: waiting, libdispatch parks the main thread in a way that Debian's valgrind does not survive.
Task.detached {
  do { try await server.run(on: .tcp(host: "127.0.0.1", port: port)) } catch { print(error) }
  exit(1)
}
while true { pause() }
