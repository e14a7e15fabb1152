#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* How much is handed to the socket at once when nothing else limits it, and how often before others have their turn. */
enum { CHUNK_BYTES = 256 * 1024, CHUNKS = 2 };

/* Messages are encoded once, into a block that begins again with the first turn after the last. All have the same
 * length, so number n of the block stands at n * message_bytes. */
static void encode_block(struct publisher *publisher, int64_t number) {
  struct bytes *block = &publisher->block;
  char expiration[24];
  snprintf(expiration, sizeof expiration, "%lld", (long long)options.expiration);
  while (block->length < CHUNK_BYTES)
    for (int64_t turn = 0; turn < turns(); turn++) {
      size_t start = block->length;
      struct name key = routing_key(number, turn);
      struct properties properties = {options.priorities ? (int)turn : -1, options.expiration ? expiration : NULL,
                                      options.delay};
      publisher->body_at = (int64_t)(put_message(block, exchange_name(), key.text, properties, options.body) - start);
      publisher->message_bytes = (int64_t)(block->length - start);
      publisher->block_messages++;
    }
  publisher->batch = options.batch ? options.batch : CHUNK_BYTES / publisher->message_bytes + 1;
}

void open_publisher(struct publisher *publisher, int64_t number) {
  connect_peer(&publisher->peer);
  if (options.window) {
    call(&publisher->peer, CONFIRM_SELECT_OK, CONFIRM_SELECT, "b", 0);
    publisher->seen = calloc((size_t)options.messages / 64 + 1, sizeof *publisher->seen);
    if (!publisher->seen) fail("out of memory");
  }
  encode_block(publisher, number);
}

/* How many messages may be sent now: as the window and the rate allow, and as the block has before its end. */
static int64_t room(const struct publisher *publisher, int64_t now) {
  int64_t count = options.messages - publisher->handed;
  if (options.window) {
    int64_t open = options.window - (publisher->handed - publisher->confirmed);
    if (open < count) count = open;
  }
  if (options.rate) {
    int64_t due = (int64_t)((double)(now - run.started_ns) * 1e-9 * (double)options.rate) + 1 - publisher->handed;
    if (due < count) count = due;
  }
  if (publisher->batch < count) count = publisher->batch;
  int64_t in_block = publisher->block_messages - publisher->next;
  return in_block < count ? in_block : count;
}

static void hand_over(struct publisher *publisher, int64_t count, int64_t now) {
  uint8_t *messages = publisher->block.at + publisher->next * publisher->message_bytes;
  if (options.body >= STAMP_BYTES)
    for (int64_t i = 0; i < count; i++)
      memcpy(messages + i * publisher->message_bytes + publisher->body_at, &now, STAMP_BYTES);
  publisher->peer.out = messages;
  publisher->peer.out_left = (size_t)(count * publisher->message_bytes);
  publisher->handed += count;
  publisher->next = (publisher->next + count) % publisher->block_messages;
  run.sent += count;
  run.last_event_ns = now;
}

/* Sends what may be sent now. The loop calls it again when confirms arrive, when it is time, or when the socket is writable: a message does not change before it is written completely. */
void publish(struct publisher *publisher) {
  struct peer *peer = &publisher->peer;
  write_out(peer);
  for (int chunk = 0; !peer->out_left && chunk < CHUNKS; chunk++) {
    int64_t now = now_ns(), count = room(publisher, now);
    if (count <= 0) break;
    hand_over(publisher, count, now);
    write_out(peer);
  }
  bool is_free_to_send = !options.window && !options.rate && publisher->handed < options.messages;
  watch(peer, peer->out_left || is_free_to_send ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static bool is_seen(const struct publisher *publisher, int64_t tag) {
  return publisher->seen[tag >> 6] & 1ULL << (tag & 63);
}

/* Counts a message once, whatever the order of the confirms. */
static void confirm(struct publisher *publisher, int64_t tag) {
  if (is_seen(publisher, tag)) return;
  publisher->seen[tag >> 6] |= 1ULL << (tag & 63);
  publisher->confirmed++;
  run.confirmed++;
}

static void settle(struct publisher *publisher, int64_t tag, bool multiple) {
  if (tag < 1 || tag > publisher->handed) fail("a confirm of message %lld, which was not sent", (long long)tag);
  if (multiple)
    for (int64_t below = publisher->confirmed_below + 1; below < tag; below++) confirm(publisher, below);
  confirm(publisher, tag);
  while (publisher->confirmed_below < publisher->handed && is_seen(publisher, publisher->confirmed_below + 1))
    publisher->confirmed_below++;
}

void read_confirms(struct publisher *publisher) {
  if (!read_frames(&publisher->peer)) return;
  struct frame frame;
  while (next_frame(&publisher->peer, &frame)) {
    if (frame.kind == FRAME_HEARTBEAT) continue;
    if (method_of(&frame) == BASIC_NACK) fail("the broker nacked a message");
    if (method_of(&frame) != BASIC_ACK || frame.size < 13 || !options.window) fail_unexpected(&frame);
    settle(publisher, (int64_t)get64(frame.payload + 4), frame.payload[12] & 1);
  }
  run.last_event_ns = now_ns();
  publish(publisher);
}
