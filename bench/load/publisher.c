#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* How much is handed to the socket at once when nothing else limits it, and how often before others have their turn. */
enum { CHUNK_BYTES = 256 * 1024, CHUNKS = 2 };

/* The messages of a shape in all blocks, each of which differs; and in one block at least. */
enum { SHAPED_MESSAGES = 2048, SHAPED_MESSAGES_LEAST = 16 };

static void encode(struct publisher *publisher, int64_t number, int64_t turn) {
  struct bytes *block = &publisher->block;
  char expiration[24];
  snprintf(expiration, sizeof expiration, "%lld", (long long)options.expiration);
  struct name key = routing_key(number, turn), reply = reply_name();
  struct properties properties = {options.priorities ? (int)(turn % options.priorities) : -1,
                                  options.expiration ? expiration : NULL, options.reply || is_rpc() ? reply.text : NULL};
  size_t start = block->length, body;
  if (*options.shape) {
    struct shaped shaped = put_shaped_message(block, exchange_name(), key.text, unique_at(&key), &properties);
    put(&publisher->marks, shaped.marks, shaped.count * sizeof *shaped.marks);
    body = shaped.body_at;
  } else {
    static struct bytes list;
    list.length = 0;
    put_properties(&list, &properties);
    body = put_message(block, exchange_name(), key.text, &list, NULL, options.body).body - start;
  }
  int64_t count = ++publisher->block_messages;
  publisher->places = realloc(publisher->places, (size_t)(count + 1) * sizeof *publisher->places);
  if (!publisher->places) fail("out of memory");
  publisher->places[count - 1].body = start + body;
  publisher->places[count] = (struct place){block->length, 0, publisher->marks.length / sizeof(struct mark)};
}

/* Messages are encoded once, into a block that begins again with the first turn after the last. */
void encode_block(struct publisher *publisher, int64_t number) {
  publisher->places = calloc(1, sizeof *publisher->places);
  if (!publisher->places) fail("out of memory");
  if (*options.shape) {
    int64_t count = SHAPED_MESSAGES / (options.publishers + options.callers);
    if (count < SHAPED_MESSAGES_LEAST) count = SHAPED_MESSAGES_LEAST;
    for (int64_t i = 0; i < count; i++) encode(publisher, number, (int64_t)pick((uint64_t)turns()));
  } else {
    while (publisher->block.length < CHUNK_BYTES)
      for (int64_t turn = 0; turn < turns(); turn++) encode(publisher, number, turn);
  }
  int64_t mean = (int64_t)publisher->block.length / publisher->block_messages;
  publisher->batch = options.batch ? options.batch : CHUNK_BYTES / mean + 1;
  publisher->salt = (uint64_t)getpid() << 48 ^ (uint64_t)number << 32;
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

/* Renews the digits and the time of a message that is to be sent. */
static void refresh(struct publisher *publisher, const struct place *place, int64_t number, int64_t now) {
  uint8_t *block = publisher->block.at;
  const struct mark *marks = (const struct mark *)publisher->marks.at;
  renew(block + place->start, marks + place->marks, marks + place[1].marks, publisher->salt + (uint64_t)number);
  if (options.body >= STAMP_BYTES || *options.shape) memcpy(block + place->body, &now, STAMP_BYTES);
}

void take_message(struct publisher *publisher, struct bytes *to) {
  const struct place *place = publisher->places + publisher->next;
  refresh(publisher, place, publisher->handed++, now_ns());
  put(to, publisher->block.at + place->start, place[1].start - place->start);
  publisher->next = (publisher->next + 1) % publisher->block_messages;
}

struct name unique_reply_name(const struct publisher *publisher) {
  struct name name = reply_name();
  struct mark mark = {(uint32_t)strlen(name.text) - 8, NEW_REPLY};
  renew((uint8_t *)name.text, &mark, &mark + 1, publisher->salt + (uint64_t)publisher->handed);
  return name;
}

static void hand_over(struct publisher *publisher, int64_t count, int64_t now) {
  const struct place *first = publisher->places + publisher->next;
  for (int64_t i = 0; i < count; i++) refresh(publisher, first + i, publisher->handed + i, now);
  publisher->peer.out = publisher->block.at + first->start;
  publisher->peer.out_left = first[count].start - first->start;
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
