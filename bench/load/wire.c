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
        put8(to, strlen(text));
        put(to, text, strlen(text));
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

size_t put_message(struct bytes *to, const char *exchange, const char *key, int64_t body) {
  put_method(to, 1, BASIC_PUBLISH, "sttb", 0, exchange, key, 0);
  size_t payload = begin_frame(to, FRAME_HEADER, 1);
  put16(to, 60);
  put16(to, 0);
  put64(to, body);
  put16(to, 0x1000); /* one property: delivery mode 1, transient */
  put8(to, 1);
  end_frame(to, payload);
  size_t start = to->length + FRAME_OVERHEAD - 1;
  static const uint8_t zeros[FRAME_MAX];
  for (int64_t left = body; left > 0;) {
    int64_t piece = left < FRAME_MAX - FRAME_OVERHEAD ? left : FRAME_MAX - FRAME_OVERHEAD;
    payload = begin_frame(to, FRAME_BODY, 1);
    put(to, zeros, piece);
    end_frame(to, payload);
    left -= piece;
  }
  return start;
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
