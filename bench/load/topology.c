#include "load.h"

static struct name name(const char *format, int64_t number) {
  struct name name;
  snprintf(name.text, sizeof name.text, format, options.prefix, (long long)number);
  return name;
}

struct name queue_name(int64_t queue) { return name("%s.queue.%05lld", queue); }

const char *exchange_name(void) { return options.fanout || options.topic_bindings ? options.prefix : ""; }

struct name routing_key(int64_t publisher, int64_t turn) {
  if (options.fanout) return (struct name){""};
  /* The bindings that are used are spread over all, however many there are. */
  if (options.topic_bindings) return name("%s.%05lld.event", turn * options.topic_bindings / options.topic_keys);
  return queue_name((publisher + turn) % options.queues);
}

int64_t routing_keys(void) {
  if (options.topic_bindings) return options.topic_keys;
  return options.spread ? options.queues : 1;
}

int64_t copies(void) { return options.fanout ? options.queues : 1; }

static void bind(struct peer *peer, int64_t queue, const char *key) {
  call(peer, QUEUE_BIND_OK, QUEUE_BIND, "stttbe", 0, queue_name(queue).text, exchange_name(), key, 0);
}

void declare_topology(struct peer *peer) {
  if (*exchange_name())
    call(peer, EXCHANGE_DECLARE_OK, EXCHANGE_DECLARE, "sttbe", 0, exchange_name(), options.fanout ? "fanout" : "topic", 0);
  for (int64_t i = 0; i < options.queues; i++) {
    call(peer, QUEUE_DECLARE_OK, QUEUE_DECLARE, "stbe", 0, queue_name(i).text, 0);
    if (options.fanout) bind(peer, i, "");
  }
  /* Wildcards, so that a broker has to match and cannot look up. */
  for (int64_t i = 0; i < options.topic_bindings; i++) bind(peer, i % options.queues, name("%s.%05lld.*", i).text);
}

void delete_topology(struct peer *peer) {
  for (int64_t i = 0; i < options.queues; i++) call(peer, QUEUE_DELETE_OK, QUEUE_DELETE, "stb", 0, queue_name(i).text, 0);
  if (*exchange_name()) call(peer, EXCHANGE_DELETE_OK, EXCHANGE_DELETE, "stb", 0, exchange_name(), 0);
}
