#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static void subscribe(struct consumer *consumer, const struct bytes *requests) {
  consumer->peer.out = requests->at;
  consumer->peer.out_left = requests->length;
  write_out(&consumer->peer); /* everything: the socket still blocks */
}

/* The last consumer of --reply has the replies. */
static void read_replies(struct consumer *consumer) {
  struct bytes requests = {0};
  put_method(&requests, 1, BASIC_CONSUME, "sttbe", 0, reply_name().text, "", 2);
  consumer->queues = 1;
  consumer->ack = 0;
  subscribe(consumer, &requests);
  free(requests.at);
}

/* Asks for the deliveries of its queues: of one where there are enough consumers, else of each so-many-th. The loop
 * meets the answers, because deliveries may come between them. */
void open_consumer(struct consumer *consumer, int64_t number) {
  connect_peer(&consumer->peer);
  consumer->ack = options.ack;
  consumer->is_responder = is_rpc() || (options.reply && number < options.consumers - 1);
  if (options.reply && !consumer->is_responder) {
    read_replies(consumer);
    return;
  }
  if (options.prefetch) call(&consumer->peer, BASIC_QOS_OK, BASIC_QOS, "lsb", 0, (int)options.prefetch, 0);
  struct bytes requests = {0}, arguments = {0};
  if (options.stream) put_text_field(&arguments, "x-stream-offset", 15, "first");
  int64_t step = options.consumers < options.queues ? options.consumers : options.queues;
  int64_t last = options.consumers < options.queues ? options.queues : number % step + 1;
  for (int64_t queue = number % step; queue < last; queue += step) {
    put_method(&requests, 1, BASIC_CONSUME, "sttbT", 0, consumed_name(queue).text, "", options.ack ? 0 : 2, arguments.at,
               arguments.length);
    consumer->queues++;
  }
  subscribe(consumer, &requests);
  free(requests.at);
  free(arguments.at);
}

/* Acks the message just completed, with those before it, when it is time. Once the run has received what it wants it
 * acks no more, and the broker stops at the prefetch. */
static void settle(struct consumer *consumer) {
  if (!consumer->ack || run.received > run.expected || ++consumer->unacked < consumer->ack) return;
  consumer->unacked = 0;
  static struct bytes ack;
  if (!ack.length) put_method(&ack, 1, BASIC_ACK, "Lb", (int64_t)0, options.ack > 1);
  set64(ack.at + 11, consumer->tag);
  put(&consumer->answers, ack.at, ack.length);
}

/* Publishes a reply, whose body begins with the time in the request's. */
static void respond(struct consumer *consumer) {
  static struct bytes list;
  char body[] = "12345678{\"status\": \"accepted\", \"warnings\": []}";
  memcpy(body, consumer->stamp, STAMP_BYTES);
  list.length = 0;
  put_reply_properties(&list, consumer->correlation_id);
  put_message(&consumer->answers, "", consumer->reply_to, &list, body, sizeof body - 1);
}

static void take_short_string(char *to, const uint8_t **from, const uint8_t *end) {
  if (*from >= end || *from + 1 + **from > end) fail("a short property list");
  memcpy(to, *from + 1, **from);
  to[**from] = 0;
  *from += 1 + **from;
}

/* Keeps what a reply needs of a content header: properties stand in the order of their flags. */
static void read_properties(struct consumer *consumer, const struct frame *frame) {
  const uint8_t *from = frame->payload + 14, *end = frame->payload + frame->size;
  if (from > end) fail("a short content header");
  int flags = frame->payload[12] << 8 | frame->payload[13];
  char other[256];
  *consumer->correlation_id = *consumer->reply_to = 0;
  if (flags & 1 << 15) take_short_string(other, &from, end);
  if (flags & 1 << 14) take_short_string(other, &from, end);
  if (flags & 1 << 13) from += 4 + get32(from);
  from += !!(flags & 1 << 12) + !!(flags & 1 << 11);
  if (flags & 1 << 10) take_short_string(consumer->correlation_id, &from, end);
  if (flags & 1 << 9) take_short_string(consumer->reply_to, &from, end);
  if (!*consumer->reply_to) fail("a request without a reply-to");
}

static void meet_method(struct consumer *consumer, const struct frame *frame) {
  const uint8_t *tag = frame->payload + 5 + frame->payload[4];
  switch (method_of(frame)) {
    case BASIC_DELIVER:
      if (frame->size < 5u + frame->payload[4] + 9) fail("a short deliver method");
      consumer->tag = get64(tag);
      consumer->is_redelivered = tag[8];
      break;
    case BASIC_CONSUME_OK:
      if (++consumer->registered == consumer->queues) run.registered++;
      break;
    default: fail_unexpected(frame);
  }
}

static void meet_body(struct consumer *consumer, const struct frame *frame, int64_t now) {
  if (consumer->is_first && frame->size >= STAMP_BYTES) {
    int64_t sent_ns;
    memcpy(consumer->stamp, frame->payload, STAMP_BYTES);
    memcpy(&sent_ns, frame->payload, STAMP_BYTES);
    /* Of a reply, and of a call, the whole way is measured. */
    if (!consumer->is_responder && !*options.loop) add_latency(now - sent_ns);
  }
  consumer->is_first = false;
  consumer->body_left -= frame->size;
}

/* The message is complete: with --requeue it goes back once. */
static void finish(struct consumer *consumer) {
  enum { REQUEUE = 2 };
  if (options.requeue && !consumer->is_redelivered) {
    put_method(&consumer->answers, 1, BASIC_NACK, "Lb", (int64_t)consumer->tag, REQUEUE);
    return;
  }
  if (consumer->is_responder) respond(consumer);
  else run.received++;
  settle(consumer);
}

void consume(struct consumer *consumer) {
  if (!read_frames(&consumer->peer)) return;
  int64_t now = now_ns();
  struct frame frame;
  while (next_frame(&consumer->peer, &frame)) {
    switch (frame.kind) {
      case FRAME_METHOD: meet_method(consumer, &frame); continue;
      case FRAME_HEADER:
        if (frame.size < 12) fail("a short content header");
        consumer->body_left = get64(frame.payload + 4);
        consumer->is_first = true;
        if (consumer->is_responder) read_properties(consumer, &frame);
        break;
      case FRAME_BODY: meet_body(consumer, &frame, now); break;
      default: continue;
    }
    if (!consumer->body_left) finish(consumer);
  }
  run.last_event_ns = now;
  send_answers(consumer);
}

/* Before the start acks wait, so that a queue that has messages already does not move before it. */
void send_answers(struct consumer *consumer) {
  struct peer *peer = &consumer->peer;
  if (!run.has_started || !consumer->answers.length) return;
  peer->out = consumer->answers.at + consumer->answers_sent;
  peer->out_left = consumer->answers.length - consumer->answers_sent;
  write_out(peer);
  consumer->answers_sent = consumer->answers.length - peer->out_left;
  if (!peer->out_left) consumer->answers.length = consumer->answers_sent = 0;
  watch(peer, peer->out_left ? EPOLLIN | EPOLLOUT : EPOLLIN);
}
