/* A relay between two sockets that does nothing else: what the system takes of a message, whatever a broker does.
 *
 * relay BYTES MESSAGES RATE [NAP_US]
 *
 * One process writes messages of BYTES octets, at RATE per second (0: as fast as it can), and reads them back. The other
 * copies from socket to socket, all that a read brings by one write, and sleeps NAP_US after each. Prints one JSON object:
 * messages per second, and the relay's processor time and number of reads per message. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024 };

static char buffer[BUFFER_BYTES];
static int64_t message_bytes, messages, rate, nap_us;

static void fail(const char *what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  exit(2);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double cpu_us(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void watch(int epoll, int operation, int fd, uint32_t events) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll, operation, fd, &event)) fail("epoll");
}

static int prepared(int fd) {
  int on = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) || fcntl(fd, F_SETFL, O_NONBLOCK))
    fail("socket");
  return fd;
}

/* Copies until the end of the input. While the output is full, the input is not read. */
static void relay(int in, int out) {
  int epoll = epoll_create1(0);
  watch(epoll, EPOLL_CTL_ADD, in, EPOLLIN);
  watch(epoll, EPOLL_CTL_ADD, out, 0);
  int64_t reads = 0;
  for (;;) {
    struct epoll_event event;
    if (epoll_wait(epoll, &event, 1, -1) < 0) continue;
    ssize_t got = read(in, buffer, sizeof buffer);
    if (got < 0) continue;
    if (!got) break;
    reads++;
    for (ssize_t at = 0; at < got;) {
      ssize_t put = write(out, buffer + at, (size_t)(got - at));
      if (put > 0) {
        at += put;
      } else {
        watch(epoll, EPOLL_CTL_MOD, in, 0);
        watch(epoll, EPOLL_CTL_MOD, out, EPOLLOUT);
        epoll_wait(epoll, &event, 1, -1);
        watch(epoll, EPOLL_CTL_MOD, in, EPOLLIN);
        watch(epoll, EPOLL_CTL_MOD, out, 0);
      }
    }
    if (nap_us) usleep((useconds_t)nap_us);
  }
  printf("\"cpu_us_per_message\": %.3f, \"reads_per_message\": %.3f}\n", cpu_us(RUSAGE_SELF) / (double)messages,
         (double)reads / (double)messages);
}

static void generate(int out, int in) {
  int epoll = epoll_create1(0), timer = -1;
  watch(epoll, EPOLL_CTL_ADD, in, EPOLLIN);
  watch(epoll, EPOLL_CTL_ADD, out, rate ? 0 : EPOLLOUT);
  if (rate) {
    struct timespec step = {.tv_sec = rate == 1, .tv_nsec = 1000000000 / rate % 1000000000};
    struct itimerspec every = {step, step};
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (timer < 0 || timerfd_settime(timer, 0, &every, NULL)) fail("timer");
    watch(epoll, EPOLL_CTL_ADD, timer, EPOLLIN);
  }
  int64_t all = messages * message_bytes, sent = 0, received = 0;
  double start = now_s();
  while (received < all) {
    struct epoll_event event;
    uint64_t ticks;
    epoll_wait(epoll, &event, 1, -1);
    if (timer >= 0 && read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) fail("timer");
    for (;;) {
      int64_t due = rate ? (int64_t)((now_s() - start) * (double)rate) * message_bytes : all;
      int64_t left = (due < all ? due : all) - sent;
      if (left <= 0) break;
      ssize_t put = write(out, buffer, (size_t)(left < BUFFER_BYTES ? left : BUFFER_BYTES));
      if (put <= 0) break;
      sent += put;
    }
    if (sent == all) watch(epoll, EPOLL_CTL_MOD, out, 0);
    for (ssize_t got; (got = read(in, buffer, sizeof buffer)) > 0;) received += got;
  }
  printf("{\"rate\": %.0f, ", (double)messages / (now_s() - start));
  fflush(stdout);
}

/* The time to copy a message from memory to memory, from one of many places to another. */
static double copy_us(void) {
  size_t size = (size_t)message_bytes, places = (64u << 20) / size, copies = 4 * places;
  char *from = malloc(places * size), *to = malloc(places * size);
  if (!from || !to) fail("memory");
  memset(from, 1, places * size);
  memset(to, 2, places * size);
  double start = now_s();
  for (size_t i = 0; i < copies; i++) memcpy(to + i % places * size, from + i % places * size, size);
  double took = (now_s() - start) * 1e6 / (double)copies;
  free(from);
  free(to);
  return took;
}

int main(int count, char **words) {
  if (count < 4) {
    fputs("usage: relay BYTES MESSAGES RATE [NAP_US]\n", stderr);
    return 2;
  }
  message_bytes = atoll(words[1]);
  messages = atoll(words[2]);
  rate = atoll(words[3]);
  nap_us = count > 4 ? atoll(words[4]) : 0;
  if (message_bytes < 1 || messages < 1 || rate < 0 || nap_us < 0) {
    fputs("relay: BYTES and MESSAGES are at least 1, RATE and NAP_US at least 0\n", stderr);
    return 2;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 2) ||
      getsockname(listener, (struct sockaddr *)&address, &size))
    fail("listen");
  pid_t child = fork();
  if (!child) {
    int in = prepared(accept(listener, NULL, NULL));
    relay(in, prepared(accept(listener, NULL, NULL)));
    return 0;
  }
  int out = socket(AF_INET, SOCK_STREAM, 0), in = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(out, (struct sockaddr *)&address, size) || connect(in, (struct sockaddr *)&address, size))
    fail("connect");
  generate(prepared(out), prepared(in));
  printf("\"copy_us\": %.4f, ", copy_us());
  fflush(stdout);
  close(out);
  waitpid(child, NULL, 0);
  return 0;
}
