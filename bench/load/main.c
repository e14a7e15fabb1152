/* Puts AMQP 0-9-1 load on a broker and prints one JSON object of what it saw. It is made to cost a small part of what
 * any broker costs: messages are encoded once and sent many to a write, deliveries are counted by their frame headers
 * in one large buffer.
 *
 * Exit status: 0 all sent messages were confirmed and received as asked; 1 an error; 2 wrong options; 3 not all were
 * within the time. */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct run run;
static struct publisher *publishers;
static struct consumer *consumers;
static struct caller *callers;
static struct peer control, *idle;
static struct peer pacer = {.fd = -1}; /* a timer in a peer's clothes: readable when messages are due */

int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static double own_cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* User and system time of all threads of the broker; it counts in steps of 10 ms. */
static double broker_cpu_us(void) {
  char path[64], stat[1024] = "";
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)options.pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  size_t length = fread(stat, 1, sizeof stat - 1, file);
  fclose(file);
  stat[length] = 0;
  /* proc(5): the second field is a name in brackets, of any characters; the 12th and 13th after it are the times. */
  const char *fields = strrchr(stat, ')');
  unsigned long user = 0, system = 0;
  if (fields) sscanf(fields + 1, " %*s %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static bool is_consumer(const struct peer *peer) {
  return (uintptr_t)peer >= (uintptr_t)consumers && (uintptr_t)peer < (uintptr_t)(consumers + options.consumers);
}

static bool is_caller(const struct peer *peer) {
  return (uintptr_t)peer >= (uintptr_t)callers && (uintptr_t)peer < (uintptr_t)(callers + options.callers);
}

static bool is_complete(void) {
  int64_t calls = options.callers * options.messages;
  int64_t all = options.publishers * options.messages + options.sessions + (calls_are_sent() ? calls : 0);
  return run.called == calls && run.sent == all && (!options.window || run.confirmed == all) && run.received >= run.expected;
}

static void publish_due(void) {
  uint64_t ticks;
  if (read(pacer.fd, &ticks, sizeof ticks) != sizeof ticks) return;
  for (int64_t i = 0; i < options.publishers; i++) publish(&publishers[i]);
}

static void meet(struct peer *peer, uint32_t events) {
  if (peer == &pacer) {
    publish_due();
  } else if (is_consumer(peer)) {
    if (events & EPOLLOUT) send_answers((struct consumer *)peer);
    if (events & ~(uint32_t)EPOLLOUT) consume((struct consumer *)peer);
  } else if (is_caller(peer)) {
    hear((struct caller *)peer, events);
  } else {
    if (events & ~(uint32_t)EPOLLOUT) read_confirms((struct publisher *)peer);
    else publish((struct publisher *)peer);
  }
}

/* Runs the loop until `is_over` or the deadline. */
static void loop(bool (*is_over)(void), int64_t deadline_ns) {
  struct epoll_event events[64];
  while (!is_over() && now_ns() < deadline_ns) {
    int count = epoll_wait(run.epoll, events, sizeof events / sizeof *events, 50);
    if (count < 0 && errno != EINTR) fail("epoll: %s", strerror(errno));
    for (int i = 0; i < count; i++) meet(events[i].data.ptr, events[i].events);
  }
}

static bool is_subscribed(void) { return run.registered == options.consumers; }

static void *allocate(int64_t count, size_t size) {
  void *memory = calloc((size_t)count + 1, size);
  if (!memory) fail("out of memory");
  return memory;
}

static void set_up(void) {
  run.epoll = epoll_create1(EPOLL_CLOEXEC);
  run.expected = options.receive;
  if (!options.receive && (options.consumers || calls_are_received()))
    run.expected = (options.publishers * copies() + options.callers) * options.messages;
  connect_peer(&control);
  declare_topology(&control);
  idle = allocate(options.idle, sizeof *idle);
  for (int64_t i = 0; i < options.idle; i++) connect_peer(&idle[i]);
  publishers = allocate(options.publishers, sizeof *publishers);
  for (int64_t i = 0; i < options.publishers; i++) {
    open_publisher(&publishers[i], i);
    set_nonblocking(&publishers[i].peer);
  }
  consumers = allocate(options.consumers, sizeof *consumers);
  for (int64_t i = 0; i < options.consumers; i++) {
    open_consumer(&consumers[i], i);
    set_nonblocking(&consumers[i].peer);
  }
  callers = allocate(options.callers, sizeof *callers);
  for (int64_t i = 0; i < options.callers; i++) open_caller(&callers[i], i);
  loop(is_subscribed, now_ns() + 60000000000LL);
  if (!is_subscribed()) fail("the consumers were not subscribed in time");
}

static void start_pacer(void) {
  pacer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  int64_t interval = 1000000000LL / options.rate;
  struct timespec step = {.tv_sec = interval / 1000000000LL, .tv_nsec = interval % 1000000000LL};
  struct itimerspec every = {.it_interval = step, .it_value = step};
  if (pacer.fd < 0 || timerfd_settime(pacer.fd, 0, &every, NULL)) fail("timer: %s", strerror(errno));
  watch(&pacer, EPOLLIN);
}

static void start(void) {
  run.has_started = true;
  run.started_ns = run.last_event_ns = now_ns();
  if (options.rate) start_pacer();
  for (int64_t i = 0; i < options.publishers; i++) publish(&publishers[i]);
  for (int64_t i = 0; i < options.consumers; i++) send_answers(&consumers[i]);
  for (int64_t i = 0; i < options.callers; i++) start_calling(&callers[i]);
}

static int64_t deadline_ns(void) { return run.started_ns + (int64_t)(options.seconds * 1e9); }

static void print_optional(const char *name, double value) {
  if (value < 0) printf(", \"%s\": null", name);
  else printf(", \"%s\": %.3f", name, value);
}

/* A message is one published or one delivered, whichever were more; a session publishes one. */
static void print_result(double own_us, double broker_us) {
  double seconds = (double)(run.last_event_ns - run.started_ns) * 1e-9;
  int64_t messages = run.sent > run.received ? run.sent : run.received;
  printf("{\"sent\": %lld, \"confirmed\": %lld, \"received\": %lld, \"is_complete\": %s, \"seconds\": %.6f",
         (long long)run.sent, (long long)run.confirmed, (long long)run.received, is_complete() ? "true" : "false", seconds);
  printf(", \"publish_rate\": %.1f, \"receive_rate\": %.1f", (double)run.sent / seconds, (double)run.received / seconds);
  print_optional("latency_p50_us", latency_us(0.5));
  print_optional("latency_p99_us", latency_us(0.99));
  print_optional("latency_p999_us", latency_us(0.999));
  print_optional("latency_max_us", latency_us(1));
  printf(", \"own_cpu_us_per_message\": %.4f, \"own_cpu_share\": %.4f", own_us / (double)messages, own_us / 1e6 / seconds);
  print_optional("broker_cpu_us_per_message", options.pid ? broker_us / (double)messages : -1);
  puts("}");
}

int main(int count, char **arguments) {
  static char prefix[32];
  snprintf(prefix, sizeof prefix, "load-%d", (int)getpid());
  options.prefix = prefix;
  parse_options(count, arguments);
  set_up();
  double own_us = own_cpu_us(), broker_us = broker_cpu_us();
  start();
  for (int64_t i = 0; i < options.sessions && now_ns() < deadline_ns(); i++) run_session(i);
  loop(is_complete, deadline_ns());
  print_result(own_cpu_us() - own_us, broker_cpu_us() - broker_us);
  fflush(stdout);
  if (!is_complete()) return 3;
  if (!options.keep) delete_topology(&control);
  return 0;
}
