// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The soak's client: many connections on one thread, four requests in five as they should be, one bad or cut. Every answer is checked:
// whole, and with the status that its request deserves. Prints one line of JSON a second; the last one is the sum of all.
//
// client PORT SECONDS RATE CONNECTIONS SEED

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { maxConnections = 1024, bodyRoom = 300 * 1024, answerRoom = 512 * 1024 };

// What the client does behind the bytes it has sent.
enum ending { awaitAnswer, closePlainly, resetAtOnce, halfClose, resetInAnswer };

struct kind {
  const char *name;
  int weight;          // of 1000
  int status;          // of the answer; 0: none may come
  enum ending ending;
  const char *head;    // with Host and the empty line; "%zu" takes the body's length
  int smallest, largest;  // of the body
  int isHEAD;
};

#define HOST "Host: localhost\r\n"
static const struct kind kinds[] = {
  {"hello", 560, 200, awaitAnswer, "GET /hello HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"query and headers", 60, 200, awaitAnswer, "GET /hello?a=1&b=%%20 HTTP/1.1\r\n" HOST "Accept: */*\r\nUser-Agent: soak\r\nX-Long: 0123456789012345678901234567890123456789\r\n\r\n", 0, 0, 0},
  {"head only", 40, 200, awaitAnswer, "HEAD /hello HTTP/1.1\r\n" HOST "\r\n", 0, 0, 1},
  {"echo", 80, 200, awaitAnswer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", 1, 4000, 0},
  {"large echo", 10, 200, awaitAnswer, "PUT /echo HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", 60000, 250000, 0},
  {"wait", 30, 200, awaitAnswer, "GET /wait?seconds=0 HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"status", 20, 200, awaitAnswer, "GET /status HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  // From here on: bad or cut, 200 of 1000.
  {"not found", 20, 404, awaitAnswer, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"not allowed", 10, 405, awaitAnswer, "DELETE /hello HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"foreign name", 10, 421, awaitAnswer, "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 0, 0, 0},
  {"LF only", 15, 400, awaitAnswer, "GET /hello HTTP/1.1\n" "Host: localhost\n\n", 0, 0, 0},
  {"no request", 15, 400, awaitAnswer, "\x16\x03\x01", 0, 0, 0},
  {"chunked", 15, 400, awaitAnswer, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0, 0, 0},
  {"too large", 10, 413, awaitAnswer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 33554433\r\n\r\n", 0, 0, 0},
  {"two requests", 15, 200, awaitAnswer, "GET /hello HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"half a head, closed", 15, 0, closePlainly, "GET /hello HTTP/1.1\r\nHost: lo", 0, 0, 0},
  {"half a head, reset", 15, 0, resetAtOnce, "GET /hello HTTP/1.1\r\nHost: lo", 0, 0, 0},
  {"half a head, half-closed", 15, 0, halfClose, "GET /hello HTTP/1.1\r\nHost: lo", 0, 0, 0},
  {"half a body, half-closed", 10, 0, halfClose, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nabc", 0, 0, 0},
  {"whole, reset at once", 15, 0, resetAtOnce, "GET /hello HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"wait, closed", 10, 0, closePlainly, "GET /wait?seconds=25 HTTP/1.1\r\n" HOST "\r\n", 0, 0, 0},
  {"reset in the answer", 10, 0, resetInAnswer, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", 100000, 250000, 0},
};
enum { kindCount = sizeof kinds / sizeof kinds[0], firstBad = 7 };

struct connection {
  int fd;
  const struct kind *kind;
  char *out;
  size_t outCount, sent, bodyCount;
  char *in;
  size_t inCount;
  uint64_t began;
};

static struct connection connections[maxConnections];
static uint64_t counts[kindCount], wrong[kindCount], trouble;
static int epoll, port;
static uint64_t seed;

static uint64_t randomNumber(void) {  // xorshift64*
  seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
  return seed * 2685821657736338717ull;
}

static uint64_t now(void) {  // milliseconds
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void finish(struct connection *c, int isRight, const char *why) {
  size_t index = (size_t)(c->kind - kinds);
  counts[index]++;
  if (!isRight && wrong[index]++ < 5)
    fprintf(stderr, "%s: %s, after %zu bytes: %.80s\n", c->kind->name, why, c->inCount, c->inCount ? c->in : "");
  close(c->fd);
  c->fd = -1;
}

static void resetConnection(struct connection *c) {
  struct linger linger = {1, 0};
  setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

// Whether what was read is one whole answer with the status that is due, and the echo its body.
static int isRight(struct connection *c) {
  const struct kind *kind = c->kind;
  if (kind->status == 0) return c->inCount == 0;
  c->in[c->inCount] = 0;
  char start[32];
  snprintf(start, sizeof start, "HTTP/1.1 %d ", kind->status);
  if (strncmp(c->in, start, strlen(start))) return 0;
  char *end = strstr(c->in, "\r\n\r\n"), *length = strcasestr(c->in, "\r\ncontent-length: ");
  if (!end || !length || length > end) return 0;
  size_t head = (size_t)(end + 4 - c->in), body = strtoul(length + 18, NULL, 10);
  if (kind->isHEAD) return c->inCount == head && body > 0;
  if (c->inCount != head + body) return 0;
  return c->bodyCount == 0 || (body == c->bodyCount && !memcmp(end + 4, c->out + c->outCount - body, body));
}

static void begin(struct connection *c) {
  int pick = (int)(randomNumber() % 1000), index = 0;
  while (index < kindCount - 1 && pick >= kinds[index].weight) pick -= kinds[index++].weight;
  const struct kind *kind = c->kind = &kinds[index];
  c->bodyCount = kind->largest ? (size_t)kind->smallest + randomNumber() % (uint64_t)(kind->largest - kind->smallest + 1) : 0;
  c->outCount = (size_t)snprintf(c->out, 1024, kind->head, c->bodyCount);
  for (size_t i = 0; i < c->bodyCount; i++) c->out[c->outCount + i] = (char)(i * 31 + c->bodyCount);
  c->outCount += c->bodyCount;
  c->sent = c->inCount = 0;
  c->began = now();

  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  // Many source addresses, so that ports in TIME_WAIT never run out.
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002 + (uint32_t)(randomNumber() % 200))};
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1;
  if (c->fd >= 0) {
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(c->fd, IPPROTO_IP, 24 /* IP_BIND_ADDRESS_NO_PORT */, &one, sizeof one);
  }
  if (c->fd < 0 || bind(c->fd, (struct sockaddr *)&from, sizeof from)
      || (connect(c->fd, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS)) {
    trouble++;
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    return;
  }
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void advance(struct connection *c) {
  const struct kind *kind = c->kind;
  while (c->sent < c->outCount) {
    ssize_t count = send(c->fd, c->out + c->sent, c->outCount - c->sent, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == ENOTCONN)) break;
    if (count < 0) return finish(c, 0, strerror(errno));
    c->sent += (size_t)count;
    if (c->sent < c->outCount) continue;
    if (kind->ending == closePlainly) return finish(c, 1, "");
    if (kind->ending == resetAtOnce) return resetConnection(c), finish(c, 1, "");
    if (kind->ending == halfClose) shutdown(c->fd, SHUT_WR);
  }
  for (;;) {
    ssize_t count = recv(c->fd, c->in + c->inCount, answerRoom - 1 - c->inCount, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) return finish(c, 0, strerror(errno));
    if (count == 0) return finish(c, isRight(c), "not the answer that is due");
    c->inCount += (size_t)count;
    if (kind->ending == resetInAnswer) return resetConnection(c), finish(c, 1, "");
    if (c->inCount == answerRoom - 1) return finish(c, 0, "too long");
  }
}

static void report(uint64_t since, int isLast) {
  uint64_t all = 0, bad = 0, wrongAll = 0;
  for (int i = 0; i < kindCount; i++) all += counts[i], bad += i >= firstBad ? counts[i] : 0, wrongAll += wrong[i];
  printf("{\"seconds\":%.3f,\"requests\":%lu,\"bad\":%lu,\"wrong\":%lu,\"trouble\":%lu", (double)(now() - since) / 1000, all, bad, wrongAll, trouble);
  if (isLast) {
    printf(",\"kinds\":{");
    for (int i = 0; i < kindCount; i++) printf("%s\"%s\":[%lu,%lu]", i ? "," : "", kinds[i].name, counts[i], wrong[i]);
    printf("}");
  }
  printf("}\n");
  fflush(stdout);
}

int main(int count, char **arguments) {
  if (count != 6) return 2;
  port = atoi(arguments[1]);
  double seconds = atof(arguments[2]), rate = atof(arguments[3]);
  int open = atoi(arguments[4]);
  seed = strtoul(arguments[5], NULL, 10) * 2654435761u + 1;
  if (open < 1 || open > maxConnections) return 2;
  epoll = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < open; i++) {
    connections[i] = (struct connection){.fd = -1, .out = malloc(bodyRoom), .in = malloc(answerRoom)};
    if (!connections[i].out || !connections[i].in) return 1;
  }
  uint64_t start = now(), end = start + (uint64_t)(seconds * 1000), second = start + 1000, begun = 0;
  for (;;) {
    uint64_t time = now();
    int busy = 0;
    for (int i = 0; i < open; i++) {
      struct connection *c = &connections[i];
      // Twenty seconds is far more than anything here takes.
      if (c->fd >= 0 && time - c->began > 20000) finish(c, 0, "no end after 20 s");
      if (c->fd < 0 && time < end && (double)begun < rate * (double)(time - start + 1) / 1000) begin(c), begun++;
      busy += c->fd >= 0;
    }
    if (!busy && time >= end) break;
    if (time >= second) report(start, 0), second += 1000;
    struct epoll_event events[256];
    int ready = epoll_wait(epoll, events, 256, 1);
    for (int i = 0; i < ready; i++) {
      struct connection *c = events[i].data.ptr;
      if (c->fd >= 0) advance(c);
    }
  }
  report(start, 1);
  return 0;
}
