// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Routes
import Wire

struct Lamp: Codable {
  var name: String
  var level: Int
}

var router = Router()
router.get("/hello") { _ in .json(["ok": true]) }
router.get("/slow/:name") { request in
  try await Task.sleep(for: .seconds(1))
  return .text("hello, \(request.parameters["name"])\n")
}
router.put("/lamp") { request in
  let lamp = try request.json(as: Lamp.self)
  guard (0...100).contains(lamp.level) else { throw Refusal.unprocessable("the level is a number from 0 to 100") }
  return .json(lamp)
}
let server = try await Server(HTTPWire(), handler: router).start(on: .loopback(port: 8080))
print("listening on \(server.addresses)")
await server.finished()
