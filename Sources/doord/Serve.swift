// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Dispatch
import Glibc
import Loop
import Routes
import Wire

// `doord serve`: puts the parts together, starts them, waits for the end, and stops them in order. On the main thread, which only waits.

enum Serve {
  /// How long a start may go on after a signal: a name server may be slow.
  private static let startGrace = DispatchTimeInterval.seconds(2)
  /// Seconds from the second signal to the end of the process, whatever hangs.
  private static let cutGrace: UInt32 = 3

  /// Serves until a signal. The exit code.
  static func run(_ options: Options) -> Int32 {
    fillStandardDescriptors()
    Signals.prepare()
    let stopping = DispatchSemaphore(value: 0)
    let started = DispatchSemaphore(value: 0)
    let running = Locked<Server?>(nil)
    // First of all: from here on anything may block, and a signal must end it.
    let hasSignals = Signals.onStop { count in
      if count == 1 {
        stopping.signal()
        if started.wait(timeout: .now() + startGrace) == .timedOut { end("stopped before it listened", 0) }
      } else {
        running.withLock { $0 }?.cut()
        sleep(cutGrace)
        end("did not stop \(cutGrace) s after the second signal: something hangs", 1)
      }
    }
    guard hasSignals else { return 1 }
    raiseDescriptorLimit()
    let manager = ServiceManager()
    let endpoints = endpoints(options, inherited: Endpoint.systemd())
    let log = options.log == .off ? nil : AccessLog(format: options.log, descriptor: STDERR_FILENO)
    let mark = ProbeMark()
    let counters = Counters()
    let monitor = Monitor(options: options, counters: counters, log: log)

    var configuration = options.configuration
    configuration.observer = Watching(counters: counters, log: log, mark: mark)
    // A proxy passes the gate for the clients it asks for, and these are judged one by one.
    configuration.allowed = options.allowed.isEmpty ? [] : options.allowed + options.trusted
    let door = FrontDoor(
      inner: DoordRoutes.router(monitor), names: names(options, endpoints),
      forwarded: options.trusted.isEmpty ? nil : Forwarded(trusted: options.trusted), allowed: options.allowed, mark: mark)
    let server = Server(options.wire, handler: door, configuration: configuration)

    let mainThread = MainThread()
    log?.start()
    do {
      _ = try mainThread.run { try await server.start(on: endpoints) }
    } catch {
      log?.finish(within: .seconds(1))
      say("doord: \(error)")
      return 1
    }
    running.withLock { $0 = server }
    started.signal()
    let probe = Probe(server, interval: options.probe, manager: manager, mark: mark) { log?.add($0) }
    monitor.began(server, probe)
    let (asked, possible) = (configuration.maximumConnections, server.status.maximumConnections)
    if possible < asked {
      configuration.observer?.notice(
        "at most \(possible) connections, not \(asked): the limit of descriptors leaves no more (ulimit -n, LimitNOFILE)")
    }
    announce(server.addresses)
    probe.start()
    manager.notify("READY=1")

    stopping.wait()
    manager.notify("STOPPING=1")
    probe.finish()
    let report = try? mainThread.run { await server.stop() }
    if let report { log?.add(sentence(report)) }
    log?.finish(within: .seconds(1))
    return 0
  }

  /// Ends the process as it is, on the signals' thread.
  private static func end(_ sentence: String, _ code: Int32) {
    say("doord: \(sentence)")
    _exit(code)
  }

  /// Gives standard input, output and error to /dev/null where they are closed: a connection that got number 2 would be sent the log.
  private static func fillStandardDescriptors() {
    for descriptor in 0...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", O_RDWR) }
  }

  /// Where to listen: what is asked for, else what systemd hands over, else both loopback families.
  static func endpoints(_ options: Options, inherited: [Endpoint]) -> [Endpoint] {
    let port = options.port ?? Options.defaultPort
    var endpoints = inherited
    if !options.hosts.isEmpty { endpoints.append(.tcp(hosts: options.hosts, port: port)) }
    let isTCPByDefault = options.unixPath == nil && inherited.isEmpty
    if options.hosts.isEmpty && (isTCPByDefault || options.port != nil) { endpoints.append(.loopback(port: port)) }
    if let path = options.unixPath { endpoints.append(.unix(path, mode: options.unixMode)) }
    return endpoints
  }

  /// Which Host names are ours: those of --name; on loopback only else the loopback names; else all.
  static func names(_ options: Options, _ endpoints: [Endpoint]) -> Names? {
    options.names.isEmpty && !endpoints.allSatisfy(isLocal) ? nil : Names(options.names)
  }

  /// Whether only this machine reaches an endpoint. A name is looked up, which may take its time.
  private static func isLocal(_ endpoint: Endpoint) -> Bool {
    switch endpoint.kind {
    case .loopback, .unix: return true
    case .tcp(let hosts, let port): return (try? ListeningSocket.lookUp(hosts, port: port))?.allSatisfy(\.isLoopback) == true
    case .inherited(let descriptor): return localAddress(descriptor)?.isLoopback == true
    }
  }

  /// One line for each address and one to try, on standard output at once: a script can wait for them. A pipe that nobody reads holds it
  /// up for a second at most.
  private static func announce(_ addresses: [BoundAddress]) {
    var text = addresses.map { "doord \(DoordRoutes.version) listening on \($0)\n" }.joined()
    switch addresses.first {
    case .tcp(let address): text += "try: curl http://\(address)/hello\n"
    case .unix(let path) where path.hasPrefix("@"):
      text += "try: curl --abstract-unix-socket \(path.dropFirst()) http://localhost/hello\n"
    case .unix(let path): text += "try: curl --unix-socket \(path) http://localhost/hello\n"
    case nil: break
    }
    LogWriter(descriptor: STDOUT_FILENO).write(Array(text.utf8), waiting: 1000)
  }

  private static func sentence(_ report: StopReport) -> String {
    "stopped: \(report.acceptedLate) accepted after the signal, \(report.cutHandlers) handlers cut at the deadline, "
      + "\(report.abandonedTasks) tasks given up"
  }
}
