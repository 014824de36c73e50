// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

@preconcurrency import CSystem
import Glibc
import Loop
import Wire

// The command line, through glibc's getopt_long(3). Main thread, before any other thread exists: getopt keeps its state in globals,
// which is why its module is imported with `@preconcurrency`.

/// What the command line asks for.
struct Options: Sendable {
  enum Command: Sendable { case serve, parse, help, version }
  enum LogFormat: String, Sendable, CaseIterable { case text, json, off }

  var command = Command.serve
  /// `doord parse`: what to read; none is standard input.
  var files: [String] = []

  /// Addresses to listen on; none: both loopback families, unless there is a Unix-domain socket or an inherited one.
  var hosts: [String] = []
  /// nil: 8757.
  var port: UInt16?
  var unixPath: String?
  var unixMode: UInt16 = 0o600

  var names: [String] = []
  /// Proxies whose X-Forwarded-For is believed.
  var trusted: [Network] = []
  /// Networks that are served; none: all.
  var allowed: [Network] = []

  /// The limits of a request.
  var wire = HTTPWire()
  /// Zero: no probe.
  var probe = Duration.seconds(20)
  var log = LogFormat.text
  /// Everything else, with Loop's own defaults.
  var configuration = Configuration()

  static let defaultPort: UInt16 = 8757

  /// The process's own words. `CommandLine.arguments` would put other characters where they are not UTF-8, and so name another file.
  static func words() throws(UsageError) -> [String] {
    var words: [String] = []
    for index in 0..<Int(CommandLine.argc) {
      guard let pointer = CommandLine.unsafeArgv[index], let word = String(validatingCString: pointer) else { throw .notUTF8(index) }
      words.append(word)
    }
    return words
  }

  /// Reads a command line, the program's name first.
  static func parse(_ arguments: [String]) throws(UsageError) -> Options {
    var options = Options()
    var given: [Flag] = []
    let operands = try readFlags(arguments) { (flag, value) throws(UsageError) in
      try flag.apply(&options, value)
      given.append(flag)
    }
    if options.command != .serve { return options }  // --help and --version go before anything else that may be wrong
    switch operands.first {
    case nil, "serve":
      if let extra = operands.dropFirst().first { throw .operand(extra) }
      if options.unixPath == nil && given.contains(where: { $0.name == "unix-mode" }) { throw .missingSocket }
      // A small budget alone is fine: a lone longer body passes it. One that was asked for is to fit.
      let (body, budget) = (options.wire.maximumBody, options.configuration.maximumBuffered)
      if body > budget && given.contains(where: { $0.name == "max-body" }) { throw .bodyOverBudget(body: body, budget: budget) }
    case "parse":
      options.command = .parse
      options.files = Array(operands.dropFirst())
      if let flag = given.first(where: { !$0.isForParse }) { throw .notForParse(flag.name) }
    case let other?:
      throw .command(other)
    }
    return options
  }

  /// Calls `found` for each flag in order and returns what is not a flag.
  private static func readFlags(
    _ arguments: [String], _ found: (Flag, String) throws(UsageError) -> Void
  ) throws(UsageError) -> [String] {
    // getopt_long reorders the vector, and keeps pointers into it between its calls: both must stay where they are.
    let vector = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: arguments.count + 1)
    for (index, argument) in arguments.enumerated() { (vector + index).initialize(to: strdup(argument)) }
    (vector + arguments.count).initialize(to: nil)
    let flags = Flag.all
    var table = flags.enumerated().map { index, flag in
      option(name: strdup(flag.name), has_arg: flag.value == nil ? 0 : 1, flag: nil, val: firstCode + Int32(index))
    }
    table.append(option())
    defer {
      for entry in table { free(UnsafeMutablePointer(mutating: entry.name)) }
      for index in 0..<arguments.count { free(vector[index]) }
      vector.deallocate()
    }
    let text = { (pointer: UnsafeMutablePointer<CChar>?) in pointer.map { String(cString: $0) } ?? "" }

    opterr = 0  // its sentences are not ours
    optind = 0  // glibc: begin anew
    while true {
      let code = getopt_long(Int32(arguments.count), vector, ":hV", table, nil)
      let last = text(vector[Int(min(max(optind - 1, 0), Int32(arguments.count)))])
      switch code {
      case -1:
        return (Int(optind)..<arguments.count).map { text(vector[$0]) }
      case Int32(UInt8(ascii: "h")): try found(Flag.help, "")
      case Int32(UInt8(ascii: "V")): try found(Flag.version, "")
      case Int32(UInt8(ascii: ":")): throw .missingValue(last)
      case Int32(UInt8(ascii: "?")):
        // A known flag's code in optopt: it was given a value and takes none.
        if optopt >= firstCode { throw .unexpectedValue(last) }
        if optopt != 0 { throw .unknownFlag("-\(Unicode.Scalar(UInt8(truncatingIfNeeded: optopt)))") }
        let candidates = flags.map { "--" + $0.name }.filter { $0.hasPrefix(last.prefix { $0 != "=" }) }
        throw candidates.isEmpty ? .unknownFlag(last) : .ambiguous(last, candidates)
      default:
        let index = Int(code - firstCode)
        if flags.indices.contains(index) { try found(flags[index], text(optarg)) }
      }
    }
  }

  /// Codes of long flags, above every character's.
  private static let firstCode: Int32 = 256
}

/// What is wrong with a command line.
enum UsageError: Error, Equatable, CustomStringConvertible {
  case unknownFlag(String)
  case ambiguous(String, [String])
  case missingValue(String)
  case unexpectedValue(String)
  case value(flag: String, value: String, accepted: String)
  case command(String)
  case operand(String)
  case notForParse(String)
  case missingSocket
  case bodyOverBudget(body: Int, budget: Int)
  /// Counted from 1, the program's name not counted.
  case notUTF8(Int)

  /// One sentence.
  var description: String {
    switch self {
    case .unknownFlag(let flag): "\(flag) is not a flag of doord"
    case .ambiguous(let flag, let candidates): "\(flag.prefix { $0 != "=" }) may be \(candidates.joined(separator: ", "))"
    case .missingValue(let flag): "\(flag) needs a value"
    case .unexpectedValue(let flag): "\(flag.prefix { $0 != "=" }) takes no value"
    case .value(let flag, let value, let accepted): "--\(flag) takes \(accepted), not \"\(value)\""
    case .command(let word): "\"\(word)\" is not a command of doord; there are serve and parse"
    case .operand(let word): "doord serve takes flags only, not \"\(word)\""
    case .notForParse(let flag): "--\(flag) is a flag of doord serve, not of doord parse"
    case .missingSocket: "--unix-mode is for the socket of --unix, which is not given"
    case .bodyOverBudget(let body, let budget):
      "--max-body \(Value.size(body)) does not fit into --max-buffered \(Value.size(budget)), which all requests share"
    case .notUTF8(let index): "argument \(index) is not UTF-8"
    }
  }
}
