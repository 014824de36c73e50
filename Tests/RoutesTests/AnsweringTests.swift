// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Routes
import Testing
import Wire

private struct Detail: Error {}

@Suite struct `How closures answer` {
  let here = Context()

  @Test func `a plain closure answers inline`() throws {
    var router = Router()
    router.get("/hello") { _ in .json(["ok": true]) }
    guard case .now(let answer) = router.respond(to: try request("GET", "/hello"), in: here) else {
      Issue.record("not inline")
      return
    }
    #expect(answer.text == #"{"ok":true}"#)
  }

  @Test func `a plain closure of several statements that throws is still a plain one`() throws {
    var router = Router()
    router.get("/hello") { request in
      let name = request.parameters["name"]
      if !name.isEmpty { throw Detail() }
      return .text("hello\n")
    }
    guard case .now = router.respond(to: try request("GET", "/hello"), in: here) else {
      Issue.record("not inline")
      return
    }
  }

  @Test func `an async closure answers later, on its route's terms`() async throws {
    var router = Router()
    router.get("/slow/:name") { request in
      try await Task.sleep(for: .milliseconds(1))
      return .text("hello, \(request.parameters["name"])\n")
    }
    router.get("/wait", .waiting, .deadline(.seconds(30))) { _ in
      await Task.yield()
      return .status(204)
    }
    guard case .later(let terms, _) = router.respond(to: try request("GET", "/slow/x"), in: here),
      case .later(let waiting, _) = router.respond(to: try request("GET", "/wait"), in: here)
    else {
      Issue.record("not later")
      return
    }
    #expect(terms.deadline == nil && !terms.waits)
    #expect(waiting.deadline == .seconds(30) && waiting.waits)
    #expect(try await router.text("/slow/x") == "hello, x\n")
  }

  @Test func `an offloaded closure goes to the pool, plain or async`() async throws {
    var router = Router()
    router.post("/digest", .offloaded) { .text("\($0.body.count)") }
    router.post("/digest/slow", .deadline(.seconds(1)), .offloaded) { request in
      await Task.yield()
      return .text("\(request.body.count)")
    }
    #expect(router.problems == [])
    for path in ["/digest", "/digest/slow"] {
      let asked = try request("POST", path, body: "four")
      guard case .offloaded(let terms, _) = router.respond(to: asked, in: here) else {
        Issue.record("\(path) is not offloaded")
        continue
      }
      #expect(terms.deadline == (path == "/digest" ? nil : .seconds(1)))
      #expect(await router.answer(to: asked).text == "4")
    }
  }

  @Test func `the request gives what was sent and who asks`() async throws {
    var router = Router()
    router.post("/a/:x") { request in
      .json([
        "method": request.method, "path": request.path, "x": request.parameters["x"], "q": request.query("q"), "none": request.query["r"],
        "type": request.headers["CONTENT-type"], "body": request.body.text, "pattern": request.pattern, "peer": request.peer.address.host,
      ])
    }
    let asked = try request("POST", "/a/b%20c?q=%C3%A4", headers: [("Content-Type", "text/plain")], body: "hi")
    let peer = Peer(id: 7, address: PeerAddress(ipv4: 0x0a00_0001, port: 5))
    #expect(
      await router.answer(to: asked, peer: peer).text
        == #"{"body":"hi","method":"POST","none":null,"path":"/a/b c","pattern":"/a/:x","peer":"10.0.0.1","q":"ä","type":"text/plain","x":"b c"}"#
    )
  }

  @Test func `a thrown refusal is what the client is told`() async throws {
    var router = Router()
    router.get("/now") { _ in throw Refusal.conflict("the lamp is broken") }
    router.get("/later") { _ in
      await Task.yield()
      throw Refusal.unavailable("the lamp is warming up", retryAfter: 3)
    }
    router.get("/pool", .offloaded) { _ in throw Refusal.forbidden("not your lamp") }
    #expect(try await router.answer("GET", "/now").text == #"{"error":"the lamp is broken","ok":false}"#)
    #expect(try await router.answer("GET", "/later").status == 503)
    #expect(try await router.answer("GET", "/pool").status == 403)
  }

  @Test func `any other error is a 500 that tells nothing, and reaches the server as it is`() async throws {
    var router = Router()
    router.get("/now") { _ in throw Detail() }
    router.get("/later") { _ in
      await Task.yield()
      throw Detail()
    }
    for path in ["/now", "/later"] {
      let answer = try await router.answer("GET", path)
      #expect(answer.status == 500)
      #expect(answer.text == #"{"error":"the server could not answer this request","ok":false}"#)
    }
    guard case .failed(is Detail) = router.respond(to: try request("GET", "/now"), in: here) else {
      Issue.record("the error is not handed on")
      return
    }
  }
}

@Suite struct `Groups and middleware` {
  /// Notes that it was passed, in a header.
  struct Mark: Middleware {
    let name: String

    func respond(to request: RouteRequest, next: Next) -> Reply<HTTPAnswer> {
      next(request).map { answer in try answer.headers.set("Trace", (answer.headers["Trace"] ?? "") + name) }
    }
  }

  @Test func `a group puts its prefix before its routes`() async throws {
    var router = Router()
    router.group("/api") { api in
      api.get("/lamps") { _ in .text("lamps") }
      api.get("") { _ in .text("api") }
      api.group("/:house") { house in house.get("/doors") { .text($0.parameters["house"] + $0.path) } }
    }
    router.echo("/after")
    #expect(router.problems == [])
    #expect(try await router.text("/api/lamps") == "lamps")
    #expect(try await router.text("/api") == "api")
    #expect(try await router.text("/api/h1/doors") == "h1/api/h1/doors")
    #expect(try await router.text("/after") == "/after")
    #expect(try await router.answer("GET", "/lamps").status == 404)
  }

  @Test func `the first middleware is the outermost, a group's lies inside its outer group's, and adding later counts too`() async throws {
    var router = Router()
    router.get("/top") { _ in .status(204) }
    router.group("/a", Mark(name: "a")) { a in
      a.group("/b", Mark(name: "b")) { b in b.get("/c") { _ in .status(204) } }
      a.use(Mark(name: "A"))
    }
    router.use(Mark(name: "1"))
    router.use(Mark(name: "2"))
    #expect(try await router.answer("GET", "/a/b/c").headers["Trace"] == "bAa21")
    #expect(try await router.answer("GET", "/top").headers["Trace"] == "21")
  }

  @Test func `middleware sees what the router itself answers, a group's under its prefix`() async throws {
    var router = Router()
    router.use(Mark(name: "r"))
    router.group("/a", Mark(name: "a")) { a in
      a.get("/x") { _ in .status(204) }
      a.group("/:b/c", Mark(name: "c")) { _ in }
    }
    for (method, target, status, trace) in [
      ("GET", "/", 404, "r"), ("GET", "/ab", 404, "r"), ("GET", "/a", 404, "ar"), ("GET", "/a/y", 404, "ar"), ("PUT", "/a/x", 405, "ar"),
      ("OPTIONS", "/a/x", 204, "ar"), ("GET", "/a/1/c/2", 404, "car"), ("GET", "/a//c/2", 404, "ar"), ("OPTIONS", "*", 204, "r"),
    ] {
      let answer = try await router.answer(method, target)
      #expect(answer.status == status && answer.headers["Trace"] == trace, "\(method) \(target)")
    }
  }

  @Test func `plain middleware leaves a plain route inline and an offloaded one on the pool`() throws {
    var router = Router()
    router.use(Mark(name: "m"))
    router.get("/now") { _ in .status(204) }
    router.get("/pool", .offloaded) { _ in .status(204) }
    guard case .now(let answer) = router.respond(to: try request("GET", "/now"), in: Context()) else {
      Issue.record("not inline")
      return
    }
    #expect(answer.headers["Trace"] == "m")
    guard case .offloaded = router.respond(to: try request("GET", "/pool"), in: Context()) else {
      Issue.record("not offloaded")
      return
    }
  }

  @Test func `plain middleware adorns later answers and thrown refusals`() async throws {
    var router = Router()
    router.use { request, next in next(request).map { try $0.headers.set("Server", "door") } }
    router.get("/later") { _ in
      await Task.yield()
      return .status(204)
    }
    router.get("/refused") { _ in throw Refusal.conflict("no") }
    router.get("/refused/later") { _ in
      await Task.yield()
      throw Refusal.conflict("no")
    }
    for (path, status) in [("/later", 204), ("/refused", 409), ("/refused/later", 409), ("/nothing", 404)] {
      let answer = try await router.answer("GET", path)
      #expect(answer.status == status && answer.headers["Server"] == "door", "\(path)")
    }
  }

  @Test func `an error that is no refusal passes plain middleware on its way to the log`() throws {
    var router = Router()
    router.use(Mark(name: "m"))
    router.get("/x") { _ in throw Detail() }
    guard case .failed(is Detail) = router.respond(to: try request("GET", "/x"), in: Context()) else {
      Issue.record("not handed on")
      return
    }
  }

  @Test func `middleware may answer by itself, and the route does not run`() async throws {
    var router = Router()
    router.group("/admin") { admin in
      admin.use { request, next in
        guard request.headers["authorization"] == "Bearer sesame" else { throw Refusal.unauthorized("who are you?") }
        return next(request)
      }
      admin.get("/x") { _ in .text("in") }
    }
    #expect(try await router.answer("GET", "/admin/x").status == 401)
    #expect(try await router.answer("GET", "/admin/nothing").status == 401)
    #expect(await router.answer(to: try request("GET", "/admin/x", headers: [("Authorization", "Bearer sesame")])).text == "in")
  }

  @Test func `async middleware runs where its route runs and on its terms`() async throws {
    var router = Router()
    router.use { request, next in
      await Task.yield()
      var answer = try await next.answer(to: request)
      try answer.headers.set("Trace", "async")
      return answer
    }
    router.get("/now") { _ in .text("now") }
    router.get("/wait", .waiting) { _ in
      await Task.yield()
      return .text("wait")
    }
    router.get("/pool", .offloaded, .deadline(.seconds(3))) { _ in .text("pool") }
    guard case .later = router.respond(to: try request("GET", "/now"), in: Context()),
      case .later(let waiting, _) = router.respond(to: try request("GET", "/wait"), in: Context()),
      case .offloaded(let pool, _) = router.respond(to: try request("GET", "/pool"), in: Context())
    else {
      Issue.record("not where the routes run")
      return
    }
    #expect(waiting.waits && pool.deadline == .seconds(3))
    for path in ["/now", "/wait", "/pool"] {
      let answer = try await router.answer("GET", path)
      #expect(answer.text == String(path.dropFirst()) && answer.headers["Trace"] == "async")
    }
  }
}
