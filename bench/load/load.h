/* The parts of the load generator and what they share. One thread, one epoll loop, no allocation per message. */
#ifndef LOAD_H
#define LOAD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- options.c ---- */

struct options {
  const char *host, *user, *password, *prefix, *argument, *shape, *loop;
  int64_t port, publishers, consumers, queues, messages, body, window, ack, prefetch, rate, batch;
  int64_t priorities, expiration, delay, topic_bindings, topic_keys, hash_keys, header_bindings, callers, sessions, idle, receive, pid;
  int fanout, endpoints, spread, unique_keys, persistent, stream, dead_letter, reply, requeue, keep;
  double seconds;
};
extern struct options options;

void parse_options(int count, char **arguments);

/* ---- wire.c: AMQP 0-9-1 as bytes ---- */

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_HEARTBEAT = 8, FRAME_END = 0xCE };
enum { FRAME_OVERHEAD = 8, FRAME_MAX = 128 * 1024, STAMP_BYTES = 8, CARRY_BYTES = 4096 };

/* A method's id is its class in the upper and its number in the lower half. */
#define DIRECT_REPLY_TO "amq.rabbitmq.reply-to"
#define METHOD(class, number) ((uint32_t)(class) << 16 | (number))
enum {
  CONNECTION_START = METHOD(10, 10),
  CONNECTION_START_OK = METHOD(10, 11),
  CONNECTION_TUNE = METHOD(10, 30),
  CONNECTION_TUNE_OK = METHOD(10, 31),
  CONNECTION_OPEN = METHOD(10, 40),
  CONNECTION_OPEN_OK = METHOD(10, 41),
  CONNECTION_CLOSE = METHOD(10, 50),
  CONNECTION_CLOSE_OK = METHOD(10, 51),
  CHANNEL_OPEN = METHOD(20, 10),
  CHANNEL_OPEN_OK = METHOD(20, 11),
  CHANNEL_CLOSE = METHOD(20, 40),
  CHANNEL_CLOSE_OK = METHOD(20, 41),
  EXCHANGE_DECLARE = METHOD(40, 10),
  EXCHANGE_DECLARE_OK = METHOD(40, 11),
  EXCHANGE_DELETE = METHOD(40, 20),
  EXCHANGE_DELETE_OK = METHOD(40, 21),
  EXCHANGE_BIND = METHOD(40, 30),
  EXCHANGE_BIND_OK = METHOD(40, 31),
  QUEUE_DECLARE = METHOD(50, 10),
  QUEUE_DECLARE_OK = METHOD(50, 11),
  QUEUE_BIND = METHOD(50, 20),
  QUEUE_BIND_OK = METHOD(50, 21),
  QUEUE_DELETE = METHOD(50, 40),
  QUEUE_DELETE_OK = METHOD(50, 41),
  BASIC_QOS = METHOD(60, 10),
  BASIC_QOS_OK = METHOD(60, 11),
  BASIC_CONSUME = METHOD(60, 20),
  BASIC_CONSUME_OK = METHOD(60, 21),
  BASIC_PUBLISH = METHOD(60, 40),
  BASIC_DELIVER = METHOD(60, 60),
  BASIC_GET = METHOD(60, 70),
  BASIC_GET_OK = METHOD(60, 71),
  BASIC_ACK = METHOD(60, 80),
  BASIC_NACK = METHOD(60, 120),
  CONFIRM_SELECT = METHOD(85, 10),
  CONFIRM_SELECT_OK = METHOD(85, 11),
  TX_SELECT = METHOD(90, 10),
  TX_SELECT_OK = METHOD(90, 11),
  TX_COMMIT = METHOD(90, 20),
  TX_COMMIT_OK = METHOD(90, 21),
};

struct bytes {
  uint8_t *at;
  size_t length, capacity;
};

void put(struct bytes *to, const void *from, size_t length);

/* Appends a method frame. `format` has a letter for each argument: b octet, s short, l long, L long long (int64_t),
 * t short string, T long string (pointer and length; a table of fields looks the same), e an empty table, which has no
 * argument. */
void put_method(struct bytes *to, int channel, uint32_t id, const char *format, ...);
void put_method_list(struct bytes *to, int channel, uint32_t id, const char *format, va_list arguments);

/* Append a field of a table: `name_length` bytes of name, and its value. */
void put_number_field(struct bytes *to, const char *name, size_t name_length, int64_t value);
void put_text_field(struct bytes *to, const char *name, size_t name_length, const char *value);

/* Appends a number of this many octets. */
void put_big(struct bytes *to, uint64_t value, int octets);

/* Properties that options give a message. */
struct properties {
  int priority;           /* negative: none */
  const char *expiration; /* NULL: none */
  const char *reply_to;   /* NULL: none, or what the shape has */
};

/* Appends the property list of a message of no shape. */
void put_properties(struct bytes *to, const struct properties *properties);

/* Appends the property list of a reply. */
void put_reply_properties(struct bytes *to, const char *correlation_id);

/* Where the parts of a message begin that are renewed. */
struct places {
  size_t key, properties, body;
};

/* Appends a publish on channel 1. The body is `text`, or zeros if that is NULL. */
struct places put_message(struct bytes *to, const char *exchange, const char *key, const struct bytes *properties,
                          const char *text, int64_t size);

uint32_t get32(const uint8_t *at);
uint64_t get64(const uint8_t *at);
void set64(uint8_t *at, uint64_t value);

/* ---- peer.c: a connection with one channel, and what it sends cut into frames ---- */

/* A frame as it stands in the read buffer. Of a body perhaps only the first bytes are there: at least STAMP_BYTES. */
struct frame {
  int kind;
  uint32_t size;
  const uint8_t *payload;
};

struct peer {
  int fd;
  uint32_t interest;    /* the events that epoll watches for */
  const uint8_t *out;   /* octets still to be written */
  size_t out_left;
  int64_t skip;         /* bytes still to come of a body that has been given out */
  size_t carried;       /* the beginning of a frame, kept until its end arrives */
  uint8_t carry[CARRY_BYTES];
};

int open_nonblocking_socket(void);
void set_nonblocking(struct peer *peer);
void connect_peer(struct peer *peer);
/* Append what a client says in the three turns of opening a connection. */
void put_protocol(struct bytes *to);
void put_login(struct bytes *to);
void put_opening(struct bytes *to);
/* Sends what `bytes` has and waits for the answer, while the socket still blocks. */
void request(struct peer *peer, struct bytes *bytes, uint32_t answer);
/* Does so with one method on the channel. */
void call(struct peer *peer, uint32_t answer, uint32_t id, const char *format, ...);

/* Reads once; then next_frame gives what came, and false at its end. False when there was nothing to read. */
bool read_frames(struct peer *peer);
bool next_frame(struct peer *peer, struct frame *frame);
uint32_t method_of(const struct frame *frame);

/* Writes what it can of `out`; the loop calls again when more fits. */
void write_out(struct peer *peer);
void watch(struct peer *peer, uint32_t interest);

_Noreturn void fail(const char *format, ...);
_Noreturn void fail_unexpected(const struct frame *frame);

/* ---- topology.c: what is declared, and who publishes and consumes where ---- */

struct name {
  char text[64];
};

struct name session_name(int64_t session);
struct name consumed_name(int64_t queue);
const char *exchange_name(void);
struct name reply_name(void); /* of the queue of replies */
struct name routing_key(int64_t publisher, int64_t turn);
int64_t unique_at(const struct name *key); /* where digits of a key never repeat; negative: nowhere */
int64_t turns(void);  /* number of different messages of a publisher, which then repeat */
int64_t copies(void); /* into how many queues a message goes */
void declare_topology(struct peer *peer);
void delete_topology(struct peer *peer);

/* ---- shapes.c: messages as libraries send them ---- */

/* Eight hexadecimal digits of a message, which are new each time it is sent. Equal slots give equal digits. */
struct mark {
  uint32_t at; /* from the beginning of the message */
  int slot;
};

/* A message of --shape that has been appended. */
struct shaped {
  size_t body_at;
  const struct mark *marks;
  size_t count;
};

bool is_shape(const char *name);
uint64_t pick(uint64_t below);
/* `unique_at`: where in the routing key eight digits are renewed; negative: nowhere. */
struct shaped put_shaped_message(struct bytes *to, const char *exchange, const char *key, int64_t unique_at,
                                 const struct properties *properties);
/* The slot of the digits in the name of a queue of replies. */
enum { NEW_REPLY = 150 };
/* Writes the digits of message `number`. */
void renew(uint8_t *message, const struct mark *first, const struct mark *end, uint64_t number);

/* ---- histogram.c: latencies ---- */

void add_latency(int64_t ns);
/* The microseconds that this share of all latencies does not exceed; negative without any. */
double latency_us(double share);

/* ---- publisher.c and consumer.c ---- */

/* Where a message of a block, its body and its marks begin. */
struct place {
  size_t start, body, marks;
};

struct publisher {
  struct peer peer; /* first: the loop knows a publisher or consumer by its peer */
  struct bytes block;
  struct place *places; /* of the messages in the block, and one of its end */
  struct bytes marks;
  int64_t block_messages, batch;
  uint64_t salt;    /* differs from one publisher to another, and so do the digits */
  int64_t next;     /* message of the block to be sent next */
  int64_t handed;   /* messages given to the socket, the last of them perhaps in part */
  int64_t confirmed, confirmed_below;
  uint64_t *seen; /* a bit for each confirmed message */
};

struct consumer {
  struct peer peer;
  int64_t queues, registered;
  uint64_t body_left, tag;
  bool is_first; /* the next body frame is the first of its message */
  bool is_redelivered, is_responder;
  int64_t ack; /* number of deliveries per ack; 0: none */
  int64_t unacked;
  char reply_to[256], correlation_id[256]; /* of the message to be replied to */
  uint8_t stamp[STAMP_BYTES];
  struct bytes answers; /* acks, nacks and replies */
  size_t answers_sent;
};

void encode_block(struct publisher *publisher, int64_t number);
/* Appends the next message. */
void take_message(struct publisher *publisher, struct bytes *to);
/* The queue to which the reply to the next message goes, if each has one of its own. */
struct name unique_reply_name(const struct publisher *publisher);
void open_publisher(struct publisher *publisher, int64_t number);
void publish(struct publisher *publisher);
void read_confirms(struct publisher *publisher);

void open_consumer(struct consumer *consumer, int64_t number);
void consume(struct consumer *consumer);
void send_answers(struct consumer *consumer);

/* ---- callers.c ---- */

struct caller {
  struct peer peer; /* first: the loop knows a caller by its peer */
  struct publisher messages;
  int64_t number, done, began_ns;
  int step;
  uint32_t awaited; /* the method that ends this step */
  bool has_content;
  uint64_t body_left, tag;
  struct name queue;
  struct bytes out;
  size_t written;
};

bool is_loop(const char *name);
/* Properties of the calls of --loop: they wait for a reply, in a queue of its own, and count as received or sent. */
bool is_rpc(void);
bool has_unique_replies(void);
bool calls_are_received(void);
bool calls_are_sent(void);
void open_caller(struct caller *caller, int64_t number);
void start_calling(struct caller *caller);
void hear(struct caller *caller, uint32_t events);

/* ---- sessions.c ---- */

void run_session(int64_t number);

/* ---- main.c ---- */

/* The results of the run so far. */
struct run {
  int epoll;
  bool has_started;
  int64_t started_ns, last_event_ns;
  int64_t sent, confirmed, received, registered, called;
  int64_t expected; /* deliveries */
};
extern struct run run;

int64_t now_ns(void);

#endif
