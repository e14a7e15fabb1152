/* Messages as libraries send them: properties and headers in the order and with the types that each puts on the wire, ids
 * of each message's own, and sizes of a distribution. tests/bench/test_shapes.py compares them with the libraries'. */
#include "load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 128 * 1024, LARGEST_BODY = 100 * 1024, ACCOUNTS = 100 };

/* A number below a limit, for all that differs from one message of a block to another (splitmix64). */
static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
  value = (value ^ value >> 27) * 0x94D049BB133111EBu;
  return value ^ value >> 31;
}

uint64_t pick(uint64_t below) {
  static uint64_t state = 0x5EED0F5A3B17C921u;
  return mix(state += 0x9E3779B97F4A7C15u) % below;
}

/* ---- ids: eight hexadecimal digits at a time, which are renewed for each message that is sent ---- */

/* The marks of the message that is being written. */
static struct bytes marks;

void mark_digits(const struct bytes *to, int slot) {
  struct mark mark = {(uint32_t)to->length, slot};
  put(&marks, &mark, sizeof mark);
}

static void put_text(struct bytes *to, const char *text) { put(to, text, strlen(text)); }

static void put_digits(struct bytes *to, int slot) {
  mark_digits(to, slot);
  put_text(to, "00000000");
}

/* The id of a trace: 32 digits. */
static void put_trace_id(struct bytes *to, int slot) {
  for (int i = 0; i < 4; i++) put_digits(to, slot + i);
}

/* The id of a span: 16 digits. */
static void put_span_id(struct bytes *to, int slot) {
  put_digits(to, slot + 4);
  put_digits(to, slot + 5);
}

/* A UUID of version 4: 36 characters. Equal slots give equal UUIDs in a message, of which 64 bits are renewed. The rest
 * stays, and depends on the slot alone. */
static void put_uuid(struct bytes *to, int slot) {
  static const char *const middle[] = {"-4c1f-49d2-b7a6-5f0e", "-70be-4a13-8d55-01c9", "-e2d4-4f6b-93a8-c47d"};
  put_digits(to, 2 * slot);
  put_text(to, middle[slot % 3]);
  put_digits(to, 2 * slot + 1);
}

/* W3C trace context: version, trace id, parent id and flags, 55 characters. */
static void put_traceparent(struct bytes *to, int slot) {
  put_text(to, "00-");
  put_trace_id(to, slot);
  put_text(to, "-");
  put_span_id(to, slot);
  put_text(to, "-01");
}

void renew(uint8_t *message, const struct mark *first, const struct mark *end, uint64_t number) {
  static char digits[256][2];
  if (!digits[0][0])
    for (int octet = 0; octet < 256; octet++) {
      digits[octet][0] = "0123456789abcdef"[octet >> 4];
      digits[octet][1] = "0123456789abcdef"[octet & 15];
    }
  for (const struct mark *mark = first; mark < end; mark++) {
    uint64_t value = mix(number * 0x9E3779B97F4A7C15u + (uint64_t)mark->slot);
    for (int i = 0; i < 4; i++) memcpy(message + mark->at + 2 * i, digits[value >> 8 * i & 255], 2);
  }
}

/* ---- properties ---- */

enum {
  CONTENT_TYPE = 1 << 15, CONTENT_ENCODING = 1 << 14, HEADERS = 1 << 13, DELIVERY_MODE = 1 << 12, PRIORITY = 1 << 11,
  CORRELATION_ID = 1 << 10, REPLY_TO = 1 << 9, EXPIRATION = 1 << 8, MESSAGE_ID = 1 << 7, TIMESTAMP = 1 << 6, TYPE = 1 << 5,
  APP_ID = 1 << 3,
};
enum { NEW_MESSAGE_ID = 100, NEW_CORRELATION_ID = 110, NEW_TRACE = 120, NEW_SECOND = 130, NEW_KEY = 140 };

static void put_flags(struct bytes *to, int flags) {
  if (options.expiration) flags |= EXPIRATION;
  if (options.priorities) flags |= PRIORITY;
  uint8_t octets[] = {flags >> 8, flags & 255};
  put(to, octets, 2);
}

static void put_octet(struct bytes *to, int octet) { put(to, &(uint8_t){octet}, 1); }

static void put_short(struct bytes *to, const char *text) {
  put_octet(to, (int)strlen(text));
  put_text(to, text);
}

static void put_short_uuid(struct bytes *to, int slot) {
  put_octet(to, 36);
  put_uuid(to, slot);
}

static void put_time(struct bytes *to) {
  put_big(to, 1790000000 + pick(40000000), 8); /* seconds */
}

/* Where all shapes have the same: the delivery mode, and the priority of a queue with priorities. */
static void put_mode(struct bytes *to, int mode, int priority) {
  put_octet(to, mode);
  if (priority >= 0) put_octet(to, priority);
}

/* The name of a queue of replies ends with digits, if there is one for each message. */
static void put_reply_to(struct bytes *to, const char *reply_to) {
  size_t length = strlen(reply_to), kept = has_unique_replies() ? length - 8 : length;
  put_octet(to, (int)length);
  put(to, reply_to, kept);
  if (kept < length) put_digits(to, NEW_REPLY);
}

static void put_expiration(struct bytes *to, const struct properties *properties) {
  if (properties->expiration) put_short(to, properties->expiration);
}

static size_t begin_table(struct bytes *to) {
  put_big(to, 0, 4);
  return to->length;
}

static void end_table(struct bytes *to, size_t start) {
  for (int i = 0; i < 4; i++) to->at[start - 4 + (size_t)i] = (uint8_t)((to->length - start) >> (24 - 8 * i));
}

static void put_key(struct bytes *to, const char *key, char type) {
  put_short(to, key);
  put(to, &type, 1);
}

/* Appends a long string field and returns where its text begins; end_table() ends it. */
static size_t begin_text(struct bytes *to, const char *key) {
  put_key(to, key, 'S');
  return begin_table(to);
}

static void put_text_header(struct bytes *to, const char *key, const char *value) {
  put_text_field(to, key, strlen(key), value);
}

static void put_uuid_header(struct bytes *to, const char *key, int slot) {
  size_t start = begin_text(to, key);
  put_uuid(to, slot);
  end_table(to, start);
}

static void put_trace_header(struct bytes *to, const char *key, int slot) {
  size_t start = begin_text(to, key);
  put_traceparent(to, slot);
  end_table(to, start);
}

static void put_delay(struct bytes *to) {
  if (options.delay) put_number_field(to, "x-delay", 7, options.delay);
}

/* ---- Celery 5: a task of protocol 2, as as_task_v2() and kombu write it ---- */

static void put_celery_headers(struct bytes *to) {
  static const char *const tasks[] = {
    "shop.orders.tasks.charge", "shop.mail.tasks.send_receipt", "search.tasks.index", "reports.tasks.daily_revenue_by_region",
    "thumbnails.make", "shop.inventory.tasks.reserve_items",
  };
  char text[96];
  put_text_header(to, "lang", "py");
  put_text_header(to, "task", tasks[pick(sizeof tasks / sizeof *tasks)]);
  put_uuid_header(to, "id", NEW_CORRELATION_ID);
  put_key(to, "shadow", 'V');
  put_key(to, "eta", 'V');
  put_key(to, "expires", 'V');
  put_key(to, "group", 'V');
  put_key(to, "group_index", 'V');
  put_key(to, "retries", 'I');
  put_big(to, pick(20) ? 0 : pick(3), 4);
  put_key(to, "timelimit", 'A');
  put_big(to, 2, 4);
  put(to, "VV", 2);
  put_uuid_header(to, "root_id", NEW_CORRELATION_ID);
  put_key(to, "parent_id", 'V');
  snprintf(text, sizeof text, "(%d, {'currency': '%s'})", (int)pick(1000000), pick(2) ? "EUR" : "USD");
  put_text_header(to, "argsrepr", text);
  snprintf(text, sizeof text, "{'amount': %d.%d, 'note': '%.*s'}", (int)pick(900), (int)pick(100), (int)pick(40),
           "left at the door of the neighbour, please");
  put_text_header(to, "kwargsrepr", text);
  snprintf(text, sizeof text, "gen%d@web-%d", (int)(1 + pick(60000)), (int)pick(12));
  put_text_header(to, "origin", text);
  put_key(to, "ignore_result", 't');
  put_octet(to, 0);
  put_key(to, "replaced_task_nesting", 'I');
  put_big(to, 0, 4);
  put_key(to, "stamped_headers", 'V');
  put_key(to, "stamps", 'F');
  put_big(to, 0, 4);
  put_delay(to);
}

static void put_celery(struct bytes *to, const struct properties *properties) {
  put_flags(to, CONTENT_TYPE | CONTENT_ENCODING | HEADERS | DELIVERY_MODE | PRIORITY | CORRELATION_ID | REPLY_TO);
  put_short(to, "application/json");
  put_short(to, "utf-8");
  size_t table = begin_table(to);
  put_celery_headers(to);
  end_table(to, table);
  put_mode(to, 2, properties->priority < 0 ? 0 : properties->priority);
  put_short_uuid(to, NEW_CORRELATION_ID);
  put_reply_to(to, properties->reply_to ? properties->reply_to : "5d0f5b4e-1c7a-3a52-9b3c-2f1d6a7e8b90");
  put_expiration(to, properties);
}

/* ---- Spring AMQP with Jackson, correlated confirms and Micrometer's tracing of both formats ---- */

static void put_spring(struct bytes *to, const struct properties *properties) {
  static const char *const types[] = {
    "com.example.shop.orders.OrderPlaced", "com.example.shop.orders.OrderCancelled", "com.example.shop.billing.api.InvoiceIssued",
    "com.example.stock.StockReserved",
  };
  put_flags(to, CONTENT_TYPE | CONTENT_ENCODING | HEADERS | DELIVERY_MODE | PRIORITY | (properties->reply_to ? REPLY_TO : 0));
  put_short(to, "application/json");
  put_short(to, "UTF-8");
  size_t table = begin_table(to);
  put_uuid_header(to, "spring_returned_message_correlation", NEW_MESSAGE_ID);
  put_trace_header(to, "traceparent", NEW_TRACE);
  size_t start = begin_text(to, "b3");
  put_trace_id(to, NEW_TRACE);
  put_text(to, "-");
  put_span_id(to, NEW_TRACE);
  put_text(to, "-1");
  end_table(to, start);
  put_text_header(to, "__TypeId__", types[pick(sizeof types / sizeof *types)]);
  put_uuid_header(to, "spring_listener_return_correlation", NEW_SECOND);
  put_delay(to);
  end_table(to, table);
  put_mode(to, 2, properties->priority < 0 ? 0 : properties->priority);
  if (properties->reply_to) put_reply_to(to, properties->reply_to);
  put_expiration(to, properties);
}

/* ---- MassTransit, a service bus of .NET: the rest of its envelope is in the body ---- */

static void put_servicebus(struct bytes *to, const struct properties *properties) {
  char number[24];
  put_flags(to, CONTENT_TYPE | HEADERS | DELIVERY_MODE | CORRELATION_ID | MESSAGE_ID | (properties->reply_to ? REPLY_TO : 0));
  put_short(to, "application/vnd.masstransit+json");
  size_t table = begin_table(to);
  put_text_header(to, "Content-Type", "application/vnd.masstransit+json");
  put_trace_header(to, "MT-Activity-Id", NEW_TRACE);
  snprintf(number, sizeof number, "%d", (int)(1 + pick(200000)));
  put_text_header(to, "publishId", number);
  put_delay(to);
  end_table(to, table);
  put_mode(to, 2, properties->priority);
  put_short_uuid(to, NEW_CORRELATION_ID);
  if (properties->reply_to) put_reply_to(to, properties->reply_to);
  put_expiration(to, properties);
  put_short_uuid(to, NEW_MESSAGE_ID);
}

/* ---- amqplib of Node with OpenTelemetry: it writes an integer in as few octets as hold it ---- */

static void put_node(struct bytes *to, const struct properties *properties) {
  static const char *const types[] = {"order.placed", "order.paid", "cart.item.added", "customer.address.changed", "ping"};
  char account[24];
  put_flags(to, CONTENT_TYPE | HEADERS | DELIVERY_MODE | CORRELATION_ID | MESSAGE_ID | TIMESTAMP | TYPE | APP_ID |
                  (properties->reply_to ? REPLY_TO : 0));
  put_short(to, "application/json");
  size_t table = begin_table(to);
  snprintf(account, sizeof account, "account-%03d", (int)pick(options.header_bindings ? (uint64_t)options.header_bindings : ACCOUNTS));
  put_text_header(to, "account-id", account);
  put_key(to, "x-retry-count", 'b');
  put_octet(to, (int)pick(3));
  put_key(to, "x-amount", 'I');
  put_big(to, 40000 + pick(1000000), 4);
  put_key(to, "x-is-test", 't');
  put_octet(to, (int)pick(2));
  put_trace_header(to, "traceparent", NEW_TRACE);
  put_text_header(to, "tracestate", pick(2) ? "es=s:1" : "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  put_delay(to);
  end_table(to, table);
  put_mode(to, options.persistent ? 2 : 1, properties->priority);
  put_short_uuid(to, NEW_CORRELATION_ID);
  if (properties->reply_to) put_reply_to(to, properties->reply_to);
  put_expiration(to, properties);
  put_short_uuid(to, NEW_MESSAGE_ID);
  put_time(to);
  put_short(to, types[pick(sizeof types / sizeof *types)]);
  put_short(to, pick(3) ? "storefront" : "back-office");
}

/* ---- ids and a time, without headers ---- */

static void put_ids(struct bytes *to, const struct properties *properties) {
  put_flags(to, CONTENT_TYPE | DELIVERY_MODE | CORRELATION_ID | MESSAGE_ID | TIMESTAMP | (properties->reply_to ? REPLY_TO : 0));
  put_short(to, "application/octet-stream");
  put_mode(to, options.persistent ? 2 : 1, properties->priority);
  put_short_uuid(to, NEW_CORRELATION_ID);
  if (properties->reply_to) put_reply_to(to, properties->reply_to);
  put_expiration(to, properties);
  put_short_uuid(to, NEW_MESSAGE_ID);
  put_time(to);
}

static const struct {
  const char *name;
  void (*put)(struct bytes *to, const struct properties *properties);
} shapes[] = {
  {"celery", put_celery}, {"spring", put_spring}, {"servicebus", put_servicebus}, {"node", put_node}, {"ids", put_ids},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

bool is_shape(const char *name) {
  for (int i = 0; i < SHAPES; i++)
    if (!strcmp(shapes[i].name, name)) return true;
  return false;
}

/* A log-normal size with --body as the median: a sixth is twice as large or more, some are ten times as large. */
static int64_t pick_size(void) {
  double normal = -6;
  for (int i = 0; i < 12; i++) normal += (double)pick(1 << 20) / (1 << 20);
  int64_t size = (int64_t)((double)options.body * exp(0.75 * normal));
  return size < STAMP_BYTES ? STAMP_BYTES : size < LARGEST_BODY ? size : LARGEST_BODY;
}

static const char *text_of_json(void) {
  static char text[TEXT_BYTES];
  for (size_t at = 0; at < sizeof text - 1;)
    at += (size_t)snprintf(text + at, sizeof text - at, "{\"sku\": \"%c%05d\", \"quantity\": %d, \"price\": %d.%02d}, ",
                           'A' + (int)pick(26), (int)pick(99999), (int)pick(12), (int)pick(500), (int)pick(100));
  return text;
}

struct shaped put_shaped_message(struct bytes *to, const char *exchange, const char *key, int64_t unique_at,
                                 const struct properties *properties) {
  static struct bytes list;
  static const char *text;
  if (!text) text = text_of_json();
  size_t start = to->length;
  int64_t size = pick_size();
  marks.length = list.length = 0;
  for (int i = 0; i < SHAPES; i++)
    if (!strcmp(shapes[i].name, options.shape)) shapes[i].put(&list, properties);
  struct places places = put_message(to, exchange, key, &list, text + pick(TEXT_BYTES - LARGEST_BODY), size);
  struct mark *each = (struct mark *)marks.at;
  for (size_t i = 0; i < marks.length / sizeof *each; i++) each[i].at += (uint32_t)(places.properties - start);
  if (unique_at >= 0) {
    struct mark mark = {(uint32_t)(places.key - start) + (uint32_t)unique_at, NEW_KEY};
    put(&marks, &mark, sizeof mark);
  }
  return (struct shaped){places.body - start, (struct mark *)marks.at, marks.length / sizeof *each};
}
