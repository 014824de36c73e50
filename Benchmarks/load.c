// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT
//
// A load generator that counts exactly: each request on a connection of its own, each answer read to its end, each failure by
// its kind. Two modes:
//   open    at a fixed rate; an answer's latency counts from the moment its request was due, so a server that stalls is not
//           spared the requests it would have received meanwhile
//   closed  a fixed number of connections, each of which asks again as soon as it has its answer
//
// Usage: load open RATE SECONDS ADDRESS PORT PATH [HEADER]
//        load closed CONNECTIONS SECONDS ADDRESS PORT PATH [HEADER]
// One line of JSON on standard output, times in microseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// ---- Latencies: 64 buckets for each power of two of nanoseconds, so a percentile is right to 1.6 %.
enum { SUB = 64, BUCKETS = 64 * SUB };
static uint64_t histogram[BUCKETS], recorded, longest;

static int bucket_of(uint64_t value) {
  if (value < SUB) return (int)value;
  int shift = 63 - __builtin_clzll(value) - 6;
  return (shift + 1) * SUB + (int)((value >> shift) - SUB);
}

static double upper_edge(int bucket) {
  if (bucket < SUB) return bucket;
  int shift = bucket / SUB - 1;
  return (double)((uint64_t)(bucket % SUB + SUB + 1) << shift);
}

static void record(uint64_t nanoseconds) {
  histogram[bucket_of(nanoseconds)]++;
  recorded++;
  if (nanoseconds > longest) longest = nanoseconds;
}

static double percentile(double part) { // in microseconds
  uint64_t wanted = (uint64_t)(part * (double)recorded + 0.999999), seen = 0;
  for (int i = 0; i < BUCKETS; i++)
    if ((seen += histogram[i]) >= wanted && seen > 0) return upper_edge(i) / 1000;
  return 0;
}

// ---- What can go wrong with one request, each counted by itself.
static struct { uint64_t connect, reset, cut, status, timeout; } failures;

struct request {
  int fd;                  // -1: free
  uint64_t due;            // when it should have been sent
  uint32_t received;
  uint32_t length;         // of the whole answer; 0 until its head is in
  char head[4096];
};

static struct request *slots;
static int *free_slots, free_count, slot_count;
static int poll_fd;
static struct sockaddr_in target;
static char question[4096];
static int question_length;
static const uint64_t patience = 10000000000; // ns; then a request counts as timed out

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void release(struct request *r) {
  if (r->fd >= 0) close(r->fd);
  r->fd = -1;
  free_slots[free_count++] = (int)(r - slots);
}

static void begin(uint64_t due) {
  if (free_count == 0) { // more requests under way than descriptors: the server has stopped answering
    failures.timeout++;
    return;
  }
  struct request *r = &slots[free_slots[--free_count]];
  r->due = due;
  r->received = r->length = 0;
  r->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int one = 1;
  if (r->fd >= 0) setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct epoll_event event = {.events = EPOLLOUT, .data.ptr = r};
  if (r->fd < 0 || (connect(r->fd, (struct sockaddr *)&target, sizeof target) < 0 && errno != EINPROGRESS) ||
      epoll_ctl(poll_fd, EPOLL_CTL_ADD, r->fd, &event) < 0) {
    failures.connect++;
    release(r);
  }
}

// The whole answer's length from its head, 0 while the head is not whole, UINT32_MAX if it is not a 200 with a length.
static uint32_t answer_length(const char *head, uint32_t have) {
  const char *end = memmem(head, have, "\r\n\r\n", 4);
  if (!end) return have == sizeof slots->head ? UINT32_MAX : 0;
  if (have < 12 || memcmp(head, "HTTP/1.", 7) != 0 || memcmp(head + 8, " 200", 4) != 0) return UINT32_MAX;
  for (const char *line = head; line < end; line = (const char *)memmem(line, (size_t)(end + 2 - line), "\r\n", 2) + 2)
    if (strncasecmp(line, "content-length:", 15) == 0) return (uint32_t)(end + 4 - head) + (uint32_t)strtoul(line + 15, NULL, 10);
  return UINT32_MAX;
}

// Reads what is there. Returns whether the request is over, its latency or failure recorded.
static int answered(struct request *r) {
  static char rest[65536];
  for (;;) {
    int in_head = r->received < sizeof r->head;
    ssize_t n = in_head ? recv(r->fd, r->head + r->received, sizeof r->head - r->received, 0) : recv(r->fd, rest, sizeof rest, 0);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n < 0) {
      failures.reset++;
      return 1;
    }
    if (n == 0) {
      if (r->length == UINT32_MAX) failures.status++;
      else if (r->length == 0 || r->received != r->length) failures.cut++;
      return 1;
    }
    r->received += (uint32_t)n;
    if (r->length == 0) r->length = answer_length(r->head, r->received);
    // The end of the answer counts; the end of the connection, which is awaited so that the server closes first, does not.
    if (r->received == r->length) record(now() - r->due);
  }
}

static int turn(struct request *r, uint32_t events) { // whether the request is over
  if (events & EPOLLIN || !(events & EPOLLOUT)) return answered(r);
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0 || send(r->fd, question, (size_t)question_length, MSG_NOSIGNAL) != question_length) {
    failures.connect++;
    return 1;
  }
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = r};
  epoll_ctl(poll_fd, EPOLL_CTL_MOD, r->fd, &event);
  return 0;
}

static void wait_for(uint64_t nanoseconds, int again) { // again: a connection that is done asks once more
  struct epoll_event events[256];
  struct timespec timeout = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
  int count = epoll_pwait2(poll_fd, events, 256, &timeout, NULL);
  for (int i = 0; i < count; i++) {
    struct request *r = events[i].data.ptr;
    if (!turn(r, events[i].events)) continue;
    release(r);
    if (again) begin(now());
  }
}

static void expire(uint64_t before) {
  for (int i = 0; i < slot_count; i++)
    if (slots[i].fd >= 0 && slots[i].due < before) {
      failures.timeout++;
      release(&slots[i]);
    }
}

static void run_open(double rate, double seconds) {
  uint64_t start = now(), total = (uint64_t)(rate * seconds), sent = 0;
  while (sent < total) {
    uint64_t due = start + (uint64_t)((double)sent * 1e9 / rate), time = now();
    if (time >= due) {
      begin(due);
      sent++;
      if (sent % 16 == 0) wait_for(0, 0);
    } else {
      wait_for(due - time, 0);
    }
  }
}

static void run_closed(int connections, double seconds) {
  uint64_t end = now() + (uint64_t)(seconds * 1e9);
  for (int i = 0; i < connections; i++) begin(now());
  while (now() < end) wait_for(100000000, 1);
}

int main(int argc, char **argv) {
  int open = argc > 1 && strcmp(argv[1], "open") == 0;
  if (argc < 7 || (!open && strcmp(argv[1], "closed") != 0)) {
    fprintf(stderr, "usage: load open RATE | closed CONNECTIONS  SECONDS ADDRESS PORT PATH [HEADER]\n");
    return 2;
  }
  double amount = atof(argv[2]), seconds = atof(argv[3]);
  target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[5]))};
  if (inet_pton(AF_INET, argv[4], &target.sin_addr) != 1 || amount <= 0 || seconds <= 0) {
    fprintf(stderr, "load: the address is not IPv4, or a number is not positive\n");
    return 2;
  }
  question_length = snprintf(question, sizeof question, "GET %s HTTP/1.1\r\nHost: %s:%s\r\n%s%s\r\n", argv[6], argv[4], argv[5],
                             argc > 7 ? argv[7] : "", argc > 7 ? "\r\n" : "");
  if (question_length >= (int)sizeof question) return 2;

  prctl(PR_SET_TIMERSLACK, 1UL); // a request is due to the microsecond, not to the default 50
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  slot_count = limit.rlim_cur > 10064 ? 10000 : (int)limit.rlim_cur - 64;
  slots = calloc((size_t)slot_count, sizeof *slots);
  free_slots = calloc((size_t)slot_count, sizeof *free_slots);
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (!slots || !free_slots || poll_fd < 0) return 1;
  for (int i = 0; i < slot_count; i++) {
    slots[i].fd = -1;
    free_slots[free_count++] = slot_count - 1 - i;
  }

  uint64_t start = now();
  if (open) run_open(amount, seconds);
  else run_closed((int)amount, seconds);
  double sending = (double)(now() - start) / 1e9;
  uint64_t answered_in_time = recorded;
  for (uint64_t end = now() + patience; free_count < slot_count && now() < end;) wait_for(100000000, 0);
  expire(UINT64_MAX);

  uint64_t failed = failures.connect + failures.reset + failures.cut + failures.status + failures.timeout;
  printf("{\"answers\":%lu,\"seconds\":%.3f,\"rate\":%.1f,\"failed\":%lu,\"connect\":%lu,\"reset\":%lu,\"cut\":%lu,\"status\":%lu,"
         "\"timeout\":%lu,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f,\"requestBytes\":%d}\n",
         recorded, sending, (double)answered_in_time / sending, failed, failures.connect, failures.reset, failures.cut, failures.status,
         failures.timeout, percentile(0.5), percentile(0.9), percentile(0.99), percentile(0.999), (double)longest / 1000, question_length);
  return 0;
}
