/* librabbitmq (rabbitmq-c). compat/matrix/playing.py describes the protocol with the harness. */

#define _GNU_SOURCE
#include <amqp.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_S = 15, FRAME_MAX = 131072 };

typedef amqp_connection_state_t Connection;

/* Where a scenario that has failed goes on, and why it has. */
static jmp_buf failure;
static char reason[512];

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  longjmp(failure, 1);
}

static void check(bool is_so, const char *otherwise) {
  if (!is_so) fail("%s", otherwise);
}

static bool is(amqp_bytes_t came, const char *expected) {
  return came.len == strlen(expected) && memcmp(came.bytes, expected, came.len) == 0;
}

static void same(amqp_bytes_t came, const char *expected) {
  if (!is(came, expected)) fail("%.*s instead of %s", (int)came.len, (char *)came.bytes, expected);
}

static amqp_bytes_t bytes(const char *text) { return amqp_cstring_bytes(text); }

/* Return a unique name of a queue or exchange; never freed. */
static amqp_bytes_t name(const char *stem) {
  char *text;
  if (asprintf(&text, "%s.%s", getenv("PREFIX"), stem) < 0) abort();
  return bytes(text);
}

/* The reply code of what the broker refused, or 0. */
static int code(amqp_rpc_reply_t reply) {
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION) return 0;
  if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD)
    return ((amqp_channel_close_t *)reply.reply.decoded)->reply_code;
  return ((amqp_connection_close_t *)reply.reply.decoded)->reply_code;
}

static void ok(amqp_rpc_reply_t reply, const char *what) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) fail("%s: %s", what, amqp_error_string2(reply.library_error));
  if (reply.reply_type != AMQP_RESPONSE_NORMAL) fail("%s: refused with %d", what, code(reply));
}

static void done(Connection connection, const char *what) { ok(amqp_get_rpc_reply(connection), what); }

static void refused(Connection connection, int expected) {
  int came = code(amqp_get_rpc_reply(connection));
  if (came != expected) fail("refused with %d instead of %d", came, expected);
}

static struct amqp_connection_info parsed(const char *variable) {
  struct amqp_connection_info info;
  char *url = strdup(getenv(variable));
  /* The vhost, `/`, is a path that the library leaves encoded or takes as empty. */
  check(amqp_parse_url(url, &info) == AMQP_STATUS_OK, "the URL is wrong");
  return info;
}

static amqp_rpc_reply_t login(Connection connection, const char *password) {
  /* By default the library does not ask for notifications of cancelled consumers. */
  amqp_table_entry_t can = {bytes("consumer_cancel_notify"), {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = true}};
  amqp_table_entry_t capabilities = {bytes("capabilities"), {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &can}}};
  amqp_table_t properties = {1, &capabilities};
  return amqp_login_with_properties(connection, "/", 0, FRAME_MAX, 0, &properties, AMQP_SASL_METHOD_PLAIN, "guest",
                                    password);
}

static Connection socket_open(void) {
  struct amqp_connection_info info = parsed("AMQP_URL");
  Connection connection = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(connection);
  check(amqp_socket_open(socket, info.host, info.port) == AMQP_STATUS_OK, "cannot connect");
  return connection;
}

static void channel(Connection connection, int number) {
  amqp_channel_open(connection, number);
  done(connection, "channel.open");
}

/* A connection with channel 1. */
static Connection opened(void) {
  Connection connection = socket_open();
  ok(login(connection, "guest"), "login");
  channel(connection, 1);
  return connection;
}

static void closed(Connection connection) {
  ok(amqp_connection_close(connection, AMQP_REPLY_SUCCESS), "connection.close");
  amqp_destroy_connection(connection);
}

static amqp_table_entry_t text(const char *key, amqp_bytes_t value) {
  return (amqp_table_entry_t){bytes(key), {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = value}};
}

static amqp_table_entry_t number(const char *key, int value) {
  return (amqp_table_entry_t){bytes(key), {.kind = AMQP_FIELD_KIND_I32, .value.i32 = value}};
}

#define TABLE(...)                                                                                   \
  ((amqp_table_t){sizeof((amqp_table_entry_t[]){__VA_ARGS__}) / sizeof(amqp_table_entry_t),          \
                  (amqp_table_entry_t[]){__VA_ARGS__}})

/* Declare an exclusive queue. */
static amqp_bytes_t queue(Connection connection, const char *stem, amqp_table_t arguments) {
  amqp_bytes_t q = name(stem);
  amqp_queue_declare(connection, 1, q, false, false, true, false, arguments);
  done(connection, "queue.declare");
  return q;
}

static void publish(Connection connection, const char *exchange, amqp_bytes_t key, const char *body,
                    const amqp_basic_properties_t *properties) {
  int status = amqp_basic_publish(connection, 1, bytes(exchange), key, false, false, properties, bytes(body));
  check(status == AMQP_STATUS_OK, amqp_error_string2(status));
}

static void send(Connection connection, amqp_bytes_t queue, const char *body) {
  publish(connection, "", queue, body, NULL);
}

static void consume(Connection connection, int channel, amqp_bytes_t queue, bool no_ack, amqp_table_t arguments) {
  amqp_basic_consume(connection, channel, queue, amqp_empty_bytes, false, no_ack, false, arguments);
  done(connection, "basic.consume");
}

static amqp_rpc_reply_t wait_message(Connection connection, amqp_envelope_t *envelope, int milliseconds) {
  struct timeval timeout = {milliseconds / 1000, milliseconds % 1000 * 1000};
  return amqp_consume_message(connection, envelope, &timeout, 0);
}

static amqp_envelope_t next(Connection connection) {
  amqp_envelope_t envelope;
  ok(wait_message(connection, &envelope, PATIENCE_S * 1000), "no message came");
  return envelope;
}

static void expect(Connection connection, const char *const bodies[], int count) {
  for (int i = 0; i < count; i++) {
    amqp_envelope_t envelope = next(connection);
    same(envelope.message.body, bodies[i]);
    amqp_destroy_envelope(&envelope);
  }
}

#define EXPECT(connection, ...)                             \
  expect(connection, (const char *const[]){__VA_ARGS__},    \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* The next frame, which is to be this method. */
static amqp_frame_t method(Connection connection, amqp_method_number_t id, const char *otherwise) {
  amqp_frame_t frame;
  struct timeval timeout = {PATIENCE_S, 0};
  int status = amqp_simple_wait_frame_noblock(connection, &frame, &timeout);
  if (status != AMQP_STATUS_OK) fail("%s: %s", otherwise, amqp_error_string2(status));
  check(frame.frame_type == AMQP_FRAME_METHOD && frame.payload.method.id == id, otherwise);
  return frame;
}

static void confirmed(Connection connection, uint64_t count) {
  for (uint64_t seen = 0; seen < count;) {
    amqp_frame_t frame = method(connection, AMQP_BASIC_ACK_METHOD, "not confirmed");
    amqp_basic_ack_t *ack = frame.payload.method.decoded;
    seen = ack->multiple ? ack->delivery_tag : seen + 1;
    amqp_maybe_release_buffers(connection);
  }
}

static void confirm_select(Connection connection) {
  amqp_confirm_select(connection, 1);
  done(connection, "confirm.select");
}

/* Request a restart of the broker ("RESTART") or a close of all connections ("CLOSE"). */
static void ask(const char *what) {
  char answer[16];
  printf("%s\n", what);
  check(fgets(answer, sizeof answer, stdin) && strcmp(answer, "DONE\n") == 0, "the harness did not");
}

static void connect(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "connect", amqp_empty_table);
  amqp_basic_properties_t properties = {
      ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG,
      .content_type = bytes("text/plain"), .message_id = bytes("m1"), .headers = TABLE(number("n", 1))};
  publish(connection, "", q, "hello", &properties);
  consume(connection, 1, q, true, amqp_empty_table);
  amqp_envelope_t envelope = next(connection);
  amqp_basic_properties_t *came = &envelope.message.properties;
  same(envelope.message.body, "hello");
  same(came->content_type, "text/plain");
  same(came->message_id, "m1");
  check(came->headers.num_entries == 1 && came->headers.entries[0].value.value.i32 == 1, "other headers");
  amqp_destroy_envelope(&envelope);
  ok(amqp_channel_close(connection, 1, AMQP_REPLY_SUCCESS), "channel.close");
  closed(connection);
}

static void topology(void) {
  Connection connection = opened();
  amqp_bytes_t first = name("events"), second = name("archive"), q = name("topology"), key = bytes("order.#");
  amqp_exchange_declare(connection, 1, first, bytes("topic"), false, true, false, false, amqp_empty_table);
  done(connection, "exchange.declare");
  amqp_exchange_declare(connection, 1, second, bytes("fanout"), false, true, false, false, amqp_empty_table);
  done(connection, "exchange.declare");
  amqp_queue_declare(connection, 1, q, false, true, false, false, amqp_empty_table);
  done(connection, "queue.declare");
  amqp_exchange_bind(connection, 1, second, first, key, amqp_empty_table);
  done(connection, "exchange.bind");
  amqp_queue_bind(connection, 1, q, second, amqp_empty_bytes, amqp_empty_table);
  done(connection, "queue.bind");
  publish(connection, first.bytes, bytes("order.created"), "1", NULL);
  amqp_exchange_unbind(connection, 1, second, first, key, amqp_empty_table);
  done(connection, "exchange.unbind");
  publish(connection, first.bytes, bytes("order.created"), "2", NULL);
  amqp_queue_unbind(connection, 1, q, second, amqp_empty_bytes, amqp_empty_table);
  done(connection, "queue.unbind");
  amqp_queue_purge_ok_t *purged = amqp_queue_purge(connection, 1, q);
  check(purged && purged->message_count == 1, "purged another count");
  channel(connection, 2);
  amqp_queue_declare(connection, 2, name("missing"), true, false, false, false, amqp_empty_table);
  refused(connection, 404);
  channel(connection, 3);
  amqp_queue_declare(connection, 3, q, false, false, false, false, amqp_empty_table);
  refused(connection, 406);
  check(amqp_queue_delete(connection, 1, q, false, false) != NULL, "queue.delete");
  check(amqp_exchange_delete(connection, 1, first, false) != NULL, "exchange.delete");
  check(amqp_exchange_delete(connection, 1, second, false) != NULL, "exchange.delete");
  closed(connection);
}

static void confirms(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "confirms", amqp_empty_table);
  confirm_select(connection);
  amqp_basic_properties_t persistent = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
  for (int i = 0; i < 100; i++) publish(connection, "", q, "x", &persistent);
  confirmed(connection, 100);
  closed(connection);
}

static void returns(void) {
  Connection connection = opened();
  confirm_select(connection);
  amqp_basic_publish(connection, 1, amqp_empty_bytes, name("nobody"), true, false, NULL, bytes("lost"));
  amqp_frame_t frame = method(connection, AMQP_BASIC_RETURN_METHOD, "not returned");
  amqp_basic_return_t *returned = frame.payload.method.decoded;
  check(returned->reply_code == 312, "another code than 312");
  same(returned->reply_text, "NO_ROUTE");
  amqp_message_t message;
  ok(amqp_read_message(connection, 1, &message, 0), "its body");
  same(message.body, "lost");
  amqp_destroy_message(&message);
  confirmed(connection, 1);
  closed(connection);
}

static void prefetch(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "consume", amqp_empty_table);
  for (char body[] = "0"; body[0] <= '9'; body[0]++) send(connection, q, body);
  amqp_basic_qos(connection, 1, 0, 3, false);
  done(connection, "basic.qos");
  consume(connection, 1, q, false, amqp_empty_table);
  EXPECT(connection, "0", "1");
  amqp_envelope_t last = next(connection), more;
  amqp_rpc_reply_t reply = wait_message(connection, &more, 300);
  check(reply.library_error == AMQP_STATUS_TIMEOUT, "one more than the prefetch count");
  amqp_basic_ack(connection, 1, last.delivery_tag, true);
  EXPECT(connection, "3", "4", "5");
  closed(connection);
}

static void requeue(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "requeue", amqp_empty_table);
  consume(connection, 1, q, false, amqp_empty_table);
  send(connection, q, "again");
  amqp_envelope_t first = next(connection);
  amqp_basic_nack(connection, 1, first.delivery_tag, false, true);
  amqp_envelope_t second = next(connection);
  check(!first.redelivered && second.redelivered, "not told as redelivered");
  closed(connection);
}

static amqp_field_value_t field(amqp_table_t table, const char *key) {
  for (int i = 0; i < table.num_entries; i++)
    if (is(table.entries[i].key, key)) return table.entries[i].value;
  fail("no %s", key);
  abort();
}

static void dead_letter(void) {
  Connection connection = opened();
  amqp_bytes_t work = name("work"), wait = name("wait");
  amqp_table_entry_t to_default = text("x-dead-letter-exchange", bytes(""));
  queue(connection, "work", TABLE(to_default, text("x-dead-letter-routing-key", wait)));
  queue(connection, "wait", TABLE(to_default, text("x-dead-letter-routing-key", work), number("x-message-ttl", 200)));
  consume(connection, 1, work, false, amqp_empty_table);
  send(connection, work, "try");
  amqp_envelope_t first = next(connection);
  amqp_basic_reject(connection, 1, first.delivery_tag, false);
  amqp_envelope_t second = next(connection);
  amqp_field_value_t deaths = field(second.message.properties.headers, "x-death");
  check(deaths.kind == AMQP_FIELD_KIND_ARRAY && deaths.value.array.num_entries == 2, "another x-death");
  amqp_field_value_t *history = deaths.value.array.entries;
  same(field(history[0].value.table, "queue").value.bytes, wait.bytes);
  same(field(history[0].value.table, "reason").value.bytes, "expired");
  same(field(history[1].value.table, "queue").value.bytes, work.bytes);
  same(field(history[1].value.table, "reason").value.bytes, "rejected");
  closed(connection);
}

static void ttl(void) {
  Connection connection = opened();
  amqp_bytes_t dead = queue(connection, "dead", amqp_empty_table);
  amqp_table_entry_t to_default = text("x-dead-letter-exchange", bytes(""));
  amqp_table_entry_t to_dead = text("x-dead-letter-routing-key", dead);
  amqp_basic_properties_t expiring = {._flags = AMQP_BASIC_EXPIRATION_FLAG, .expiration = bytes("100")};
  consume(connection, 1, dead, true, amqp_empty_table);
  publish(connection, "", queue(connection, "own", TABLE(to_default, to_dead)), "own", &expiring);
  EXPECT(connection, "own");
  send(connection, queue(connection, "all", TABLE(to_default, to_dead, number("x-message-ttl", 200))), "all");
  EXPECT(connection, "all");
  closed(connection);
}

static void priority(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "priority", TABLE(number("x-max-priority", 5)));
  for (const char *body = "153"; *body; body++) {
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_PRIORITY_FLAG, .priority = *body - '0'};
    publish(connection, "", q, (char[]){*body, 0}, &properties);
  }
  consume(connection, 1, q, true, amqp_empty_table);
  EXPECT(connection, "5", "3", "1");
  closed(connection);
}

static void rpc(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "rpc", amqp_empty_table), reply_to = bytes("amq.rabbitmq.reply-to");
  channel(connection, 2);
  consume(connection, 2, q, true, amqp_empty_table);
  consume(connection, 1, reply_to, true, amqp_empty_table);
  amqp_basic_properties_t asking = {._flags = AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG,
                                    .reply_to = reply_to, .correlation_id = bytes("7")};
  publish(connection, "", q, "question", &asking);
  amqp_envelope_t question = next(connection);
  amqp_basic_properties_t answering = {._flags = AMQP_BASIC_CORRELATION_ID_FLAG,
                                       .correlation_id = question.message.properties.correlation_id};
  char *body = question.message.body.bytes;
  for (size_t i = 0; i < question.message.body.len; i++) body[i] = toupper(body[i]);
  amqp_basic_publish(connection, 2, amqp_empty_bytes, question.message.properties.reply_to, false, false, &answering,
                     question.message.body);
  amqp_envelope_t answer = next(connection);
  same(answer.message.body, "QUESTION");
  same(answer.message.properties.correlation_id, "7");
  closed(connection);
}

static void server_named(void) {
  Connection connection = opened(), other = opened();
  amqp_queue_declare_ok_t *declared =
      amqp_queue_declare(connection, 1, amqp_empty_bytes, false, false, true, false, amqp_empty_table);
  done(connection, "queue.declare");
  check(declared->queue.len > 8 && memcmp(declared->queue.bytes, "amq.gen-", 8) == 0, "another name");
  amqp_basic_consume(other, 1, declared->queue, amqp_empty_bytes, false, true, false, amqp_empty_table);
  refused(other, 405);
  closed(other);
  closed(connection);
}

static void cancel(void) {
  Connection connection = opened(), other = opened();
  amqp_bytes_t q = name("cancel");
  amqp_queue_declare(connection, 1, q, false, false, false, false, amqp_empty_table);
  done(connection, "queue.declare");
  amqp_basic_consume_ok_t *consumer =
      amqp_basic_consume(connection, 1, q, amqp_empty_bytes, false, true, false, amqp_empty_table);
  done(connection, "basic.consume");
  amqp_bytes_t tag = amqp_bytes_malloc_dup(consumer->consumer_tag);
  check(amqp_queue_delete(other, 1, q, false, false) != NULL, "queue.delete");
  amqp_frame_t frame = method(connection, AMQP_BASIC_CANCEL_METHOD, "not told");
  amqp_bytes_t told = ((amqp_basic_cancel_t *)frame.payload.method.decoded)->consumer_tag;
  check(told.len == tag.len && memcmp(told.bytes, tag.bytes, tag.len) == 0, "another tag");
  closed(other);
  closed(connection);
}

static void stream(void) {
  Connection connection = opened();
  amqp_bytes_t q = name("stream");
  amqp_table_t is_stream = TABLE(text("x-queue-type", bytes("stream")));
  amqp_queue_declare(connection, 1, q, false, true, false, false, is_stream);
  done(connection, "queue.declare");
  confirm_select(connection);
  for (char body[] = "0"; body[0] <= '9'; body[0]++) send(connection, q, body);
  confirmed(connection, 10);
  const char *expected[][3] = {{"0", "1", "2"}, {"7", "8", "9"}};
  for (int i = 0; i < 2; i++) {
    channel(connection, 2 + i);
    amqp_basic_qos(connection, 2 + i, 0, 10, false);
    done(connection, "basic.qos");
    amqp_table_entry_t offset = i ? number("x-stream-offset", 7) : text("x-stream-offset", bytes("first"));
    consume(connection, 2 + i, q, false, TABLE(offset));
    for (int k = 0; k < 3;) {
      amqp_envelope_t envelope = next(connection);
      if (envelope.channel != 2 + i) continue; /* input for the previous one */
      same(envelope.message.body, expected[i][k++]);
      amqp_basic_ack(connection, 2 + i, envelope.delivery_tag, false);
    }
    ok(amqp_channel_close(connection, 2 + i, AMQP_REPLY_SUCCESS), "channel.close");
  }
  check(amqp_queue_delete(connection, 1, q, false, false) != NULL, "queue.delete");
  closed(connection);
}

static void large(void) {
  Connection connection = opened();
  amqp_bytes_t q = queue(connection, "large", amqp_empty_table), body = amqp_bytes_malloc(16 << 20);
  for (size_t i = 0; i < body.len; i++) ((char *)body.bytes)[i] = "0123456789abcdef"[i % 16];
  check(amqp_basic_publish(connection, 1, amqp_empty_bytes, q, false, false, NULL, body) == AMQP_STATUS_OK, "publish");
  consume(connection, 1, q, true, amqp_empty_table);
  amqp_envelope_t envelope = next(connection);
  amqp_bytes_t came = envelope.message.body;
  check(came.len == body.len && memcmp(came.bytes, body.bytes, body.len) == 0, "another body came");
  amqp_destroy_envelope(&envelope);
  amqp_bytes_free(body);
  closed(connection);
}

static void tls(void) {
  struct amqp_connection_info info = parsed("AMQPS_URL");
  for (int trusting = 1; trusting >= 0; trusting--) {
    Connection connection = amqp_new_connection();
    amqp_socket_t *socket = amqp_ssl_socket_new(connection);
    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 1);
    if (trusting) check(amqp_ssl_socket_set_cacert(socket, getenv("CA_FILE")) == AMQP_STATUS_OK, "CA_FILE");
    int status = amqp_socket_open(socket, info.host, info.port);
    if (trusting) {
      check(status == AMQP_STATUS_OK, amqp_error_string2(status));
      ok(login(connection, "guest"), "login");
      closed(connection);
    } else {
      check(status == AMQP_STATUS_SSL_PEER_VERIFY_FAILED || status == AMQP_STATUS_SSL_CONNECTION_FAILED,
            "connected without the authority");
      amqp_destroy_connection(connection);
    }
  }
}

static void wrong_password(void) {
  Connection connection = socket_open();
  amqp_rpc_reply_t reply = login(connection, "wrong");
  check(code(reply) == 403, "not refused with 403");
  amqp_destroy_connection(connection);
}

/* The end of a wait for a message on a connection that the broker closes. */
static int closing_code(Connection connection) {
  amqp_envelope_t envelope;
  amqp_rpc_reply_t reply = wait_message(connection, &envelope, PATIENCE_S * 1000);
  if (reply.library_error != AMQP_STATUS_UNEXPECTED_STATE) return code(reply);
  amqp_frame_t frame = method(connection, AMQP_CONNECTION_CLOSE_METHOD, "not told");
  return ((amqp_connection_close_t *)frame.payload.method.decoded)->reply_code;
}

static void forced_close(void) {
  Connection connection = opened();
  ask("CLOSE");
  int told = closing_code(connection);
  if (told != 320) fail("told %d instead of 320", told);
  amqp_destroy_connection(connection);
}

static void reconnect(void) {
  Connection connection = opened();
  amqp_bytes_t q = name("reconnect");
  amqp_queue_declare(connection, 1, q, false, true, false, false, amqp_empty_table);
  done(connection, "queue.declare");
  confirm_select(connection);
  amqp_basic_properties_t persistent = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
  publish(connection, "", q, "kept", &persistent);
  confirmed(connection, 1);
  ask("RESTART");
  amqp_envelope_t envelope;
  amqp_rpc_reply_t end = wait_message(connection, &envelope, PATIENCE_S * 1000);
  check(end.library_error != AMQP_STATUS_TIMEOUT, "not told that the connection is lost");
  amqp_destroy_connection(connection);
  connection = opened();
  consume(connection, 1, q, true, amqp_empty_table);
  EXPECT(connection, "kept");
  check(amqp_queue_delete(connection, 1, q, false, false) != NULL, "queue.delete");
  closed(connection);
}

static const struct {
  const char *name;
  void (*play)(void);
} scenarios[] = {{"connect", connect}, {"topology", topology}, {"confirms", confirms}, {"returns", returns},
                 {"consume", prefetch}, {"requeue", requeue}, {"dead_letter", dead_letter}, {"ttl", ttl},
                 {"priority", priority}, {"rpc", rpc}, {"server_named", server_named}, {"cancel", cancel},
                 {"stream", stream}, {"large", large}, {"tls", tls}, {"wrong_password", wrong_password},
                 {"forced_close", forced_close}, {"reconnect", reconnect}};

int main(int count, char *arguments[]) {
  setlinebuf(stdout);
  for (int i = 1; i < count; i++) {
    for (size_t k = 0; k < sizeof scenarios / sizeof *scenarios; k++) {
      if (strcmp(arguments[i], scenarios[k].name) != 0) continue;
      if (setjmp(failure)) {
        printf("RESULT %s failed %s\n", arguments[i], reason);
      } else {
        scenarios[k].play();
        printf("RESULT %s ok\n", arguments[i]);
      }
    }
  }
}
