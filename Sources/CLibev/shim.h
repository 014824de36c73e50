// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT
//
// libev's watcher initialisers are macros, which Swift cannot see; each has a function here.
// _GNU_SOURCE is never defined in this header: with it, fd_set clashes with Glibc's module. A call that needs it
// gets its own prototype below instead.
#ifndef DOOR_CLIBEV_SHIM_H
#define DOOR_CLIBEV_SHIM_H

#include <ev.h>
#include <pthread.h>
#include <sys/socket.h>

typedef void (*door_io_callback)(struct ev_loop *, ev_io *, int);
typedef void (*door_timer_callback)(struct ev_loop *, ev_timer *, int);
typedef void (*door_async_callback)(struct ev_loop *, ev_async *, int);
typedef void (*door_prepare_callback)(struct ev_loop *, ev_prepare *, int);
typedef void (*door_check_callback)(struct ev_loop *, ev_check *, int);
typedef void (*door_idle_callback)(struct ev_loop *, ev_idle *, int);
typedef void (*door_signal_callback)(struct ev_loop *, ev_signal *, int);

static inline void door_io_init(ev_io *w, door_io_callback cb, int fd, int events) { ev_io_init(w, cb, fd, events); }
/// Only for a stopped watcher.
static inline void door_io_set(ev_io *w, int fd, int events) { ev_io_set(w, fd, events); }
static inline void door_timer_init(ev_timer *w, door_timer_callback cb, double after, double repeat) { ev_timer_init(w, cb, after, repeat); }
/// Only for a stopped watcher.
static inline void door_timer_set(ev_timer *w, double after, double repeat) { ev_timer_set(w, after, repeat); }
static inline void door_async_init(ev_async *w, door_async_callback cb) { ev_async_init(w, cb); }
static inline void door_prepare_init(ev_prepare *w, door_prepare_callback cb) { ev_prepare_init(w, cb); }
static inline void door_check_init(ev_check *w, door_check_callback cb) { ev_check_init(w, cb); }
static inline void door_idle_init(ev_idle *w, door_idle_callback cb) { ev_idle_init(w, cb); }
static inline void door_signal_init(ev_signal *w, door_signal_callback cb, int signum) { ev_signal_init(w, cb, signum); }
static inline int door_is_active(void *w) { return ev_is_active((ev_watcher *)w); }

/// Linux, accept4(2): declared with _GNU_SOURCE only.
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);

/// Linux, pthread_setname_np(3): declared with _GNU_SOURCE only. At most 15 bytes.
extern int pthread_setname_np(pthread_t thread, const char *name);

/// SO_PEERCRED's answer (socket(7)): struct ucred needs _GNU_SOURCE, its layout is fixed by the kernel.
typedef struct { int pid; unsigned uid; unsigned gid; } door_ucred;

#endif
