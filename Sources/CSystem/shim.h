// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What doord needs of glibc that Swift's Glibc module leaves out: getopt.h, and calls that are declared only with _GNU_SOURCE.

#ifndef DOOR_CSYSTEM_SHIM_H
#define DOOR_CSYSTEM_SHIM_H

#include <getopt.h>
#include <stddef.h>

/// Linux, pthread_setname_np(3). At most 15 bytes.
extern int pthread_setname_np(unsigned long thread, const char *name);

/// Linux, sched_getaffinity(2): one bit for each processor that the process may use.
extern int sched_getaffinity(int process, size_t size, void *set);

#endif
