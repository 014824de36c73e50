// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc

// doord: a small HTTP daemon of Door's parts.

do throws(UsageError) {
  let options = try Options.parse(Options.words())
  switch options.command {
  case .serve: exit(Serve.run(options))
  case .parse: exit(ParseCommand.run(options))
  case .help: print(Help.text, terminator: "")
  case .version: print("doord \(DoordRoutes.version)\(DoordRoutes.isDebugBuild ? " (debug build)" : "")")
  }
} catch {
  say("doord: \(error); see doord --help")
  exit(2)
}
