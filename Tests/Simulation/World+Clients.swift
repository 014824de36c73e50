// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

@testable import Loop

// What clients do, when the world lets them.

extension World {
  func connect(_ client: Client) {
    guard !isStopping else { return rules.neverAccepted(client) }
    trace("\(client.index) connects")
    schedule(.step(client.index), after: client.steps.first?.after ?? 0)
    // A deferred accept waits for the first byte, or a second.
    if !defers { arrive(client) } else { schedule(.arrive(client.index), after: 1_000_000_000) }
  }

  /// The connection is in the accept queue.
  func arrive(_ client: Client) {
    guard client.acceptedAt == .never, !client.serverClosed, !isStopping, !kernel.queue.contains(where: { $0 === client }) else { return }
    kernel.queue.append(client)
  }

  func step(_ client: Client) {
    guard client.canAct, client.nextStep < client.steps.count else { return }
    let step = client.steps[client.nextStep].step
    client.nextStep += 1
    trace("\(client.index) \(step)")
    switch step {
    case .send(let count): send(client, count)
    case .halfClose: client.sentEnd = true
    case .close: leave(client)
    case .reset: client.isReset = true
    }
    if defers { arrive(client) }
    if client.canAct, client.nextStep < client.steps.count { schedule(.step(client.index), after: client.steps[client.nextStep].after) }
  }

  private func send(_ client: Client, _ count: Int) {
    guard !client.sentEnd else { return }
    client.sent += count
    // Bytes for a socket that is closed: its kernel resets, and forgets what it has not sent.
    if client.serverClosed || client.skippedLinger { kernel.resetClient(client) }
  }

  /// The client closes; unread bytes make its kernel reset.
  func leave(_ client: Client) {
    guard client.canAct else { return }
    client.isClosed = true
    if client.unread + client.unsent > 0 { client.isReset = true } else { client.sentEnd = true }
  }

  /// Something came for the client: its kernel has it.
  func clientSees(_ client: Client) {
    if case .slow(let every, _) = client.reading {
      if client.unread > 0 && !client.isReading {
        client.isReading = true
        schedule(.read(client.index), after: every)
      }
    } else if case .instant = client.reading {
      client.unread = 0
      client.transfer()
      client.unread = 0
      client.unsent = 0
    }
    seesEnd(client)
  }

  func read(_ client: Client) {
    client.isReading = false
    guard case .slow(let every, let bytes) = client.reading, client.canAct else { return }
    client.unread -= min(client.unread, bytes)
    client.transfer()
    if client.unread > 0 {
      client.isReading = true
      schedule(.read(client.index), after: every)
    }
    seesEnd(client)
  }

  private func seesEnd(_ client: Client) {
    if case .never = client.reading { return }
    guard client.serverEnded, client.unread + client.unsent == 0, !client.saidGoodbye, client.canAct else { return }
    client.saidGoodbye = true
    switch client.goodbye {
    case .close: leave(client)
    case .closeLater(let delay): schedule(.goodbye(client.index), after: delay)
    case .stay: break
    }
  }
}
