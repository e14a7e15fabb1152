// Add 20 ms to every flush of a disk. Loaded with LD_PRELOAD.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_for_the_disk(void) {
  struct timespec delay = {0, 20 * 1000 * 1000};
  nanosleep(&delay, 0);
}

int fsync(int descriptor) {
  wait_for_the_disk();
  return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor) {
  wait_for_the_disk();
  return (int)syscall(SYS_fdatasync, descriptor);
}

int msync(void *address, size_t length, int flags) {
  wait_for_the_disk();
  return (int)syscall(SYS_msync, address, length, flags);
}
