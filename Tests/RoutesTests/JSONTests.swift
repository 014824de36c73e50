// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Routes
import Testing
import Wire

private struct Lamp: Codable, Equatable {
  var name: String
  var level: Int
  var tags: [String]?
}

private struct House: Codable {
  var lamps: [Lamp]
  var owner: Owner
  struct Owner: Codable { var adult: Bool, height: Double }
}

@Suite struct `JSON that goes out` {
  @Test func `a literal is written with its names in order`() {
    #expect(HTTPAnswer.json(["ok": true]).text == #"{"ok":true}"#)
    #expect(HTTPAnswer.json([:]).text == "{}")
    let name = "door", number: Int? = nil
    let answer = HTTPAnswer.json(["z": 1, "name": name, "é": 1.5, "n": number, "a": ["x", "y"], "o": ["p": -7]], status: 201)
    #expect(answer.text == #"{"a":["x","y"],"n":null,"name":"door","o":{"p":-7},"z":1,"é":1.5}"#)
    #expect(answer.status == 201)
    #expect(answer.contentType == "application/json")
  }

  @Test func `of a repeated name the last value counts`() {
    #expect(HTTPAnswer.json(["a": 1, "b": 2, "a": 3]).text == #"{"a":3,"b":2}"#)
  }

  @Test func `an object can be put together step by step`() {
    var object: JSONObject = ["a": 1]
    object["b"] = ["c": "d", "e": 1] as JSONObject
    object["a"] = JSONValue.null
    object["l"] = JSONValue.array([1, "x", true])
    #expect(HTTPAnswer.json(object).text == #"{"a":null,"b":{"c":"d","e":1},"l":[1,"x",true]}"#)
  }

  @Test func `text is escaped where RFC 8259 7 says so and nowhere else`() {
    let text = "\" \\ / \u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f} \u{7f} é \u{301}\r\u{301} 😀 \u{2028}"
    #expect(
      HTTPAnswer.json(["t": text]).text == #"{"t":"\" \\ / \u0000\b\t\n\u000b\f\r\u001f "# + "\u{7f} é \u{301}\\r\u{301} 😀 \u{2028}\"}")
  }

  @Test func `numbers are written so that they read back the same`() {
    #expect(
      HTTPAnswer.json(["a": Int.min, "b": 0.1, "c": 3.0, "d": 1e300, "e": -0.0, "f": 1e-7, "g": Double.nan, "h": Double.infinity]).text
        == #"{"a":-9223372036854775808,"b":0.1,"c":3,"d":1e+300,"e":-0,"f":1e-07,"g":null,"h":null}"#)
  }

  @Test func `a long text is written whole`() {
    let long = String(repeating: "0123456789", count: 10_000)
    #expect(HTTPAnswer.json(["long": long]).text == "{\"long\":\"\(long)\"}")
  }

  @Test func `an encodable value is written with sorted names and plain slashes`() {
    let answer = HTTPAnswer.json(Lamp(name: "a/b", level: 3, tags: ["é"]), status: 202)
    #expect(answer.text == #"{"level":3,"name":"a/b","tags":["é"]}"#)
    #expect(answer.status == 202)
    #expect(answer.contentType == "application/json")
    #expect(HTTPAnswer.json([Lamp(name: "x", level: 1)]).text == #"[{"level":1,"name":"x"}]"#)
    let variable = ["b": 1, "a": 2]
    #expect(HTTPAnswer.json(variable).text == #"{"a":2,"b":1}"#)
  }

  @Test func `a value that cannot be encoded reads as a 500 also where no router looks`() {
    var output = Output()
    HTTPWire().write(.json([Double.nan]), to: nil, into: &output)
    #expect(String(decoding: output.buffered, as: UTF8.self).hasPrefix("HTTP/1.1 500 "))
    #expect(output.source?.next(into: &output) == .end)
    #expect(String(decoding: output.buffered, as: UTF8.self).hasSuffix(#"{"error":"the server could not answer this request","ok":false}"#))
  }

  @Test func `both ways of writing give the same bytes`() {
    let texts = ["", "plain", "\"\\/\u{1}\u{8}\t\n\u{c}\r\u{1f}\u{7f}é\u{301}😀\u{2028}"]
    for text in texts { #expect(HTTPAnswer.json(["t": text]).text == HTTPAnswer.json(["t": text] as [String: String]).text) }
    for number in [0, 1, -1.5, 0.1, 3, 1e300, 5e-300, 1e15, 123_456_789.125, 1e16, 1e-7] {
      #expect(HTTPAnswer.json(["n": number]).text == HTTPAnswer.json(["n": number] as [String: Double]).text)
    }
  }

  @Test func `a value that cannot be encoded is a 500 whose error reaches the server`() async throws {
    var router = Router()
    router.get("/now") { _ in .json([1.5, Double.nan]) }
    router.get("/later") { _ in
      await Task.yield()
      return .json([1.5, Double.nan])
    }
    router.get("/pool", .offloaded) { _ in .json([1.5, Double.nan]) }
    guard case .failed(is EncodingError) = router.respond(to: try request("GET", "/now"), in: Context()) else {
      Issue.record("the error is lost")
      return
    }
    for path in ["/now", "/later", "/pool"] {
      let answer = try await router.answer("GET", path)
      #expect(answer.status == 500)
      #expect(answer.text == #"{"error":"the server could not answer this request","ok":false}"#)
    }
  }
}

@Suite struct `JSON that comes in` {
  /// What the client is told about a body.
  private func reason<Value: Decodable & Sendable>(_ body: String, as type: Value.Type) async throws -> String {
    var router = Router()
    router.post("/x") { request in
      _ = try request.json(as: type)
      return .text("ok")
    }
    let answer = await router.answer(to: try request("POST", "/x", body: body))
    #expect(answer.status == (answer.text == "ok" ? 200 : 400))
    return String(answer.text.replacing(#"{"error":""#, with: "").replacing(#"","ok":false}"#, with: ""))
  }

  @Test func `is decoded, whatever the content type says`() async throws {
    var router = Router()
    router.put("/lamp") { request in .json(try request.json(as: Lamp.self)) }
    let body = #"{"name":"l","level":4,"tags":null,"other":[]}"#
    for type in ["application/json", "text/plain"] {
      let asked = try request("PUT", "/lamp", headers: [("Content-Type", type)], body: body)
      #expect(await router.answer(to: asked).text == #"{"level":4,"name":"l"}"#)
    }
  }

  @Test func `a field that is missing is named`() async throws {
    #expect(try await reason(#"{"name":"l"}"#, as: Lamp.self) == "the field 'level' is missing")
    let second = #"{"lamps":[{"name":"a","level":1},{"name":"b"}],"owner":{}}"#
    #expect(try await reason(second, as: House.self) == "the field 'lamps[1].level' is missing")
  }

  @Test func `a field of the wrong kind is named with what it should be`() async throws {
    #expect(try await reason(#"{"name":"l","level":"secret"}"#, as: Lamp.self) == "the field 'level' is not a whole number in range")
    #expect(try await reason(#"{"name":7,"level":1}"#, as: Lamp.self) == "the field 'name' is not text")
    #expect(try await reason(#"{"name":"l","level":1,"tags":"x"}"#, as: Lamp.self) == "the field 'tags' is not a list")
    #expect(try await reason(#"{"lamps":[],"owner":3}"#, as: House.self) == "the field 'owner' is not an object")
    let (number, text) = (#"{"lamps":[],"owner":{"adult":1}}"#, #"{"lamps":[],"owner":{"adult":true,"height":"x"}}"#)
    #expect(try await reason(number, as: House.self) == "the field 'owner.adult' is not true or false")
    #expect(try await reason(text, as: House.self) == "the field 'owner.height' is not a number")
    #expect(try await reason("[]", as: Lamp.self) == "the body is not an object")
    #expect(try await reason("{}", as: [Lamp].self) == "the body is not a list")
  }

  @Test func `a field that is null is named`() async throws {
    #expect(try await reason(#"{"name":null,"level":1}"#, as: Lamp.self) == "the field 'name' is null, not text")
  }

  @Test func `a number that does not fit is named and not quoted`() async throws {
    for number in ["1.5", "1e30", "9223372036854775808"] {
      let told = try await reason(#"{"name":"l","level":\#(number)}"#, as: Lamp.self)
      #expect(told == "the field 'level' is not a whole number in range", "\(number)")
    }
  }

  @Test func `a number that does not fit is found among others`() async throws {
    struct Sample: Decodable {
      var ratio: Double, small: [UInt8], note: String, last: Int
    }
    let body = { (ratio: String, small: String, last: String) in
      #"{"note":"7 \" -1.5","ratio":\#(ratio),"small":[1,2,\#(small),4],"last":\#(last)}"#
    }
    #expect(try await reason(body("0.5", "3", "6"), as: Sample.self) == "ok")
    #expect(try await reason(body("0.5", "300", "6"), as: Sample.self) == "the field 'small[2]' is not a whole number in range")
    #expect(try await reason(body("0.5", "-3", "6.5"), as: Sample.self) == "the field 'last' is not a whole number in range")
    #expect(try await reason(body("1e999", "3", "6"), as: Sample.self) == "the field 'ratio' is not a number")
    #expect(try await reason("1.5", as: Int.self) == "the body is not a whole number in range")
  }

  @Test func `nesting without end in a long body is refused`() async throws {
    let deep = String(repeating: "[", count: 200_000)
    #expect(try await reason(deep, as: Lamp.self) == "the body is not JSON, or a number in it does not fit")
  }

  @Test func `of a number that does not fit in a long body less is told`() async throws {
    let long = String(repeating: "x", count: 20_000)
    #expect(
      try await reason(#"{"name":"\#(long)","level":1.5}"#, as: Lamp.self) == "the body is not JSON, or a number in it does not fit")
  }

  @Test func `what is not JSON, or empty, or cut, or nested without end is refused`() async throws {
    #expect(try await reason("", as: Lamp.self) == "the body is empty; JSON is expected")
    for body in ["<html>", "{\"name\":", "{'name':1}", "\u{0}", "{\"a\":1}}", String(repeating: "[", count: 9000)] {
      #expect(try await reason(body, as: Lamp.self) == "the body is not JSON")
    }
    let deep = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)
    #expect(try await reason(deep, as: Lamp.self) == "the body is not JSON")
  }

  @Test func `bytes that are not UTF-8 are refused`() async throws {
    var router = Router()
    router.post("/x") { .json(try $0.json(as: Lamp.self)) }
    let body = Bytes(Array(#"{"level":1,"name":""#.utf8) + [0xc3, 0x28] + Array("\"}".utf8))
    #expect(await router.answer(to: try HTTPRequest(method: "POST", target: "/x", body: body)).status == 400)
  }

  @Test func `names that the client made up are cut and hold no control characters`() async throws {
    #expect(try await reason(#"{"a\r\nb":"x"}"#, as: [String: Int].self) == "the field 'a\u{fffd}\u{fffd}b' is not a whole number in range")
    let name = String(repeating: "n", count: 10_000)
    #expect(try await reason("{\"\(name)\":\"x\"}", as: [String: Int].self).utf8.count < 200)
  }
}
