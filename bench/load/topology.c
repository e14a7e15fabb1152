#include "load.h"

#include <stdlib.h>
#include <string.h>

static struct name name(const char *format, int64_t number) {
  struct name name;
  snprintf(name.text, sizeof name.text, format, options.prefix, (long long)number);
  return name;
}

static struct name queue_name(int64_t queue) { return name("%s.queue.%05lld", queue); }

/* Where a queue's dead letters go. */
static struct name dead_name(int64_t queue) { return name("%s.dead.%05lld", queue); }

/* The queue of a session. */
struct name session_name(int64_t session) { return name("%s.session.%07lld", session); }

struct name consumed_name(int64_t queue) { return options.dead_letter ? dead_name(queue) : queue_name(queue); }

struct name reply_name(void) {
  if (is_rpc() && !has_unique_replies()) return (struct name){DIRECT_REPLY_TO};
  return name("%s.reply.%08lld", 0);
}

/* The exchange between a fanout exchange and a queue. */
static struct name endpoint_name(int64_t queue) { return name("%s.endpoint.%05lld", queue); }

static const char *exchange_type(void) {
  if (options.fanout) return "fanout";
  if (options.topic_bindings) return "topic";
  if (options.delay) return "x-delayed-message";
  if (options.header_bindings) return "headers";
  return options.hash_keys ? "x-consistent-hash" : NULL;
}

const char *exchange_name(void) { return exchange_type() ? options.prefix : ""; }

struct name routing_key(int64_t publisher, int64_t turn) {
  if (options.fanout) return (struct name){""};
  if (options.header_bindings) return (struct name){"order.placed"};
  /* The bindings that are used are spread over all, however many there are. */
  if (options.topic_bindings)
    return name(options.unique_keys ? "%s.%05lld.00000000" : "%s.%05lld.event", turn * options.topic_bindings / options.topic_keys);
  if (options.hash_keys) return name(options.unique_keys ? "%s.%07lld.00000000" : "%s.%07lld", turn);
  return queue_name((publisher + (options.spread ? turn : 0)) % options.queues);
}

int64_t unique_at(const struct name *key) { return options.unique_keys ? (int64_t)strlen(key->text) - 8 : -1; }

int64_t turns(void) {
  if (options.topic_bindings) return options.topic_keys;
  if (options.hash_keys) return options.hash_keys;
  if (options.priorities) return options.priorities;
  return options.spread ? options.queues : 1;
}

int64_t copies(void) { return options.fanout ? options.queues : 1; }

static void declare_queue(struct peer *peer, const char *queue, const struct bytes *arguments) {
  enum { DURABLE = 2 };
  int bits = options.persistent ? DURABLE : 0;
  call(peer, QUEUE_DECLARE_OK, QUEUE_DECLARE, "stbT", 0, queue, bits, arguments->at, arguments->length);
}

/* Appends a field that an option gives: its value begins behind the equals sign. */
static void put_argument(struct bytes *to, const char *name, const char *value) {
  size_t length = (size_t)(value++ - name);
  if (value[strspn(value, "0123456789")]) put_text_field(to, name, length, value);
  else put_number_field(to, name, length, atoll(value));
}

static void declare_queues(struct peer *peer) {
  const struct bytes none = {0};
  for (int64_t i = 0; i < options.queues; i++) {
    struct bytes arguments = {0};
    const char *value = strchr(options.argument, '=');
    if (value) put_argument(&arguments, options.argument, value);
    if (options.stream) put_text_field(&arguments, "x-queue-type", 12, "stream");
    if (options.dead_letter) {
      declare_queue(peer, dead_name(i).text, &none);
      put_text_field(&arguments, "x-dead-letter-exchange", 22, "");
      put_text_field(&arguments, "x-dead-letter-routing-key", 25, dead_name(i).text);
    }
    declare_queue(peer, queue_name(i).text, &arguments);
    free(arguments.at);
  }
}

static void bind(struct peer *peer, int64_t queue, const char *key) {
  call(peer, QUEUE_BIND_OK, QUEUE_BIND, "stttbe", 0, queue_name(queue).text, exchange_name(), key, 0);
}

/* Binds a queue to the messages of --shape node that have a certain header. */
static void bind_account(struct peer *peer, int64_t number) {
  struct bytes arguments = {0};
  char account[24];
  snprintf(account, sizeof account, "account-%03d", (int)number);
  put_text_field(&arguments, "x-match", 7, "all");
  put_text_field(&arguments, "account-id", 10, account);
  call(peer, QUEUE_BIND_OK, QUEUE_BIND, "stttbT", 0, queue_name(number % options.queues).text, exchange_name(), "", 0,
       arguments.at, arguments.length);
  free(arguments.at);
}

/* Binds a queue to an exchange of its own, and that to the exchange that is published to. */
static void bind_endpoint(struct peer *peer, int64_t queue) {
  struct name endpoint = endpoint_name(queue);
  call(peer, EXCHANGE_DECLARE_OK, EXCHANGE_DECLARE, "sttbe", 0, endpoint.text, "fanout", 0);
  call(peer, EXCHANGE_BIND_OK, EXCHANGE_BIND, "stttbe", 0, endpoint.text, exchange_name(), "", 0);
  call(peer, QUEUE_BIND_OK, QUEUE_BIND, "stttbe", 0, queue_name(queue).text, endpoint.text, "", 0);
}

void declare_topology(struct peer *peer) {
  struct bytes arguments = {0};
  if (options.delay) put_text_field(&arguments, "x-delayed-type", 14, "direct");
  if (exchange_type())
    call(peer, EXCHANGE_DECLARE_OK, EXCHANGE_DECLARE, "sttbT", 0, exchange_name(), exchange_type(), 0, arguments.at,
         arguments.length);
  free(arguments.at);
  declare_queues(peer);
  for (int64_t i = 0; i < options.queues; i++) {
    if (options.fanout && options.endpoints) bind_endpoint(peer, i);
    else if (options.fanout) bind(peer, i, "");
    if (options.hash_keys) bind(peer, i, "1"); /* the key is the weight */
    if (options.delay) bind(peer, i, queue_name(i).text);
  }
  /* Wildcards, so that a broker has to match and cannot look up. */
  for (int64_t i = 0; i < options.topic_bindings; i++) bind(peer, i % options.queues, name("%s.%05lld.*", i).text);
  for (int64_t i = 0; i < options.header_bindings; i++) bind_account(peer, i);
  if (options.reply) {
    const struct bytes none = {0};
    declare_queue(peer, reply_name().text, &none);
  }
}

static void delete_queue(struct peer *peer, const char *queue) {
  call(peer, QUEUE_DELETE_OK, QUEUE_DELETE, "stb", 0, queue, 0);
}

void delete_topology(struct peer *peer) {
  for (int64_t i = 0; i < options.queues; i++) {
    delete_queue(peer, queue_name(i).text);
    if (options.dead_letter) delete_queue(peer, dead_name(i).text);
    if (options.endpoints)
      call(peer, EXCHANGE_DELETE_OK, EXCHANGE_DELETE, "stb", 0, endpoint_name(i).text, 0);
  }
  if (options.reply) delete_queue(peer, reply_name().text);
  if (exchange_type()) call(peer, EXCHANGE_DELETE_OK, EXCHANGE_DELETE, "stb", 0, exchange_name(), 0);
}
