// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// What doord needs of glibc that Swift's Glibc module leaves out: getopt.h, and a call that is declared only with _GNU_SOURCE.

#ifndef DOOR_CSYSTEM_SHIM_H
#define DOOR_CSYSTEM_SHIM_H

#include <getopt.h>
#include <stddef.h>

/// Linux, sched_getaffinity(2): one bit for each processor that the process may use.
extern int sched_getaffinity(int process, size_t size, void *set);

#endif
