// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

internal import CLibev

// The libev watchers of one waiter. They live on the heap, where libev keeps their addresses, and are stopped before they are freed.

typealias Watch = UnsafeMutablePointer<door_watch>

extension Watch {
  /// Prepares memory for `waiter`, which must outlive the watch: `Poller.forget` takes it back.
  func prepare(for waiter: Waiter) {
    initialize(to: door_watch())
    let owner = Unmanaged.passUnretained(waiter).toOpaque()
    door_io_init(
      door_watch_io(self),
      { _, watcher, events in
        guard let owner = watcher?.pointee.data else { return }
        // EV_ERROR comes when libev has given the watcher up; the system call will say why, so it is told as both.
        let failed = UInt32(bitPattern: events) & UInt32(truncatingIfNeeded: EV_ERROR) != 0
        // Not retained: it outlives the watch, and the station lets go of a connection only at the end of the turn.
        Unmanaged<Waiter>.fromOpaque(owner)._withUnsafeGuaranteedRef {
          $0.ready(toRead: failed || events & Int32(EV_READ) != 0, toWrite: failed || events & Int32(EV_WRITE) != 0)
        }
      }, -1, 0)
    pointee.io.data = owner
    door_timer_init(
      door_watch_timer(self),
      { _, watcher, _ in
        guard let owner = watcher?.pointee.data else { return }
        let waiter = Unmanaged<Waiter>.fromOpaque(owner).takeUnretainedValue()
        waiter.deadline = .never
        waiter.deadlineReached()
      }, 0, 0)
    pointee.timer.data = owner
  }

  func setInterest(_ waiter: Waiter, on ev: OpaquePointer) {
    let io = door_watch_io(self)
    ev_io_stop(ev, io)
    guard waiter.reads || waiter.writes else { return }
    door_io_set(io, waiter.descriptor, Int32((waiter.reads ? EV_READ : 0) | (waiter.writes ? EV_WRITE : 0)))
    ev_io_start(ev, io)
  }

  func setDeadline(_ deadline: Moment, on ev: OpaquePointer) {
    let timer = door_watch_timer(self)
    ev_timer_stop(ev, timer)
    guard deadline != .never else { return }
    // libev counts from the moment it last looked at the clock; after a turn of 200 ms a timer of 50 ms would fire at once.
    ev_now_update(ev)
    door_timer_set(timer, Double(Swift.max(0, deadline - Moment(nanoseconds: monotonicNanoseconds()))) / 1e9, 0)
    ev_timer_start(ev, timer)
  }
}
