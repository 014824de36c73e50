// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT
//
// The least a server can do for one request on its own connection: accept, one recv, one send, close, on one thread with
// epoll, each answer the same bytes. It reads no request and has no deadline: what a real server costs beyond this is its own.
//
// Usage: baseline PORT FILE     listens on 127.0.0.1:PORT, answers with FILE's bytes (at most 64 KiB) whatever is asked
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char answer[65536];
static size_t answer_length;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int listener_on(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  int one = 1, second = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // The connection is accepted with its request at hand, as by nginx `deferred` and by Door.
  setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &second, sizeof second);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die("bind");
  if (listen(fd, 4096) < 0) die("listen");
  return fd;
}

// Returns whether the connection is over; if not, its request has not come yet.
static int serve(int fd) {
  char request[16384];
  ssize_t n = recv(fd, request, sizeof request, 0);
  if (n < 0 && errno == EAGAIN) return 0;
  if (n > 0 && send(fd, answer, answer_length, MSG_NOSIGNAL) != (ssize_t)answer_length) perror("send");
  close(fd);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: baseline PORT FILE\n");
    return 2;
  }
  FILE *file = fopen(argv[2], "rb");
  if (!file) die(argv[2]);
  answer_length = fread(answer, 1, sizeof answer, file);
  fclose(file);

  int listener = listener_on(atoi(argv[1]));
  int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) < 0) die("epoll");

  for (;;) {
    struct epoll_event events[256];
    int count = epoll_wait(poll, events, 256, -1);
    if (count < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < count; i++) {
      if (events[i].data.fd != listener) {
        serve(events[i].data.fd);
        continue;
      }
      int fd;
      while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (serve(fd)) continue;
        struct epoll_event wait = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &wait);
      }
    }
  }
}
