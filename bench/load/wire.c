#include "load.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void put(struct bytes *to, const void *from, size_t length) {
  if (to->length + length > to->capacity) {
    to->capacity = (to->length + length) * 2;
    to->at = realloc(to->at, to->capacity);
    if (!to->at) fail("out of memory");
  }
  memcpy(to->at + to->length, from, length);
  to->length += length;
}

static void put8(struct bytes *to, uint8_t value) { put(to, &value, 1); }

static void put16(struct bytes *to, uint16_t value) {
  value = htons(value);
  put(to, &value, 2);
}

static void put32(struct bytes *to, uint32_t value) {
  value = htonl(value);
  put(to, &value, 4);
}

static void put64(struct bytes *to, uint64_t value) {
  value = htobe64(value);
  put(to, &value, 8);
}

static void put_short_string(struct bytes *to, const char *text, size_t length) {
  put8(to, length);
  put(to, text, length);
}

static size_t begin_frame(struct bytes *to, int kind, int channel) {
  put8(to, kind);
  put16(to, channel);
  put32(to, 0);
  return to->length;
}

static void end_frame(struct bytes *to, size_t payload) {
  uint32_t size = htonl(to->length - payload);
  memcpy(to->at + payload - 4, &size, 4);
  put8(to, FRAME_END);
}

void put_method(struct bytes *to, int channel, uint32_t id, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put_method_list(to, channel, id, format, arguments);
  va_end(arguments);
}

void put_method_list(struct bytes *to, int channel, uint32_t id, const char *format, va_list arguments) {
  size_t payload = begin_frame(to, FRAME_METHOD, channel);
  put32(to, id);
  for (; *format; format++) {
    const char *text;
    size_t length;
    switch (*format) {
      case 'b': put8(to, va_arg(arguments, int)); break;
      case 's': put16(to, va_arg(arguments, int)); break;
      case 'l': put32(to, va_arg(arguments, int)); break;
      case 'L': put64(to, va_arg(arguments, int64_t)); break;
      case 't':
        text = va_arg(arguments, const char *);
        put_short_string(to, text, strlen(text));
        break;
      case 'T':
        text = va_arg(arguments, const char *);
        length = va_arg(arguments, size_t);
        put32(to, length);
        put(to, text, length);
        break;
      case 'e': put32(to, 0); break;
    }
  }
  end_frame(to, payload);
}

void put_number_field(struct bytes *to, const char *name, size_t name_length, int64_t value) {
  put_short_string(to, name, name_length);
  put8(to, 'l');
  put64(to, value);
}

void put_text_field(struct bytes *to, const char *name, size_t name_length, const char *value) {
  put_short_string(to, name, name_length);
  put8(to, 'S');
  put32(to, strlen(value));
  put(to, value, strlen(value));
}

void put_big(struct bytes *to, uint64_t value, int octets) {
  value = htobe64(value << (64 - 8 * octets));
  put(to, &value, (size_t)octets);
}

void put_properties(struct bytes *to, const struct properties *properties) {
  enum { HEADERS = 1 << 13, DELIVERY_MODE = 1 << 12, PRIORITY = 1 << 11, REPLY_TO = 1 << 9, EXPIRATION = 1 << 8 };
  put16(to, (options.delay ? HEADERS : 0) | DELIVERY_MODE | (properties->priority < 0 ? 0 : PRIORITY) |
              (properties->reply_to ? REPLY_TO : 0) | (properties->expiration ? EXPIRATION : 0));
  if (options.delay) {
    static struct bytes headers;
    headers.length = 0;
    put_number_field(&headers, "x-delay", 7, options.delay);
    put32(to, headers.length);
    put(to, headers.at, headers.length);
  }
  put8(to, options.persistent ? 2 : 1);
  if (properties->priority >= 0) put8(to, properties->priority);
  if (properties->reply_to) put_short_string(to, properties->reply_to, strlen(properties->reply_to));
  if (properties->expiration) put_short_string(to, properties->expiration, strlen(properties->expiration));
}

void put_reply_properties(struct bytes *to, const char *correlation_id) {
  enum { CONTENT_TYPE = 1 << 15, CORRELATION_ID = 1 << 10 };
  put16(to, CONTENT_TYPE | (*correlation_id ? CORRELATION_ID : 0));
  put_short_string(to, "application/json", 16);
  if (*correlation_id) put_short_string(to, correlation_id, strlen(correlation_id));
}

struct places put_message(struct bytes *to, const char *exchange, const char *key, const struct bytes *properties,
                          const char *text, int64_t size) {
  static const char zeros[FRAME_MAX];
  struct places places;
  places.key = to->length + 15 + strlen(exchange);
  put_method(to, 1, BASIC_PUBLISH, "sttb", 0, exchange, key, 0);
  size_t payload = begin_frame(to, FRAME_HEADER, 1);
  put16(to, 60);
  put16(to, 0);
  put64(to, size);
  places.properties = to->length;
  put(to, properties->at, properties->length);
  end_frame(to, payload);
  places.body = to->length + FRAME_OVERHEAD - 1;
  for (int64_t done = 0; done < size;) {
    int64_t piece = size - done < FRAME_MAX - FRAME_OVERHEAD ? size - done : FRAME_MAX - FRAME_OVERHEAD;
    payload = begin_frame(to, FRAME_BODY, 1);
    put(to, text ? text + done : zeros, piece);
    end_frame(to, payload);
    done += piece;
  }
  return places;
}

uint32_t get32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return ntohl(value);
}

uint64_t get64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return be64toh(value);
}

void set64(uint8_t *at, uint64_t value) {
  value = htobe64(value);
  memcpy(at, &value, 8);
}
