// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The text of --help, made from the table of flags.

enum Help {
  static var text: String {
    var text = """
      doord answers HTTP/1.1, one request for each connection.

      Usage: doord [serve] [FLAGS]
             doord parse [--max-head SIZE] [--max-body SIZE] [FILE...]

      serve listens and answers until SIGTERM or SIGINT. parse prints what the HTTP parser
      makes of each file's bytes (standard input's for none and for -), one line of JSON for each.
      TIME is 30 or 30s, 500ms, 2m. SIZE is bytes, 16K, 32M or 1G. Defaults are in parentheses.

      """
    for group in Flag.Group.allCases {
      text += "\n\(group.rawValue):\n"
      for flag in Flag.all where flag.group == group { text += entry(flag) }
    }
    return text + """

      Routes: GET /hello, GET /status, GET /metrics (Prometheus), POST or PUT /echo,
              GET /wait?seconds=N (0 to 25)

      Examples:
        doord                                        both loopback addresses, port \(Options.defaultPort)
        doord --port 0                               a free port, printed at start
        doord --host 0.0.0.0 --allow 192.168.0.0/16  one network
        doord --unix /run/door.sock --unix-mode 660  a Unix-domain socket
        doord --trust 127.0.0.1 --name door.example  behind a proxy on this machine
        printf 'GET / HTTP/1.0\\r\\n\\r\\n' | doord parse

      With systemd: sockets of a .socket unit replace the default addresses; Type=notify and
      WatchdogSec= are served.

      Exit codes: 0 stopped, or everything parsed is complete; 1 cannot listen or read, or
      something parsed is not complete; 2 wrong command line.

      """
  }

  /// A flag's name, then its help in a column of its own, 92 characters wide in all.
  private static func entry(_ flag: Flag) -> String {
    let column = 26
    var line = "  --" + flag.name + (flag.value.map { " " + $0 } ?? "")
    var lines: [String] = []
    if line.count >= column {
      lines.append(line)
      line = ""
    }
    line += String(repeating: " ", count: column - line.count)
    for word in flag.help.split(separator: " ") {
      if line.count + word.count > 92 {
        lines.append(line)
        line = String(repeating: " ", count: column)
      }
      line += (line.hasSuffix("  ") || line.count == column ? "" : " ") + word
    }
    return (lines + [line]).joined(separator: "\n") + "\n"
  }
}
