// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT
//
// libev's watcher initialisers are macros, which Swift cannot see; each has a function here.
// _GNU_SOURCE is never defined in this header: with it, fd_set clashes with Glibc's module. A call that needs it
// gets its own prototype below instead.
#ifndef DOOR_CLIBEV_SHIM_H
#define DOOR_CLIBEV_SHIM_H

#include <ev.h>

typedef void (*door_io_callback)(struct ev_loop *, ev_io *, int);
typedef void (*door_timer_callback)(struct ev_loop *, ev_timer *, int);
typedef void (*door_async_callback)(struct ev_loop *, ev_async *, int);

static inline void door_io_init(ev_io *w, door_io_callback cb, int fd, int events) { ev_io_init(w, cb, fd, events); }
/// Only for a stopped watcher.
static inline void door_io_set(ev_io *w, int fd, int events) { ev_io_set(w, fd, events); }
static inline void door_timer_init(ev_timer *w, door_timer_callback cb, double after, double repeat) { ev_timer_init(w, cb, after, repeat); }
/// Only for a stopped watcher.
static inline void door_timer_set(ev_timer *w, double after, double repeat) { ev_timer_set(w, after, repeat); }
static inline void door_async_init(ev_async *w, door_async_callback cb) { ev_async_init(w, cb); }

/// A descriptor and a deadline of one waiter, in one block.
typedef struct {
  ev_io io;
  ev_timer timer;
} door_watch;
// The members' own addresses: libev keeps them, and Swift promises an address only for the length of a call.
static inline ev_io *door_watch_io(door_watch *w) { return &w->io; }
static inline ev_timer *door_watch_timer(door_watch *w) { return &w->timer; }

/// Linux, accept4(2): declared with _GNU_SOURCE only. <sys/socket.h> is not included here: its names would then be this module's and
/// no longer Glibc's.
struct sockaddr;
extern int accept4(int fd, struct sockaddr *address, unsigned *length, int flags);

/// Linux, pthread_setname_np(3): declared with _GNU_SOURCE only. At most 15 bytes.
extern int pthread_setname_np(unsigned long thread, const char *name);

/// SO_PEERCRED's answer (socket(7)): struct ucred needs _GNU_SOURCE, its layout is fixed by the kernel.
typedef struct { int pid; unsigned uid; unsigned gid; } door_ucred;

#endif
