// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Testing
import Wire

@testable import doord

/// getopt_long(3) keeps its state in globals, so one at a time.
@Suite("The command line", .serialized)
struct OptionsTests {
  private func parse(_ words: String...) throws -> Options { try Options.parse(["doord"] + words) }

  private func problem(_ words: String...) -> String? {
    do {
      _ = try Options.parse(["doord"] + words)
      return nil
    } catch {
      return "\(error)"
    }
  }

  @Test func without_words_it_serves_with_the_defaults() throws {
    let options = try parse()
    #expect(options.command == .serve)
    #expect(options.hosts.isEmpty && options.port == nil && options.unixPath == nil)
    #expect(options.wire.maximumHead == 16384 && options.wire.maximumBody == 33_554_432)
    #expect(options.probe == .seconds(20) && options.log == .text && options.configuration.loops == 1)
  }

  @Test func each_flag_sets_what_it_names() throws {
    let options = try parse(
      "serve", "--host", "::1", "--host=127.0.0.2", "--port", "0", "--unix", "/run/d.sock", "--unix-mode", "660", "--loops", "3",
      "--no-defer", "--allow", "10.0.0.0/8,::1", "--allow", "192.168.0.1", "--trust", "127.0.0.1", "--name", "Door.example,*.Lan",
      "--max-head", "8K", "--max-body", "1M", "--max-buffered", "64M", "--max-connections", "100", "--per-address", "7", "--idle", "500ms",
      "--arrival", "2m", "--stall", "7", "--drain", "0", "--handler-deadline", "1s", "--probe", "0", "--log", "json")
    #expect(options.hosts == ["::1", "127.0.0.2"] && options.port == 0)
    #expect(options.unixPath == "/run/d.sock" && options.unixMode == 0o660)
    #expect(options.allowed.map(\.description) == ["10.0.0.0/8", "::1/128", "192.168.0.1/32"])
    #expect(options.trusted.map(\.description) == ["127.0.0.1/32"])
    #expect(options.names == ["door.example", "*.lan"])
    #expect(options.wire.maximumHead == 8192 && options.wire.maximumBody == 1 << 20)
    let configuration = options.configuration
    #expect(configuration.loops == 3 && !configuration.defersAccept && configuration.maximumBuffered == 64 << 20)
    #expect(configuration.maximumConnections == 100 && configuration.maximumPerAddress == 7)
    #expect(configuration.deadlines.idle == .milliseconds(500) && configuration.deadlines.arrival == .seconds(120))
    #expect(configuration.deadlines.stall == .seconds(7) && configuration.drain == .zero && configuration.handlerDeadline == .seconds(1))
    #expect(options.probe == .zero && options.log == .json)
  }

  @Test func auto_is_at_least_one_loop() throws {
    #expect(try parse("--loops", "auto").configuration.loops >= 1)
  }

  @Test func parse_takes_files_and_its_two_limits() throws {
    let options = try parse("parse", "a", "--max-head", "100", "--", "--b")
    #expect(options.command == .parse && options.files == ["a", "--b"] && options.wire.maximumHead == 100)
    #expect(problem("parse", "--port", "1") == "--port is a flag of doord serve, not of doord parse")
  }

  @Test func help_and_version_go_before_other_mistakes() throws {
    #expect(try parse("--help", "nonsense").command == .help)
    #expect(try parse("-h").command == .help)
    #expect(try parse("parse", "-V").command == .version)
    #expect(try parse("--version", "--help").command == .help)
  }

  @Test(arguments: [
    ("--port", "65536"), ("--port", "-1"), ("--port", "+80"), ("--port", ""), ("--port", "８０"), ("--idle", "0"), ("--idle", "1 s"),
    ("--idle", "25h"), ("--idle", "99999999999999999999"), ("--stall", "ms"), ("--max-head", "1.5K"), ("--max-head", "0"),
    ("--max-body", "9223372036854775807G"), ("--loops", "0"), ("--loops", "all"), ("--unix-mode", "888"), ("--unix-mode", "1777"),
    ("--allow", "10.0.0.0/33"), ("--allow", "10.0.0.0/8,"), ("--trust", "here"), ("--name", ""), ("--name", "a:80"), ("--name", "a.*"),
    ("--log", "xml"), ("--host", ""), ("--unix", ""), ("--unix", "@door"), ("--max-connections", "0"), ("--per-address", "none"),
  ])
  func a_wrong_value_is_named_with_its_flag_and_what_is_accepted(flag: String, value: String) {
    let sentence = problem(flag, value) ?? ""
    #expect(sentence.hasPrefix("\(flag) takes ") && sentence.hasSuffix("not \"\(value)\""))
  }

  @Test func a_wrong_flag_or_word_is_named() {
    #expect(problem("--nonsense") == "--nonsense is not a flag of doord")
    #expect(problem("--max-b=1") == "--max-b may be --max-body, --max-buffered")
    #expect(problem("-x") == "-x is not a flag of doord")
    #expect(problem("--port") == "--port needs a value")
    #expect(problem("--no-defer=1") == "--no-defer takes no value")
    #expect(problem("run") == "\"run\" is not a command of doord; there are serve and parse")
    #expect(problem("serve", "now") == "doord serve takes flags only, not \"now\"")
    #expect(problem("--unix-mode", "660") == "--unix-mode is for the socket of --unix, which is not given")
    #expect(problem("--max-head", "1") == "--max-head takes a size like 1000, 16K, 32M or 1G, from 64 to 16M, not \"1\"")
  }

  @Test func a_body_must_fit_into_what_all_requests_share() throws {
    #expect(
      problem("--max-body", "2M", "--max-buffered", "1M")
        == "--max-body 2M does not fit into --max-buffered 1M, which all requests share")
    #expect(try parse("--max-buffered", "1M").wire.maximumBody == 32 << 20)
    #expect(try parse("--max-body", "1M", "--max-buffered", "1M").wire.maximumBody == 1 << 20)
    #expect(try parse("parse", "--max-body", "1G").wire.maximumBody == 1 << 30)
  }

  @Test func help_tells_each_flag_within_100_columns() {
    for flag in Flag.all { #expect(Help.text.contains("  --\(flag.name)")) }
    #expect(Help.text.split(separator: "\n").allSatisfy { $0.count <= 100 })
  }

  @Test func a_unix_socket_or_an_inherited_one_takes_the_place_of_loopback() throws {
    let inherited = [Endpoint.inherited(descriptor: 3)]
    func endpoints(_ words: [String], _ inherited: [Endpoint] = []) throws -> [String] {
      Serve.endpoints(try Options.parse(["doord"] + words), inherited: inherited).map(\.description)
    }
    #expect(try endpoints([]) == ["loopback:8757"])
    #expect(try endpoints(["--port", "1"]) == ["loopback:1"])
    #expect(try endpoints(["--host", "::", "--host", "10.0.0.1"]) == ["[::]:8757, 10.0.0.1:8757"])
    #expect(try endpoints(["--unix", "/d"]) == ["unix:/d"])
    #expect(try endpoints(["--unix", "/d", "--port", "2"]) == ["loopback:2", "unix:/d"])
    #expect(try endpoints([], inherited) == ["fd:3"])
    #expect(try endpoints(["--host", "::1"], inherited) == ["fd:3", "[::1]:8757"])
  }

  @Test func names_are_judged_on_loopback_or_where_some_are_given() throws {
    func judges(_ words: String...) throws -> Bool {
      let options = try Options.parse(["doord"] + words)
      return Serve.names(options, Serve.endpoints(options, inherited: [])) != nil
    }
    #expect(try judges())
    #expect(try judges("--host", "127.0.0.9", "--host", "localhost"))
    #expect(try !judges("--host", "127.0.0.1", "--host", "0.0.0.0"))
    #expect(try judges("--host", "0.0.0.0", "--name", "door.example"))
    #expect(try !judges("--name", "*"))
  }
}
