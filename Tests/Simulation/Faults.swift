// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// Faults that can be planted, to see that the simulation finds them. Each makes the seam behave so that the world is what it would be if
// the server had the fault; the server's own code has no switch for it.

enum Fault: String, CaseIterable {
  /// What the kernel did not take of an answer is forgotten.
  case lostTail
  /// Every byte of a request pushes its arrival deadline back.
  case arrivalPushed
  /// The connection is closed where it should linger.
  case skippedLinger
  /// A descriptor is closed twice.
  case doubleClose
  /// The watcher of a closed descriptor stays active.
  case watcherLeft
  /// After a pause reading is not taken up again: the end of stream is missed.
  case missedEnd
  /// A part of an answer is sent twice.
  case answerTwice
  /// A listener that ran out of descriptors does not come back.
  case deafListener
  /// A single byte taken begins a new stall window.
  case stallReset
  /// A listener is closed with connections in its queue.
  case droppedQueue
}
