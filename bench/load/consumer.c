#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* Asks for the deliveries of its queues: of one where there are enough consumers, else of each so-many-th. The loop
 * meets the answers, because deliveries may come between them. */
void open_consumer(struct consumer *consumer, int64_t number) {
  connect_peer(&consumer->peer);
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
  consumer->peer.out = requests.at;
  consumer->peer.out_left = requests.length;
  write_out(&consumer->peer); /* everything: the socket still blocks */
  free(requests.at);
  free(arguments.at);
}

/* Acks the message just completed, with those before it, when it is time. Once the run has received what it wants it
 * acks no more, and the broker stops at the prefetch. */
static void settle(struct consumer *consumer) {
  if (!options.ack || run.received > run.expected || ++consumer->unacked < options.ack) return;
  consumer->unacked = 0;
  static struct bytes ack;
  if (!ack.length) put_method(&ack, 1, BASIC_ACK, "Lb", (int64_t)0, options.ack > 1);
  set64(ack.at + 11, consumer->tag);
  put(&consumer->acks, ack.at, ack.length);
}

static void meet_method(struct consumer *consumer, const struct frame *frame) {
  switch (method_of(frame)) {
    case BASIC_DELIVER:
      if (frame->size < 5u + frame->payload[4] + 8) fail("a short deliver method");
      consumer->tag = get64(frame->payload + 5 + frame->payload[4]);
      break;
    case BASIC_CONSUME_OK:
      if (++consumer->registered == consumer->queues) run.registered++;
      break;
    default: fail_unexpected(frame);
  }
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
        break;
      case FRAME_BODY:
        if (consumer->is_first && frame.size >= STAMP_BYTES) {
          int64_t sent_ns;
          memcpy(&sent_ns, frame.payload, STAMP_BYTES);
          add_latency(now - sent_ns);
        }
        consumer->is_first = false;
        consumer->body_left -= frame.size;
        break;
      default: continue;
    }
    if (consumer->body_left) continue;
    run.received++;
    settle(consumer);
  }
  run.last_event_ns = now;
  send_acks(consumer);
}

/* Before the start acks wait, so that a queue that has messages already does not move before it. */
void send_acks(struct consumer *consumer) {
  struct peer *peer = &consumer->peer;
  if (!run.has_started || !consumer->acks.length) return;
  peer->out = consumer->acks.at + consumer->acks_sent;
  peer->out_left = consumer->acks.length - consumer->acks_sent;
  write_out(peer);
  consumer->acks_sent = consumer->acks.length - peer->out_left;
  if (!peer->out_left) consumer->acks.length = consumer->acks_sent = 0;
  watch(peer, peer->out_left ? EPOLLIN | EPOLLOUT : EPOLLIN);
}
