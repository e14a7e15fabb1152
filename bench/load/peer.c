#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { READ_BYTES = 256 * 1024, SETUP_SECONDS = 60 };

/* One buffer for all peers: it stays in the processor's cache, and a thousand peers need no thousand buffers. The incomplete end of a read is kept in the peer. */
static uint8_t buffer[CARRY_BYTES + READ_BYTES];
static size_t at, end;

_Noreturn void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("load: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  exit(1);
}

_Noreturn void fail_unexpected(const struct frame *frame) {
  uint32_t id = method_of(frame);
  if ((id == CONNECTION_CLOSE || id == CHANNEL_CLOSE) && frame->size > 7 && frame->size >= 7u + frame->payload[6])
    fail("the broker closed: %.*s", frame->payload[6], (const char *)frame->payload + 7);
  if (frame->kind == FRAME_METHOD) fail("unexpected method %u.%u", id >> 16, id & 0xFFFF);
  fail("unexpected frame of type %d", frame->kind);
}

bool read_frames(struct peer *peer) {
  memcpy(buffer, peer->carry, peer->carried);
  ssize_t count = read(peer->fd, buffer + peer->carried, READ_BYTES);
  if (count == 0) fail("the broker closed a connection");
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count < 0) fail("reading: %s", strerror(errno));
  at = 0;
  end = peer->carried + count;
  peer->carried = 0;
  return true;
}

/* Skips the unread rest of a body; false if it continues in the next read. */
static bool skip_body(struct peer *peer) {
  size_t count = end - at < (size_t)peer->skip ? end - at : (size_t)peer->skip;
  at += count;
  peer->skip -= count;
  if (peer->skip) return false;
  if (buffer[at - 1] != FRAME_END) fail("a frame without its end byte");
  return true;
}

bool next_frame(struct peer *peer, struct frame *frame) {
  if (peer->skip && !skip_body(peer)) return false;
  size_t left = end - at;
  const uint8_t *start = buffer + at;
  if (left >= FRAME_OVERHEAD) {
    frame->kind = start[0];
    frame->size = get32(start + 3);
    frame->payload = start + 7;
    size_t whole = (size_t)frame->size + FRAME_OVERHEAD;
    if (whole > FRAME_MAX) fail("a frame larger than agreed, or no frame");
    if (left >= whole) {
      if (start[whole - 1] != FRAME_END) fail("a frame without its end byte");
      at += whole;
      return true;
    }
    if (frame->kind == FRAME_BODY && left >= 7 + STAMP_BYTES) {
      peer->skip = whole - left;
      at = end;
      return true;
    }
  }
  if (left > CARRY_BYTES) fail("a method or header of more than %d bytes", CARRY_BYTES);
  memcpy(peer->carry, start, left);
  peer->carried = left;
  return false;
}

uint32_t method_of(const struct frame *frame) {
  return frame->kind == FRAME_METHOD && frame->size >= 4 ? get32(frame->payload) : 0;
}

void write_out(struct peer *peer) {
  while (peer->out_left) {
    ssize_t count = write(peer->fd, peer->out, peer->out_left);
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) fail("writing: %s", strerror(errno));
    peer->out += count;
    peer->out_left -= count;
  }
}

void watch(struct peer *peer, uint32_t interest) {
  if (peer->interest == interest) return;
  struct epoll_event event = {.events = interest, .data.ptr = peer};
  if (epoll_ctl(run.epoll, peer->interest ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, peer->fd, &event))
    fail("epoll: %s", strerror(errno));
  peer->interest = interest;
}

void request(struct peer *peer, struct bytes *bytes, uint32_t answer) {
  peer->out = bytes->at;
  peer->out_left = bytes->length;
  write_out(peer);
  if (peer->out_left) fail("the broker did not read for %d seconds", SETUP_SECONDS);
  bytes->length = 0;
  for (;;) {
    if (!read_frames(peer)) fail("no answer for %d seconds", SETUP_SECONDS);
    struct frame frame;
    while (next_frame(peer, &frame)) {
      if (frame.kind == FRAME_HEARTBEAT) continue;
      if (method_of(&frame) != answer) fail_unexpected(&frame);
      return; /* a broker answers one by one: nothing is behind it */
    }
  }
}

void call(struct peer *peer, uint32_t answer, uint32_t id, const char *format, ...) {
  struct bytes bytes = {0};
  va_list arguments;
  va_start(arguments, format);
  put_method_list(&bytes, 1, id, format, arguments);
  va_end(arguments);
  request(peer, &bytes, answer);
  free(bytes.at);
}

static int open_socket(int type, int wanted_error) {
  char port[8];
  snprintf(port, sizeof port, "%d", (int)options.port);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
  if (getaddrinfo(options.host, port, &hints, &addresses)) fail("no host %s", options.host);
  int fd = socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | type, 0), on = 1;
  if (fd < 0 || (connect(fd, addresses->ai_addr, addresses->ai_addrlen) && errno != wanted_error))
    fail("connecting: %s", strerror(errno));
  freeaddrinfo(addresses);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

int open_nonblocking_socket(void) { return open_socket(SOCK_NONBLOCK, EINPROGRESS); }

static int open_blocking_socket(void) {
  int fd = open_socket(0, 0);
  struct timeval bound = {.tv_sec = SETUP_SECONDS};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
  return fd;
}

void set_nonblocking(struct peer *peer) {
  if (fcntl(peer->fd, F_SETFL, O_NONBLOCK)) fail("fcntl: %s", strerror(errno));
  watch(peer, EPOLLIN);
}

void put_protocol(struct bytes *to) { put(to, "AMQP\0\0\x09\x01", 8); }

void put_login(struct bytes *to) {
  char login[256];
  int length = snprintf(login, sizeof login, "%c%s%c%s", 0, options.user, 0, options.password);
  put_method(to, 0, CONNECTION_START_OK, "etTt", "PLAIN", login, (size_t)length, "en_US");
}

void put_opening(struct bytes *to) {
  /* No heartbeats: a run is short, and a broken connection shows as an error or as missing messages. */
  put_method(to, 0, CONNECTION_TUNE_OK, "sls", 2047, FRAME_MAX, 0);
  put_method(to, 0, CONNECTION_OPEN, "ttb", "/", "", 0);
}

void connect_peer(struct peer *peer) {
  *peer = (struct peer){.fd = open_blocking_socket()};
  struct bytes bytes = {0};
  put_protocol(&bytes);
  request(peer, &bytes, CONNECTION_START);
  put_login(&bytes);
  request(peer, &bytes, CONNECTION_TUNE);
  put_opening(&bytes);
  request(peer, &bytes, CONNECTION_OPEN_OK);
  put_method(&bytes, 1, CHANNEL_OPEN, "t", "");
  request(peer, &bytes, CHANNEL_OPEN_OK);
  free(bytes.at);
}
