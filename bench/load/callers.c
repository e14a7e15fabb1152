/* Connections that ask and wait for the answer before they go on, as applications do: each has one call open. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { EXCLUSIVE = 4, AUTO_DELETE = 8, NO_ACK = 2, GET_NO_ACK = 1 };

/* Each step of a call appends its methods and returns the id of the answer; 0: the call ends with what was appended. */
typedef uint32_t step_function(struct caller *caller, int step);

static void put_next_message(struct caller *caller) {
  take_message(&caller->messages, &caller->out);
  run.sent++;
}

static const char *queue_of(struct caller *caller) {
  caller->queue = routing_key(caller->number, 0);
  return caller->queue.text;
}

static uint32_t get(struct caller *caller, int step) {
  if (step) return 0;
  if (options.ack && caller->tag) put_method(&caller->out, 1, BASIC_ACK, "Lb", (int64_t)caller->tag, 0);
  put_method(&caller->out, 1, BASIC_GET, "stb", 0, queue_of(caller), options.ack ? 0 : GET_NO_ACK);
  return BASIC_GET_OK;
}

static uint32_t use_channel(struct caller *caller, int step) {
  switch (step) {
    case 0: put_method(&caller->out, 1, CHANNEL_OPEN, "t", ""); return CHANNEL_OPEN_OK;
    case 1:
      put_next_message(caller);
      put_method(&caller->out, 1, CHANNEL_CLOSE, "stss", 200, "", 0, 0);
      return CHANNEL_CLOSE_OK;
    default: return 0;
  }
}

static uint32_t declare(struct caller *caller, int step) {
  if (!step) {
    put_method(&caller->out, 1, QUEUE_DECLARE, "stbe", 0, queue_of(caller), options.persistent ? 2 : 0);
    return QUEUE_DECLARE_OK;
  }
  put_next_message(caller);
  return 0;
}

static uint32_t commit(struct caller *caller, int step) {
  if (step) return 0;
  put_next_message(caller);
  put_method(&caller->out, 1, TX_COMMIT, "");
  return TX_COMMIT_OK;
}

static uint32_t request_directly(struct caller *caller, int step) {
  if (step) return 0;
  put_next_message(caller);
  return BASIC_DELIVER;
}

static uint32_t request_with_queue(struct caller *caller, int step) {
  switch (step) {
    case 0:
      caller->queue = unique_reply_name(&caller->messages);
      put_method(&caller->out, 1, QUEUE_DECLARE, "stbe", 0, caller->queue.text, EXCLUSIVE | AUTO_DELETE);
      return QUEUE_DECLARE_OK;
    case 1:
      put_method(&caller->out, 1, BASIC_CONSUME, "sttbe", 0, caller->queue.text, "", NO_ACK);
      return BASIC_CONSUME_OK;
    case 2: put_next_message(caller); return BASIC_DELIVER;
    case 3:
      put_method(&caller->out, 1, QUEUE_DELETE, "stb", 0, caller->queue.text, 0);
      return QUEUE_DELETE_OK;
    default: return 0;
  }
}

static uint32_t connect_and_open(struct caller *caller, int step) {
  switch (step) {
    case 0: put_protocol(&caller->out); return CONNECTION_START;
    case 1: put_login(&caller->out); return CONNECTION_TUNE;
    case 2: put_opening(&caller->out); return CONNECTION_OPEN_OK;
    case 3: put_method(&caller->out, 1, CHANNEL_OPEN, "t", ""); return CHANNEL_OPEN_OK;
    default: run.sent++; return 0;
  }
}

static const struct loop {
  const char *name;
  step_function *step;
  bool has_answers; /* that count as received */
  bool publishes;
} loops[] = {
  {"get", get, .has_answers = true},
  {"channel", use_channel, .publishes = true},
  {"declare", declare, .publishes = true},
  {"tx", commit, .publishes = true},
  {"rpc", request_directly, .has_answers = true, .publishes = true},
  {"rpc-queue", request_with_queue, .has_answers = true, .publishes = true},
  {"connect", connect_and_open, .publishes = false},
};
enum { LOOPS = sizeof loops / sizeof *loops };
static const struct loop *loop;

bool is_loop(const char *name) {
  for (int i = 0; i < LOOPS; i++)
    if (!strcmp(loops[i].name, name)) loop = &loops[i];
  return loop;
}

bool is_rpc(void) { return loop && loop->publishes && loop->has_answers; }

bool has_unique_replies(void) { return loop && loop->step == request_with_queue; }

bool calls_are_received(void) { return loop && loop->has_answers; }

bool calls_are_sent(void) { return loop && (loop->publishes || loop->step == connect_and_open); }

void open_caller(struct caller *caller, int64_t number) {
  caller->number = number;
  caller->peer.fd = -1;
  if (loop->publishes) encode_block(&caller->messages, number);
  if (loop->step == connect_and_open) return;
  connect_peer(&caller->peer);
  if (loop->step == use_channel) call(&caller->peer, CHANNEL_CLOSE_OK, CHANNEL_CLOSE, "stss", 200, "", 0, 0);
  if (loop->step == commit) call(&caller->peer, TX_SELECT_OK, TX_SELECT, "");
  if (loop->step == request_directly)
    call(&caller->peer, BASIC_CONSUME_OK, BASIC_CONSUME, "sttbe", 0, DIRECT_REPLY_TO, "", NO_ACK);
  set_nonblocking(&caller->peer);
}

static void send_out(struct caller *caller) {
  struct peer *peer = &caller->peer;
  peer->out = caller->out.at + caller->written;
  peer->out_left = caller->out.length - caller->written;
  write_out(peer);
  caller->written = caller->out.length - peer->out_left;
  if (!peer->out_left) caller->out.length = caller->written = 0;
  watch(peer, peer->out_left ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Takes the steps that need no answer, up to one that does. */
static void advance(struct caller *caller) {
  while (!(caller->awaited = loop->step(caller, caller->step++))) {
    int64_t now = now_ns();
    add_latency(now - caller->began_ns);
    run.last_event_ns = now;
    run.called++;
    if (loop->has_answers) run.received++;
    if (++caller->done == options.messages) break;
    caller->step = 0;
    caller->began_ns = now;
  }
  if (caller->peer.fd >= 0) send_out(caller);
}

void start_calling(struct caller *caller) {
  caller->began_ns = now_ns();
  if (caller->peer.fd < 0) {
    caller->peer.fd = open_nonblocking_socket();
    watch(&caller->peer, EPOLLIN | EPOLLOUT); /* writable when it is connected */
    caller->awaited = loop->step(caller, caller->step++);
    return;
  }
  advance(caller);
}

static void meet_method(struct caller *caller, const struct frame *frame) {
  uint32_t id = method_of(frame);
  if (id != caller->awaited) fail_unexpected(frame);
  caller->has_content = id == BASIC_DELIVER || id == BASIC_GET_OK;
  if (id == BASIC_GET_OK && frame->size >= 12) caller->tag = get64(frame->payload + 4);
  if (!caller->has_content) advance(caller);
}

void hear(struct caller *caller, uint32_t events) {
  if (events & EPOLLOUT) send_out(caller);
  if (!(events & ~(uint32_t)EPOLLOUT) || !read_frames(&caller->peer)) return;
  struct frame frame;
  while (next_frame(&caller->peer, &frame)) {
    switch (frame.kind) {
      case FRAME_METHOD: meet_method(caller, &frame); continue;
      case FRAME_HEADER:
        if (!caller->has_content || frame.size < 12) fail("a content header that belongs to no method");
        caller->body_left = get64(frame.payload + 4);
        break;
      case FRAME_BODY: caller->body_left -= frame.size; break;
      default: continue;
    }
    if (!caller->body_left) advance(caller);
  }
}
