// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Testing
import Wire

// RFC 9112 3.2 and RFC 3986: the request target, its path and its query.

@Suite("RFC 9112 3.2: target") struct TargetTests {
  @Test("Visible ASCII outside the URI grammar is taken as it is")
  func literalBytes() throws {
    let target = "/a\"<>\\^{}`|~!$&'()*+,;=:@[]"
    #expect(try request(get(target)).path == target)
  }

  @Test(
    "A byte that must be escaped, and a fragment, are refused",
    arguments: ["/\u{80}", "/Z\u{C3}\u{BC}rich", "/\u{FF}", "/a#b", "#", "/a?b#c", "/\t"])
  func bytesToEscape(_ target: String) {
    #expect(verdict(get(target)) == "400 the target has a byte that must be percent-encoded")
  }

  @Test(
    "RFC 3986 2.1: an escape is two hex digits, in the path and in the query",
    arguments: ["/%", "/%4", "/%4g", "/%G4", "/%%41", "/a?b=%", "/a?%2", "/%?x", "/a?%-1=1"])
  func malformedEscapes(_ target: String) {
    #expect(verdict(get(target)) == "400 a percent escape in the target is not two hex digits")
  }

  @Test(
    "RFC 3986 2.5: escapes decode to UTF-8",
    arguments: [
      "/%FF", "/%C0%AF", "/%ED%A0%80", "/%C3", "/%C3x", "/%F5%80%80%80", "/%F4%90%80%80", "/%E0%80%80", "/?a=%FF", "/?a=%C3&b=%BC",
      "/%C3?%BC",
    ])
  func escapesThatAreNotText(_ target: String) {
    #expect(verdict(get(target)) == "400 the target's escapes are not UTF-8")
  }

  @Test("An escaped NUL is refused everywhere, an escaped slash in the path only")
  func escapedNULAndSlash() throws {
    #expect(verdict(get("/a%00")) == "400 the target carries an escaped NUL")
    #expect(verdict(get("/a?b=%00")) == "400 the target carries an escaped NUL")
    #expect(verdict(get("/a%2Fb")) == "400 the path carries an escaped slash")
    #expect(verdict(get("/a%2fb")) == "400 the path carries an escaped slash")
    #expect(try request(get("/a?u=%2Fb%0D%0A")).query == ["u": "/b\r\n"])
  }

  @Test("A path is decoded once, and not normalised")
  func paths() throws {
    #expect(try request(get("/%2541")).path == "/%41")
    #expect(try request(get("/Z%C3%BCrich/%e2%82%ac%20x")).path == "/Z\u{FC}rich/\u{20AC} x")
    for path in ["/", "//x", "/a/../b", "/./", "/a//"] { #expect(try request(get(path)).path == path) }
    #expect(try request(get("/%2e%2E/b")).path == "/../b")
    #expect(try request(get("/%41?x=%41")).target.text == "/%41?x=%41")
    #expect(try request(get("/a%20b")).withPath { Array($0) } == Array("/a b".utf8))
  }

  @Test(
    "A query: the first = splits, empty members are skipped, the last of a name wins, + and ; are data",
    arguments: [
      ("/x", [:]), ("/x?", [:]), ("/x?&&", [:]), ("/x?a", ["a": ""]), ("/x?a=", ["a": ""]), ("/x?=v", ["": "v"]),
      ("/x?a=b=c", ["a": "b=c"]),
      ("/x?&a=1&&b=2&", ["a": "1", "b": "2"]), ("/x?a=1&b=2&a=3", ["a": "3", "b": "2"]), ("/x?a=1;b=2", ["a": "1;b=2"]),
      ("/x?y=a+b", ["y": "a+b"]),
      ("/x?a%26b=c%3Dd", ["a&b": "c=d"]), ("/x?a=b?c&d=/e", ["a": "b?c", "d": "/e"]), ("/x?%61=1", ["a": "1"]),
      ("/x?a=%2541", ["a": "%41"]),
    ])
  func queries(_ target: String, _ query: [String: String]) throws {
    let request = try request(get(target))
    #expect(request.path == "/x")
    #expect(request.query == query)
    for name in ["a", "b", "", "y", "a&b", "d", "nothing"] { #expect(request.query(name) == query[name]) }
  }

  @Test("3.2.2: the absolute form gives path and query, and its authority replaces the Host's value")
  func absoluteForm() throws {
    let moved = try request("GET http://real:81/p?q=1 HTTP/1.1\r\nA: 1\r\nHost: other\r\nB: 2\r\n\r\n")
    #expect(moved.path == "/p")
    #expect(moved.query == ["q": "1"])
    #expect(moved.headers.map { "\($0.name)=\($0.value)" } == ["a=1", "host=real:81", "b=2"])
    #expect(try request("GET HTTP://a HTTP/1.1\r\nHost: a\r\n\r\n").path == "/")
    let asked = try request("GET http://a?x=%41 HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(asked.path == "/")
    #expect(asked.query == ["x": "A"])
    #expect(try request("GET http://a/%41 HTTP/1.1\r\nHost: a\r\n\r\n").path == "/A")
  }

  @Test("3.2.2: an absolute form in HTTP/1.0 adds the Host that is missing")
  func absoluteFormAddsHost() throws {
    let request = try request("GET http://real/%41 HTTP/1.0\r\nA: 1\r\n\r\n")
    #expect(request.headers.map { "\($0.name)=\($0.value)" } == ["a=1", "host=real"])
    #expect(request.headers["Host"] == "real")
    #expect(request.path == "/A")
  }

  @Test(
    "RFC 9110 4.2: an authority is a host and a port, without user information",
    arguments: [
      "http://", "http:///x", "http://a@b/", "http://u:p@b/", "http://a:b/", "http://a:1:2/", "http://[::1/", "http://[]/", "http://[::g]/",
      "http://:80/",
      "http://a%zz/", "http://[::1]x/", "http://?x", "http://a b",
    ])
  func authorities(_ target: String) {
    #expect(
      verdict(get(target)) == (target.contains(" ") ? RequestLineTests.notALine : "400 the target's authority is not a host and port"))
  }

  @Test("Other targets", arguments: ["https://a/", "ftp://a/", "a:80", "status", "?x", "http:/a", "http:", "http", "*x", "**"])
  func otherForms(_ target: String) {
    #expect(verdict(get(target)) == "400 the target is neither a path nor an http:// URL")
    #expect(verdict("OPTIONS \(target) HTTP/1.1\r\n") == "400 the target is neither a path nor an http:// URL")
  }

  @Test("3.2.4: the asterisk belongs to OPTIONS")
  func asterisk() throws {
    #expect(try request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").path == "*")
    #expect(verdict(get("*")) == "400 the target * belongs to OPTIONS only")
  }
}
