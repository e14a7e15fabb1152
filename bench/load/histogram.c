#include "load.h"

/* Buckets grow with the value, 64 to each power of two: a figure read from them is at most 1.6 % off. */
enum { BUCKETS = 64 * 60 };
static uint32_t counts[BUCKETS];
static int64_t total, largest_ns;

static int bucket(int64_t ns) {
  if (ns < 64) return (int)ns;
  int shift = 63 - __builtin_clzll((uint64_t)ns) - 6;
  return (shift << 6) + (int)(ns >> shift);
}

static double middle_ns(int bucket) {
  if (bucket < 128) return bucket;
  int shift = (bucket >> 6) - 1;
  return (bucket - (shift << 6) + 0.5) * (double)(1LL << shift);
}

void add_latency(int64_t ns) {
  if (ns < 0) ns = 0;
  counts[bucket(ns)]++;
  total++;
  if (ns > largest_ns) largest_ns = ns;
}

double latency_us(double share) {
  if (!total) return -1;
  int64_t rank = (int64_t)(share * (double)total), seen = 0;
  double ns = (double)largest_ns;
  for (int i = 0; rank < total && i < BUCKETS; i++)
    if ((seen += counts[i]) > rank) {
      if (middle_ns(i) < ns) ns = middle_ns(i);
      break;
    }
  return ns / 1e3;
}
