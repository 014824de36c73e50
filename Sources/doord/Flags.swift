// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Wire

// Every flag once: its name, its help and what it sets. The parser and --help are both made from this table.

/// One flag of the command line.
struct Flag: Sendable {
  enum Group: String, CaseIterable, Sendable {
    case listening = "Where to listen"
    case asking = "Who may ask"
    case limits = "Limits"
    case deadlines = "Deadlines"
    case running = "Running"
  }

  let name: String
  /// What --help calls the value; nil: it takes none.
  var value: String?
  let group: Group
  /// One sentence or two; the default in parentheses.
  let help: String
  var isForParse = false
  /// Takes the value over, or throws what is accepted.
  let set: @Sendable (inout Options, String) throws -> Void

  func apply(_ options: inout Options, _ value: String) throws(UsageError) {
    do {
      try set(&options, value)
    } catch {
      throw .value(flag: name, value: value, accepted: (error as? Unacceptable)?.accepted ?? "another value")
    }
  }
}

/// A value that a flag does not take.
struct Unacceptable: Error {
  /// What it takes, as in "--port takes …".
  let accepted: String
}

extension Flag {
  static let help = Flag(name: "help", group: .running, help: "Print this help.", isForParse: true) { options, _ in
    options.command = .help
  }

  static let version = Flag(name: "version", group: .running, help: "Print the version.", isForParse: true) { options, _ in
    if options.command != .help { options.command = .version }
  }

  static var all: [Flag] { listening + asking + limits + deadlines + running }

  private static var listening: [Flag] {
    [
      Flag(
        name: "host", value: "ADDRESS", group: .listening,
        help: "Listen on this IPv4 or IPv6 address, or on every address of a name; repeatable. (127.0.0.1 and ::1)"
      ) { $0.hosts.append(try Value.text($1, "an address or a name")) },
      Flag(
        name: "port", value: "N", group: .listening,
        help: "TCP port; 0 is one that the system picks, the same for both loopback families. (\(Options.defaultPort))"
      ) { $0.port = UInt16(try Value.integer($1, in: 0...65535, "a port from 0 to 65535")) },
      Flag(
        name: "unix", value: "PATH", group: .listening,
        help: "Listen on a Unix-domain socket, instead of TCP unless --host or --port is given too. (none)"
      ) { $0.unixPath = try Value.socketPath($1) },
      Flag(name: "unix-mode", value: "MODE", group: .listening, help: "Permissions of that socket, in octal. (600)") {
        $0.unixMode = try Value.mode($1)
      },
      Flag(
        name: "loops", value: "N|auto", group: .listening,
        help: "Event loops, each a thread with its own listening sockets; auto is one per processor. (1)"
      ) { $0.configuration.loops = try Value.loops($1) },
      Flag(
        name: "no-defer", group: .listening,
        help: "Accept before the first byte has come (no TCP_DEFER_ACCEPT): silent clients count, and --idle is exact."
      ) { options, _ in options.configuration.defersAccept = false },
    ]
  }

  private static var asking: [Flag] {
    [
      Flag(
        name: "allow", value: "CIDR", group: .asking,
        help: """
          Serve this network only, 10.0.0.0/8 or 2001:db8::/32; repeatable, commas too. TCP peers outside are reset, unless --trust \
          names them; Unix-socket peers are always served. (all)
          """
      ) { $0.allowed += try Value.networks($1) },
      Flag(
        name: "trust", value: "CIDR", group: .asking,
        help: "Proxies whose X-Forwarded-For names the client, for --allow and the log; repeatable, commas too. (none)"
      ) { $0.trusted += try Value.networks($1) },
      Flag(
        name: "name", value: "NAME", group: .asking,
        help: """
          Answer to this Host name, besides the loopback names; *.NAME takes all names under it, * takes every name; repeatable, commas \
          too. (a door on loopback: localhost, *.localhost, 127.0.0.0/8, [::1]; any other door: every name)
          """
      ) { $0.names += try Value.names($1) },
    ]
  }

  private static var limits: [Flag] {
    let defaults = Options()
    return [
      Flag(
        name: "max-head", value: "SIZE", group: .limits,
        help: "Longest request head. (\(Value.size(defaults.wire.maximumHead)))", isForParse: true
      ) { $0.wire.maximumHead = try Value.size($1, in: 64...16 << 20) },
      Flag(
        name: "max-body", value: "SIZE", group: .limits,
        help: "Longest request body; if given, no more than --max-buffered. (\(Value.size(defaults.wire.maximumBody)))", isForParse: true
      ) { $0.wire.maximumBody = try Value.size($1, in: 0...1 << 40) },
      Flag(
        name: "max-buffered", value: "SIZE", group: .limits,
        help:
          "Unfinished requests of all connections together; beyond it reading pauses. (\(Value.size(defaults.configuration.maximumBuffered)))"
      ) { $0.configuration.maximumBuffered = try Value.size($1, in: 64 << 10...1 << 40) },
      Flag(
        name: "max-connections", value: "N", group: .limits,
        help: "Connections at a time, at most the descriptor limit less 64; beyond it 503. (\(defaults.configuration.maximumConnections))"
      ) { $0.configuration.maximumConnections = try Value.integer($1, in: 1...10_000_000, "a number from 1 to 10000000") },
      Flag(
        name: "per-address", value: "N", group: .limits,
        help: "Connections at a time from one address (an IPv6 /64 counts as one); beyond it 503. (no limit)"
      ) { $0.configuration.maximumPerAddress = try Value.integer($1, in: 1...10_000_000, "a number from 1 to 10000000") },
    ]
  }

  private static var deadlines: [Flag] {
    let defaults = Configuration()
    return [
      Flag(
        name: "idle", value: "TIME", group: .deadlines,
        help: "Silence before a request; then the connection is closed. (\(Value.time(defaults.deadlines.idle)))"
      ) { $0.configuration.deadlines.idle = try Value.time($1) },
      Flag(
        name: "arrival", value: "TIME", group: .deadlines,
        help: "A whole request, from the connection on; then 408. (\(Value.time(defaults.deadlines.arrival)))"
      ) { $0.configuration.deadlines.arrival = try Value.time($1) },
      Flag(
        name: "stall", value: "TIME", group: .deadlines,
        help: "In which a client must take 30 KiB of its answer; then it is cut. (\(Value.time(defaults.deadlines.stall)))"
      ) { $0.configuration.deadlines.stall = try Value.time($1) },
      Flag(
        name: "handler-deadline", value: "TIME", group: .deadlines,
        help: "An answer, from the whole request on; then 503. (\(Value.time(defaults.handlerDeadline)))"
      ) { $0.configuration.handlerDeadline = try Value.time($1) },
      Flag(
        name: "drain", value: "TIME", group: .deadlines,
        help: "When stopping: what still runs, then 503. (\(Value.time(defaults.drain)))"
      ) { $0.configuration.drain = try Value.time($1, zero: true) },
    ]
  }

  private static var running: [Flag] {
    [
      Flag(
        name: "probe", value: "TIME", group: .running,
        help: "How often doord asks itself GET /hello at each address; 0 is never. (\(Value.time(Options().probe)))"
      ) { $0.probe = try Value.time($1, zero: true) },
      Flag(name: "log", value: "text|json|off", group: .running, help: "The log, on standard error. (text)") {
        guard let format = Options.LogFormat(rawValue: $1) else { throw Unacceptable(accepted: "text, json or off") }
        $0.log = format
      },
      help, version,
    ]
  }
}
