// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// Where a wire, a handler and a connection meet: bytes in, a request to the handler, its answer out.
//
// Only this part is generic, and it is @inlinable, because generic code is not specialised across modules otherwise: a user's wire and
// handler are compiled into it, in the user's module. The connection is not generic and calls it once for each request, through
// closures: the methods of a generic class or of a protocol's generic conformance would be the unspecialised ones, whatever is inlined.

/// What the connection knows of its wire and handler. One for a server; used on all of its loops.
@usableFromInline
package struct Exchange: Sendable {
  let conversation: Conversation
  /// Parses, and answers if a request is whole. The handler's code runs in here, last.
  let advance: @Sendable (Connection, UnsafeRawBufferPointer) -> Progress
  /// Writes a refusal.
  let refuse: @Sendable (Refusal, Connection) -> Void
  /// Writes the leave to send the body.
  let writeContinue: @Sendable (inout Output) -> Void
  /// Throws what is wrong with the handler.
  let validate: @Sendable () throws -> Void

  /// What became of the bytes.
  @usableFromInline package enum Progress {
    /// Not a whole request; the connection's `need` says what would help.
    case incomplete
    /// The answer is in the output.
    case answered
    /// The handler runs; `endAnswer` will be called.
    case later
    /// A refusal is in the output.
    case refused
  }

  @inlinable
  package init<Format: WireFormat, Answering: Handler>(_ wire: Format, _ handler: Answering)
  where Answering.Request == Format.Request, Answering.Answer == Format.Answer {
    let both = WireExchange(wire, handler)
    self.init(
      conversation: wire.conversation,
      advance: { both.advance($0, $1) },
      refuse: { both.answers.refuse($0, $1) },
      writeContinue: { wire.writeContinue(into: &$0) },
      validate: { try handler.validate() })
  }

  @usableFromInline
  init(
    conversation: Conversation, advance: @escaping @Sendable (Connection, UnsafeRawBufferPointer) -> Progress,
    refuse: @escaping @Sendable (Refusal, Connection) -> Void, writeContinue: @escaping @Sendable (inout Output) -> Void,
    validate: @escaping @Sendable () throws -> Void
  ) {
    self.conversation = conversation
    self.advance = advance
    self.refuse = refuse
    self.writeContinue = writeContinue
    self.validate = validate
  }
}

@usableFromInline
struct WireExchange<Format: WireFormat, Answering: Handler>: Sendable
where Answering.Request == Format.Request, Answering.Answer == Format.Answer {
  @usableFromInline let answers: WireAnswers<Format>
  @usableFromInline let handler: Answering

  @inlinable
  init(_ wire: Format, _ handler: Answering) {
    answers = WireAnswers(wire)
    self.handler = handler
  }

  @inlinable
  func advance(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) -> Exchange.Progress {
    let wire = answers.wire
    switch wire.parse(bytes.bytes, resuming: connection.need) {
    case .incomplete(let need):
      connection.need = need
      return .incomplete
    case .invalid(let refusal):
      answers.refuse(refusal, connection)
      return .refused
    case .complete(var request, let consumed):
      let body = wire.bodyRange(of: request)
      if !body.isEmpty { wire.attach(connection.body(in: body), to: &request) }
      // State first: from here on the connection is handling, whatever the user's code does.
      connection.requestIsWhole(consumed: consumed)
      if connection.isObserved { connection.note(label: wire.label(of: request)) }
      return respond(to: request, connection)
    }
  }

  @inlinable
  func respond(to request: Format.Request, _ connection: Connection) -> Exchange.Progress {
    // The tasks hold this and not the handler, which may be many references (a router's tables).
    let answers = answers
    switch handler.respond(to: request, in: connection.context) {
    case .now(let answer):
      answers.write(answer, to: request, connection)
      return .answered
    case .failed(let error):
      answers.write(answers.answer(for: error, connection), to: request, connection)
      return .answered
    case .later(let terms, let work):
      connection.omitsBody = answers.wire.omitsBody(for: request)
      let run = connection.run(terms)
      // Detached: a loop's thread has no task whose values it could inherit. A task that cannot throw is wrapped in one that can, which
      // costs two frames and 700 instructions: so it is one that could, and never does.
      let task = Task<Void, any Error>.immediateDetached(executorPreference: connection.loopExecutor) {
        do { answers.finish(try await work(), request, connection, run) } catch { answers.fail(error, request, connection, run) }
      }
      connection.runs(task, run)
      return .later
    case .offloaded(let terms, let work):
      guard let (run, executor) = connection.offload(terms) else {
        connection.note(.poolFull)
        answers.write(answers.wire.refusal(.poolFull), to: request, connection)
        return .answered
      }
      connection.omitsBody = answers.wire.omitsBody(for: request)
      let task = Task<Void, any Error>(executorPreference: executor) {
        do {
          let answer = try await work()
          connection.onLoop { answers.finish(answer, request, connection, run) }
        } catch {
          connection.onLoop { answers.fail(error, request, connection, run) }
        }
      }
      connection.runs(task, run)
      return .later
    }
  }
}

/// The way of an answer to the output.
@usableFromInline
struct WireAnswers<Format: WireFormat>: Sendable {
  @usableFromInline let wire: Format

  @inlinable
  init(_ wire: Format) { self.wire = wire }

  @inlinable
  func refuse(_ refusal: Refusal, _ connection: Connection) {
    connection.note(refusal)
    let answer = wire.refusal(refusal)
    if connection.isObserved { connection.note(status: wire.status(of: answer)) }
    wire.write(answer, omittingBody: connection.omitsBody, into: &connection.output.pointee)
  }

  /// On the loop's thread. An answer that nobody waits for any more is dropped here.
  ///
  /// This and `fail` stay calls: inlined, their variables were part of the task's frame, which then took a second block of memory.
  @inlinable @inline(never)
  func finish(_ answer: Format.Answer, _ request: Format.Request, _ connection: Connection, _ run: Run) {
    connection.ended(run)
    guard connection.beginAnswer(run) else { return }
    write(answer, to: request, connection)
    connection.endAnswer()
  }

  @inlinable @inline(never)
  func fail(_ error: any Error, _ request: Format.Request, _ connection: Connection, _ run: Run) {
    connection.ended(run)
    guard connection.beginAnswer(run) else { return }
    write(answer(for: error, connection), to: request, connection)
    connection.endAnswer()
  }

  /// A `Refusal` is meant for the client; of anything else it learns only that it happened.
  @inlinable
  func answer(for error: any Error, _ connection: Connection) -> Format.Answer {
    if let refusal = error as? Refusal {
      connection.note(refusal)
      return wire.refusal(refusal)
    }
    connection.handlerFailed(error)
    return wire.refusal(.handlerFailed)
  }

  @inlinable
  func write(_ answer: Format.Answer, to request: Format.Request?, _ connection: Connection) {
    if connection.isObserved {
      connection.note(status: wire.status(of: answer))
      if let refusal = wire.refusal(of: answer) { connection.note(refusal) }
    }
    wire.write(answer, to: request, into: &connection.output.pointee)
  }
}

/// One run of a handler that answers later.
@usableFromInline
package struct Run: Sendable {
  /// Which request it answers.
  @usableFromInline package let ticket: UInt64
  /// Whether it runs on the blocking pool.
  @usableFromInline package let isOffloaded: Bool
}
