// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Routes
import Testing
import Wire

@Suite struct `Which route a path leads to` {
  @Test func `a literal pattern matches its path and nothing else`() async throws {
    var router = Router()
    router.echo("/a/b")
    #expect(try await router.text("/a/b") == "/a/b")
    for other in ["/a", "/a/", "/a/b/", "//a/b", "/a//b", "/A/b", "/a/b/c", "/", "/a/bb", "/a/b%20"] {
      #expect(try await router.answer("GET", other).status == 404, "\(other)")
    }
  }

  @Test func `the path is matched percent-decoded and the query plays no part`() async throws {
    var router = Router()
    router.echo("/größe/a b")
    router.get("/p/:x") { .text($0.parameters["x"]) }
    #expect(try await router.text("/gr%C3%B6%C3%9fe/%61%20b?/c") == "/größe/a b")
    #expect(try await router.text("/p/%e2%82%ac%25?x=y") == "€%")
  }

  @Test func `letters that look alike in two spellings are two paths`() async throws {
    var router = Router()
    router.get("/\u{e9}") { _ in .text("composed") }
    router.get("/e\u{301}") { _ in .text("decomposed") }
    #expect(router.problems == [])
    #expect(try await router.text("/%C3%A9") == "composed")
    #expect(try await router.text("/e%CC%81") == "decomposed")
  }

  @Test func `the root, a trailing slash and doubled slashes are paths of their own`() async throws {
    var router = Router()
    for pattern in ["/", "/a", "/a/", "//", "//a"] { router.echo(pattern) }
    for path in ["/", "/a", "/a/", "//", "//a"] { #expect(try await router.text(path) == path) }
    #expect(try await router.answer("GET", "///").status == 404)
  }

  @Test func `a parameter stands for one segment that is not empty`() async throws {
    var router = Router()
    router.get("/lamps/:lamp/on") { .text($0.parameters["lamp"]) }
    #expect(try await router.text("/lamps/7/on") == "7")
    #expect(try await router.text("/lamps/%2e%2e/on") == "..")
    #expect(try await router.answer("GET", "/lamps//on").status == 404)
    #expect(try await router.answer("GET", "/lamps/7/8/on").status == 404)
  }

  @Test func `a star stands for the rest of the path, also an empty one`() async throws {
    var router = Router()
    router.get("/files/:owner/*") { .text("\($0.parameters["owner"]) \($0.parameters["*"])") }
    #expect(try await router.text("/files/me/a/b//c/") == "me a/b//c/")
    #expect(try await router.text("/files/me/") == "me ")
    #expect(try await router.answer("GET", "/files/me").status == 404)
  }

  @Test func `a star at the root matches every path`() async throws {
    var router = Router()
    router.get("/*") { .text($0.parameters["*"]) }
    #expect(try await router.text("/") == "")
    #expect(try await router.text("/a/b") == "a/b")
  }

  @Test func `a parameter that the pattern does not have is empty`() async throws {
    var router = Router()
    router.get("/a/:b") { .text("<\($0.parameters["c"])\($0.parameters["*"])>") }
    #expect(try await router.text("/a/x") == "<>")
  }

  @Test func `a literal goes before a parameter and a parameter before a star, in any order of adding`() async throws {
    let patterns = ["/*", "/:a", "/x", "/x/*", "/x/:b", "/x/y", "/:a/y", "/:a/:b/z"]
    for turn in 0..<patterns.count {
      var router = Router()
      for pattern in patterns[turn...] + patterns[..<turn] { router.get(pattern) { _ in .text(pattern) } }
      #expect(try await router.text("/x") == "/x")
      #expect(try await router.text("/w") == "/:a")
      #expect(try await router.text("/x/y") == "/x/y")
      #expect(try await router.text("/x/w") == "/x/:b")
      #expect(try await router.text("/w/y") == "/:a/y")
      #expect(try await router.text("/w/w") == "/*")
      #expect(try await router.text("/x/y/z") == "/x/*")
      #expect(try await router.text("/w/y/z") == "/:a/:b/z")
    }
  }

  @Test func `a choice that leads nowhere is taken back`() async throws {
    var router = Router()
    router.echo("/a/b/c")
    router.echo("/a/:x/d")
    router.echo("/:y/b/e")
    router.echo("/*")
    #expect(try await router.text("/a/b/c") == "/a/b/c")
    #expect(try await router.text("/a/b/d") == "/a/:x/d")
    #expect(try await router.text("/a/b/e") == "/:y/b/e")
    #expect(try await router.text("/a/b/f") == "/*")
  }

  @Test func `a route that does not answer the method leaves the path to a less exact one`() async throws {
    var router = Router()
    router.get("/lamps/all") { _ in .text("all") }
    router.post("/lamps/:lamp") { .text("post \($0.parameters["lamp"])") }
    #expect(try await router.answer("POST", "/lamps/all").text == "post all")
    #expect(try await router.text("/lamps/all") == "all")
  }

  @Test func `a thousand routes are each found`() async throws {
    var router = Router()
    for number in 0..<1000 {
      router.get("/r\(number % 50)/s\(number)") { _ in .text("\(number)") }
      router.get("/r\(number % 50)/s\(number)/:p/t") { .text("\(number) \($0.parameters["p"])") }
    }
    #expect(router.problems == [])
    for number in 0..<1000 {
      #expect(try await router.text("/r\(number % 50)/s\(number)") == "\(number)")
      #expect(try await router.text("/r\(number % 50)/s\(number)/x/t") == "\(number) x")
      #expect(try await router.answer("GET", "/r\(number % 50 + 1)/s\(number)").status == 404)
    }
  }

  @Test func `a router is a value: a copy does not see what is added later`() async throws {
    var router = Router()
    router.echo("/a")
    let copy = router
    router.echo("/b")
    #expect(try await router.text("/b") == "/b")
    #expect(try await copy.answer("GET", "/b").status == 404)
  }
}

@Suite struct `Methods` {
  @Test func `every method has its route`() async throws {
    var router = Router()
    router.get("/x") { _ in .text("get") }
    router.head("/x") { _ in .text("head") }
    router.post("/x") { _ in .text("post") }
    router.put("/x") { _ in .text("put") }
    router.patch("/x") { _ in .text("patch") }
    router.delete("/x") { _ in .text("delete") }
    router.options("/x") { _ in .text("options") }
    router.on(["PROPFIND", "get"], "/x") { .text("on \($0.method)") }
    #expect(router.problems == [])
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
      #expect(try await router.answer(method, "/x").text == method.lowercased())
    }
    #expect(try await router.answer("PROPFIND", "/x").text == "on PROPFIND")
    #expect(try await router.answer("get", "/x").text == "on get")
    #expect(try await router.answer("PropFind", "/x").status == 405)
  }

  @Test func `a path that nothing matches is refused with 404 and a sentence`() async throws {
    let answer = try await Router().answer("GET", "/x")
    #expect(answer.status == 404)
    #expect(answer.text == #"{"error":"there is nothing at this path","ok":false}"#)
  }

  @Test func `a method that no route answers is refused with 405 and the sorted methods of all that match`() async throws {
    var router = Router()
    router.put("/lamps/:lamp") { _ in .status(204) }
    router.get("/lamps/all") { _ in .status(204) }
    router.on(["BREW"], "/*") { _ in .status(204) }
    let answer = try await router.answer("DELETE", "/lamps/all")
    #expect(answer.status == 405)
    #expect(answer.headers["Allow"] == "BREW, GET, HEAD, OPTIONS, PUT")
    #expect(answer.text == #"{"error":"this method is not allowed here; allowed: BREW, GET, HEAD, OPTIONS, PUT","ok":false}"#)
  }

  @Test func `HEAD is answered by the GET route of the most exact pattern`() async throws {
    var router = Router()
    router.get("/a/b") { .text("get \($0.method)") }
    router.head("/a/:x") { _ in .text("head") }
    #expect(try await router.answer("HEAD", "/a/b").text == "get HEAD")
    #expect(try await router.answer("HEAD", "/a/c").text == "head")
  }

  @Test func `OPTIONS answers 204 with the methods, and 404 where nothing is`() async throws {
    var router = Router()
    router.post("/x") { _ in .status(204) }
    let answer = try await router.answer("OPTIONS", "/x")
    #expect(answer.status == 204)
    #expect(answer.headers["Allow"] == "OPTIONS, POST")
    #expect(try await router.answer("OPTIONS", "/y").status == 404)
  }

  @Test func `OPTIONS with a star names every method of the router, and matches no pattern`() async throws {
    var router = Router()
    router.get("/") { _ in .status(200) }
    router.delete("/x") { _ in .status(204) }
    router.options("/*") { _ in .text("a route") }
    let answer = try await router.answer("OPTIONS", "*")
    #expect(answer.status == 204)
    #expect(answer.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS")
    #expect(try await Router().answer("OPTIONS", "*").headers["Allow"] == "OPTIONS")
  }
}

@Suite struct `Mistakes in patterns` {
  @Test func `are collected and thrown all at once`() {
    var router = Router()
    router.echo("/a/:x")
    router.echo("/a/:x")
    router.post("/a/:y") { _ in .status(204) }
    router.echo("a")
    router.echo("/b/:")
    router.echo("/b/:c d")
    router.echo("/b/*/c")
    router.echo("/b/c*")
    router.echo("/:x/b/:x")
    router.echo("/a%20b")
    router.on(["G T", "CONNECT", ""], "/c") { _ in .status(204) }
    router.get("/d", .deadline(.seconds(1))) { _ in .status(204) }
    router.group("/g/") { _ in }
    #expect(
      router.problems == [
        "GET /a/:x is there twice",
        "/a/:y names a parameter otherwise than /a/:x in the same place",
        "the pattern \"a\" cannot be read: it does not begin with /",
        "the pattern \"/b/:\" cannot be read: a parameter has no name",
        "the pattern \"/b/:c d\" cannot be read: a parameter's name has other characters than a-z, A-Z, 0-9, _ and -",
        "the pattern \"/b/*/c\" cannot be read: * must be the last segment",
        "the pattern \"/b/c*\" cannot be read: * must be a segment of its own",
        "the pattern \"/:x/b/:x\" cannot be read: two parameters have the same name",
        "the pattern \"/a%20b\" cannot be read: it has a percent escape; patterns are written decoded",
        "/c cannot answer the method \"G T\"",
        "/c cannot answer the method \"CONNECT\"",
        "/c cannot answer the method \"\"",
        "GET /d answers at once, so it has no deadline and cannot wait; make its closure async, or .offloaded",
        "the group's prefix \"/g/\" must not end in / or contain *",
      ])
  }

  @Test func `two parameters in one place are a duplicate also under different names`() {
    var router = Router()
    router.echo("/a/:x")
    router.echo("/a/:y")
    router.echo("/b/*")
    router.echo("/b/*")
    #expect(
      router.problems == ["/a/:y names a parameter otherwise than /a/:x in the same place", "GET /b/* is there twice"])
  }

  @Test func `the error reads as one line for each`() throws {
    var router = Router()
    router.echo("a")
    router.echo("b")
    let error = #expect(throws: RouterError.self) { try router.validate() }
    #expect(error?.description.split(separator: "\n").count == 2)
  }

  @Test func `patterns that only look alike are no mistakes`() {
    var router = Router()
    for pattern in ["/a", "/a/", "/:x", "/:x/:y", "/*", "/a/*", "/a/:b/c", "/v1:batch", "/100%", "/a.b"] {
      router.echo(pattern)
    }
    router.post("/a") { _ in .status(204) }
    #expect(router.problems == [])
  }

  @Test func `leave the good routes in place`() async throws {
    var router = Router()
    router.echo("bad")
    router.echo("/good")
    #expect(try await router.text("/good") == "/good")
  }
}
