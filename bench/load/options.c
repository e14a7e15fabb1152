#include "load.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct options options = {
  .host = "127.0.0.1", .user = "guest", .password = "guest", .argument = "", .shape = "", .loop = "", .port = 5672,
  .publishers = 1, .consumers = 1, .queues = 1, .messages = 100000, .body = 16, .seconds = 60,
};

struct option_row {
  const char *name;
  int64_t *number;
  const char **text;
  int *fact;
  const char *help;
};

static const struct option_row rows[] = {
  {"host", .text = &options.host, .help = "the broker's host (127.0.0.1)"},
  {"port", .number = &options.port, .help = "the broker's port (5672)"},
  {"user", .text = &options.user, .help = "(guest)"},
  {"password", .text = &options.password, .help = "(guest)"},
  {"publishers", .number = &options.publishers, .help = "publishing connections (1)"},
  {"consumers", .number = &options.consumers, .help = "consuming connections (1)"},
  {"queues", .number = &options.queues, .help = "queues; publisher i publishes to queue i modulo this (1)"},
  {"messages", .number = &options.messages, .help = "messages per publisher (100000)"},
  {"body", .number = &options.body, .help = "bytes per body; latency is measured if there are at least 8 (16)"},
  {"shape", .text = &options.shape, .help = "messages as celery, spring, servicebus, node or ids send them, of which --body is the median size (none)"},
  {"window", .number = &options.window, .help = "maximum number of unconfirmed messages per publisher (0: no confirms)"},
  {"ack", .number = &options.ack, .help = "number of deliveries per ack (0: consume without acks)"},
  {"prefetch", .number = &options.prefetch, .help = "unacked messages per consumer (0: no limit)"},
  {"rate", .number = &options.rate, .help = "messages per second and publisher (0: as fast as possible)"},
  {"batch", .number = &options.batch, .help = "maximum number of messages per write (0: as many as fit into 256 KiB)"},
  {"fanout", .fact = &options.fanout, .help = "publish to a fanout exchange that every queue is bound to"},
  {"endpoints", .fact = &options.endpoints, .help = "with --fanout: an exchange before each queue"},
  {"spread", .fact = &options.spread, .help = "every publisher publishes to all queues in turn"},
  {"argument", .text = &options.argument, .help = "declare the queues with this argument: NAME=VALUE, a number if it has digits only (none)"},
  {"priorities", .number = &options.priorities, .help = "number of priorities that the messages have in turn (0: none)"},
  {"expiration", .number = &options.expiration, .help = "TTL of messages in milliseconds (0: none)"},
  {"delay", .number = &options.delay, .help = "delay of messages in milliseconds, by an x-delayed-message exchange (0: none)"},
  {"persistent", .fact = &options.persistent, .help = "durable queues and persistent messages"},
  {"stream", .fact = &options.stream, .help = "the queues are streams; consumers need --ack and --prefetch"},
  {"dead-letter", .fact = &options.dead_letter, .help = "consume the dead letters of a queue from a second queue"},
  {"topic-bindings", .number = &options.topic_bindings, .help = "publish to a topic exchange with this number of bindings (0)"},
  {"topic-keys", .number = &options.topic_keys, .help = "keys used, each matching one binding (0: one per binding)"},
  {"hash-keys", .number = &options.hash_keys, .help = "publish this number of keys to a consistent hash exchange (0)"},
  {"unique-keys", .fact = &options.unique_keys, .help = "routing keys to a topic or hash exchange never repeat; needs --shape"},
  {"header-bindings", .number = &options.header_bindings, .help = "publish --shape node to a headers exchange with this number of bindings, one of which matches (0)"},
  {"reply", .fact = &options.reply, .help = "consumers reply to each message, and the last one reads the replies"},
  {"requeue", .fact = &options.requeue, .help = "consumers nack each message once, which requeues it; needs --ack"},
  {"loop", .text = &options.loop, .help = "what callers repeat, each after the answer: get, channel, declare, tx, rpc, rpc-queue or connect (none)"},
  {"callers", .number = &options.callers, .help = "connections that do so, --messages times each; then there are no publishers (0)"},
  {"sessions", .number = &options.sessions, .help = "one after another connect, declare, publish a message, confirm and close (0)"},
  {"idle", .number = &options.idle, .help = "further connections that do nothing (0)"},
  {"receive", .number = &options.receive, .help = "end after this number of deliveries (0: one per message and queue)"},
  {"prefix", .text = &options.prefix, .help = "prefix of the names of queues and exchanges (a new one)"},
  {"keep", .fact = &options.keep, .help = "keep queues and exchanges with their contents"},
  {"pid", .number = &options.pid, .help = "the broker's process, to report its CPU time"},
  {"seconds", .help = "give up after this number of seconds (60)"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static _Noreturn void show_usage(const char *mistake) {
  if (mistake) fprintf(stderr, "load: %s\n", mistake);
  for (int i = 0; i < ROWS; i++) fprintf(stderr, "  --%-15s %s\n", rows[i].name, rows[i].help);
  exit(2);
}

static void check_options(void) {
  const struct options *o = &options;
  if (o->publishers < 0 || o->consumers < 0 || o->queues < 1 || o->messages < 1 || o->body < 0 || o->seconds <= 0)
    show_usage("counts must be positive");
  if (o->prefetch && o->ack > o->prefetch) show_usage("--ack beyond --prefetch would wait for ever");
  if (o->receive && !(o->ack && o->prefetch)) show_usage("--receive needs --ack and --prefetch to end there");
  if (o->stream && (!o->persistent || (o->consumers && !(o->ack && o->prefetch))))
    show_usage("--stream needs --persistent, and --ack and --prefetch where something is consumed");
  if (!!o->fanout + !!o->topic_bindings + !!o->hash_keys + !!o->header_bindings + !!o->delay > 1)
    show_usage("--fanout, --topic-bindings, --hash-keys, --header-bindings and --delay exclude each other");
  if (*o->shape && !is_shape(o->shape)) show_usage("there is no such --shape");
  if (o->header_bindings && strcmp(o->shape, "node")) show_usage("--header-bindings needs --shape node");
  if (o->unique_keys && !(*o->shape && (o->topic_bindings || o->hash_keys)))
    show_usage("--unique-keys needs --shape, and --topic-bindings or --hash-keys");
  if (!*o->loop != !o->callers || (*o->loop && !is_loop(o->loop))) show_usage("--callers repeat what --loop says");
  if (o->callers && o->publishers) show_usage("--callers need --publishers 0");
  if (has_unique_replies() && !*o->shape) show_usage("--loop rpc-queue needs --shape");
  if (o->reply && (o->consumers < 2 || o->callers)) show_usage("--reply needs two --consumers, and no --callers");
  if (o->requeue && o->ack != 1) show_usage("--requeue needs --ack 1");
  if (o->endpoints && !o->fanout) show_usage("--endpoints needs --fanout");
  if (o->sessions && o->publishers + o->consumers) show_usage("--sessions have no publishers and consumers beside them");
  if (!!o->spread + !!o->priorities + !!o->topic_bindings + !!o->hash_keys > 1)
    show_usage("--spread, --priorities, --topic-bindings and --hash-keys exclude each other");
  if (o->priorities > 256) show_usage("--priorities must not exceed 256");
  const char *value = strchr(o->argument, '=');
  if (*o->argument && (!value || !value[1])) show_usage("--argument is NAME=VALUE");
  if (o->topic_keys > o->topic_bindings) show_usage("--topic-keys beyond --topic-bindings would match nothing");
}

void parse_options(int count, char **arguments) {
  struct option known[ROWS + 1] = {0};
  for (int i = 0; i < ROWS; i++)
    known[i] = (struct option){rows[i].name, rows[i].fact ? no_argument : required_argument, rows[i].fact, 1};
  int row, at;
  while ((row = getopt_long(count, arguments, "", known, &at)) != -1) {
    if (row == '?') show_usage(NULL);
    if (rows[at].fact) continue;
    char *end = optarg;
    if (rows[at].text) {
      *rows[at].text = optarg;
      continue;
    }
    if (rows[at].number) *rows[at].number = strtoll(optarg, &end, 10);
    else options.seconds = strtod(optarg, &end);
    if (*end || end == optarg) show_usage("a number is needed");
  }
  if (!options.topic_keys) options.topic_keys = options.topic_bindings;
  check_options();
}
