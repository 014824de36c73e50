// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Loop
import Wire

// What /status and /metrics tell: one snapshot, two spellings. On the blocking pool's threads, since it reads /proc.

/// Gathers what is known of the running door.
final class Monitor: Sendable {
  /// Known once the door listens.
  struct Parts: Sendable {
    let server: Server
    let probe: Probe
  }

  let options: Options
  let counters: Counters
  let log: AccessLog?
  private let started = ContinuousClock.now
  private let startedAt = now()
  private let parts = Locked<Parts?>(nil)

  init(options: Options, counters: Counters, log: AccessLog?) {
    self.options = options
    self.counters = counters
    self.log = log
  }

  /// The door listens.
  func began(_ server: Server, _ probe: Probe) { parts.withLock { $0 = Parts(server: server, probe: probe) } }

  /// A moment's view, so that all numbers of one answer are of one moment, as far as that is possible.
  struct Snapshot {
    let uptime: Duration
    let startedAt: timespec
    let openConnections: Int
    let bufferedBytes: Int
    let maximumConnections: Int
    let loops: [LoopStatus]
    /// Milliseconds since each loop came round.
    let ages: [Int]
    let targets: [Probe.Target]
    let openDescriptors: Int?
  }

  private func snapshot() -> Snapshot {
    let parts = parts.withLock { $0 }
    let server = parts?.server.status
    let loops = server?.loops ?? []
    return Snapshot(
      uptime: ContinuousClock.now - started, startedAt: startedAt, openConnections: server?.openConnections ?? 0,
      bufferedBytes: server?.bufferedBytes ?? 0, maximumConnections: server?.maximumConnections ?? 0, loops: loops,
      ages: loops.map { $0.age.milliseconds }, targets: parts?.probe.state ?? [],
      openDescriptors: Loop.openDescriptors())
  }

  // MARK: /status

  /// /status: one JSON object.
  func status() -> Bytes {
    let now = snapshot()
    var json = JSONWriter()
    json.object { json in
      json.member("name", "doord")
      json.member("ok", true)
      json.member("version", DoordRoutes.version)
      json.member("uptime", thousandths: now.uptime.milliseconds)
      json.member("openConnections", now.openConnections)
      json.member("acceptedConnections", counters[.accepted])
      json.member("answers") { for answer in counters.answers { $0.member(String(answer.status), answer.count) } }
      json.member("refusals") { for kind in Counters.RefusalKind.allCases { $0.member(kind.rawValue, counters[kind]) } }
      json.member("turnedAway") { for reason in TurnAwayReason.allCases { $0.member(reason.rawValue, counters[reason]) } }
      json.member("closed") { for reason in CloseReason.allCases { $0.member(reason.rawValue, counters[reason]) } }
      json.member("deadlines") { for deadline in counters.deadlines { $0.member(deadline.name, deadline.count) } }
      json.member("bytesSent", counters[.bytesSent])
      json.member("bufferedBytes", now.bufferedBytes)
      json.member("handlerFailures", counters[.handlerFailures])
      json.member("longTurns", counters[.longTurns])
      json.member("notices", counters[.notices])
      json.member("droppedLogLines", log?.dropped ?? 0)
      json.key("loops")
      json.array { for (loop, age) in zip(now.loops, now.ages) { Monitor.write(loop, age, &$0) } }
      json.member("probe") { write(now.targets, &$0) }
      json.member("limits") { writeLimits(now, &$0) }
      json.member("descriptors") {
        $0.member("open", now.openDescriptors ?? 0)
        $0.member("limit", descriptorLimit())
      }
    }
    return Bytes(json.bytes)
  }

  private static func write(_ loop: LoopStatus, _ age: Int, _ json: inout JSONWriter) {
    json.object {
      $0.member("longestTurn", thousandths: loop.longestTurn.microseconds)
      $0.member("lastTurnAge", age)
      $0.member("acceptedConnections", loop.accepted)
      $0.member("openConnections", loop.openConnections)
    }
  }

  private func write(_ targets: [Probe.Target], _ json: inout JSONWriter) {
    json.member("interval", thousandths: options.probe.milliseconds)
    json.key("addresses")
    json.array { json in
      for target in targets {
        json.object {
          $0.member("address", target.address.description)
          $0.member("state", target.last?.rawValue ?? "none")
          $0.member("misses", target.misses)
          $0.member("reopened", target.reopened)
        }
      }
    }
  }

  /// Sizes in bytes, times in seconds.
  private func writeLimits(_ now: Snapshot, _ json: inout JSONWriter) {
    let configuration = options.configuration
    json.member("maxHead", options.wire.maximumHead)
    json.member("maxBody", options.wire.maximumBody)
    json.member("maxBuffered", configuration.maximumBuffered)
    json.member("maxConnections", now.maximumConnections)
    json.key("perAddress")
    if let limit = configuration.maximumPerAddress { json.number(limit) } else { json.null() }
    json.member("idle", thousandths: configuration.deadlines.idle.milliseconds)
    json.member("arrival", thousandths: configuration.deadlines.arrival.milliseconds)
    json.member("stall", thousandths: configuration.deadlines.stall.milliseconds)
    json.member("handlerDeadline", thousandths: configuration.handlerDeadline.milliseconds)
    json.member("drain", thousandths: configuration.drain.milliseconds)
  }

  // MARK: /metrics

  /// /metrics: Prometheus' text format 0.0.4.
  func metrics() -> Bytes {
    let now = snapshot()
    var text = MetricsText()
    text.gauge("doord_build_info", "Always 1; the version is a label.", [(["version": DoordRoutes.version], "1")])
    text.gauge("doord_uptime_seconds", "Since the start.", seconds(now.uptime.milliseconds, 1000))
    text.gauge("doord_connections_open", "Connections open now.", now.openConnections)
    text.counter("doord_connections_accepted_total", "Connections accepted.", counters[.accepted])
    text.counter(
      "doord_connections_closed_total", "Connections over, by how they ended.", by: "reason",
      CloseReason.allCases.map { ($0.rawValue, counters[$0]) })
    text.counter(
      "doord_connections_turned_away_total", "Connections reset before any state existed.", by: "reason",
      TurnAwayReason.allCases.map { ($0.rawValue, counters[$0]) })
    text.counter("doord_answers_total", "Answers, by status.", by: "status", counters.answers.map { (String($0.status), $0.count) })
    text.counter(
      "doord_refusals_total", "Answers that refused, by kind.", by: "reason",
      Counters.RefusalKind.allCases.map { ($0.rawValue, counters[$0]) })
    text.counter("doord_deadlines_total", "Deadlines that were hit.", by: "deadline", counters.deadlines.map { ($0.name, $0.count) })
    text.counter("doord_sent_bytes_total", "Bytes of answers, heads and all.", counters[.bytesSent])
    text.gauge("doord_buffered_bytes", "Bytes of unfinished requests, as counted against --max-buffered.", now.bufferedBytes)
    text.counter("doord_handler_failures_total", "Handlers that threw an error.", counters[.handlerFailures])
    text.counter("doord_long_turns_total", "Turns of a loop over 50 ms.", counters[.longTurns])
    text.counter("doord_notices_total", "Notices for the operator.", counters[.notices])
    text.counter("doord_log_lines_dropped_total", "Log lines that could not be written.", log?.dropped ?? 0)
    write(now.loops, now.ages, &text)
    write(now.targets, &text)
    writeProcess(now, &text)
    return Bytes(text.text)
  }

  private func write(_ loops: [LoopStatus], _ ages: [Int], _ text: inout MetricsText) {
    func by(_ value: (Int) -> String) -> [MetricsText.Sample] { loops.indices.map { (["loop": String($0)], value($0)) } }
    text.gauge("doord_loop_connections_open", "Connections open on each loop.", by { String(loops[$0].openConnections) })
    text.family("counter", "doord_loop_connections_accepted_total", "Connections each loop accepted.", by { String(loops[$0].accepted) })
    text.gauge(
      "doord_loop_longest_turn_seconds", "Longest turn of each loop so far.", by { seconds(loops[$0].longestTurn.microseconds, 1_000_000) })
    text.gauge("doord_loop_stamp_age_seconds", "Since each loop came round; over 5 it hangs.", by { seconds(ages[$0], 1000) })
  }

  private func write(_ targets: [Probe.Target], _ text: inout MetricsText) {
    let asked = targets.filter { $0.last != nil }
    text.gauge(
      "doord_probe_up", "Whether the last probe of an address was a hit.",
      asked.map { (["address": "\($0.address)"], $0.last == .hit ? "1" : "0") })
    text.gauge("doord_probe_misses", "Misses in a row.", asked.map { (["address": "\($0.address)"], String($0.misses)) })
    text.counter(
      "doord_listener_reopened_total", "Listeners opened anew after they died.", by: "address",
      targets.map { ("\($0.address)", $0.reopened) })
  }

  /// The names that Prometheus' own clients use.
  private func writeProcess(_ now: Snapshot, _ text: inout MetricsText) {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    let cpu = [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + $1.tv_sec * 1_000_000 + Int($1.tv_usec) }
    text.family("counter", "process_cpu_seconds_total", "User and system time.", [([:], seconds(cpu, 1_000_000))])
    if let bytes = Monitor.residentBytes() { text.gauge("process_resident_memory_bytes", "Memory in use.", bytes) }
    if let open = now.openDescriptors { text.gauge("process_open_fds", "Descriptors open now.", open) }
    text.gauge("process_max_fds", "The limit of descriptors.", descriptorLimit())
    text.gauge(
      "process_start_time_seconds", "When it started, in Unix time.",
      seconds(now.startedAt.tv_sec * 1000 + now.startedAt.tv_nsec / 1_000_000, 1000))
  }

  /// The second number of /proc/self/statm, which counts pages (proc(5)).
  private static func residentBytes() -> Int? {
    guard let file = fopen("/proc/self/statm", "re") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return nil }
    let numbers = line.prefix { $0 != 0 }.split(separator: CChar(UInt8(ascii: " ")))
    guard numbers.count > 1 else { return nil }
    return Int(String(decoding: numbers[1].map { UInt8(bitPattern: $0) }, as: UTF8.self)).map { $0 * Int(getpagesize()) }
  }

  private func seconds(_ value: Int, _ unit: Int) -> String {
    var bytes: [UInt8] = []
    bytes.append(value, decimals: unit == 1000 ? 3 : 6)
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension LoopStatus {
  /// How long ago the loop came round; zero for one that has not begun.
  var age: Duration {
    let now = monotonicNanoseconds()
    return lastTurn > 0 && now > lastTurn ? .nanoseconds(now - lastTurn) : .zero
  }
}
