// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Loop
import Routes
import Wire

// What doord answers.

enum DoordRoutes {
  static let version = "0.1.0"
  /// Whose figures say nothing; the benchmarks refuse it.
  #if DEBUG
    static let isDebugBuild = true
  #else
    static let isDebugBuild = false
  #endif

  /// Longest /wait, in seconds: a long poll that outlives the usual 30 seconds of proxies would be cut by them.
  static let longestWait = 25.0

  static func router(_ monitor: Monitor) -> Router {
    var router = Router()
    let hello = HTTPAnswer.bytes(Bytes("{\"name\":\"doord\",\"ok\":true,\"version\":\"\(version)\"}"), contentType: "application/json")
    router.get("/hello") { _ in hello }
    // They read /proc, so not on a loop.
    router.get("/status", .offloaded) { _ in .bytes(monitor.status(), contentType: "application/json") }
    router.get("/metrics", .offloaded) { _ in .bytes(monitor.metrics(), contentType: "text/plain; version=0.0.4; charset=utf-8") }
    router.on(["POST", "PUT"], "/echo") { request in
      .bytes(request.body, contentType: request.headers["content-type"] ?? "application/octet-stream")
    }
    router.get("/wait", .waiting) { request in
      let seconds = try wait(request.http.query("seconds"))
      try await Task.sleep(for: .milliseconds(Int(seconds * 1000)), clock: LoopClock())
      return .json(["ok": true, "waited": seconds])
    }
    return router
  }

  /// The `seconds` of /wait: decimal digits, perhaps a point and more of them.
  static func wait(_ text: String?) throws -> Double {
    let isPlain =
      text.map { $0.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") } } ?? false
    guard isPlain, let seconds = text.flatMap({ Double($0) }), seconds <= longestWait else {
      throw Refusal(400, "the query must say seconds=N, a number from 0 to \(Int(longestWait))")
    }
    return seconds
  }
}
