/* A disk that is recorded, and that fails when a test says so: loaded into a process with LD_PRELOAD.

   DISK_FOLDER names the folder that counts as the disk. Calls on files elsewhere pass.
   DISK_LOG names the record: each change of the folder is appended before it is made, as `struct Record`.
   DISK_FAULT names a file with a `struct Fault`, which a test may change at any time.
   DISK_BOOT_ID names the file that is opened in place of the kernel's boot id.
   DISK_FLUSH_US is the time that a flush takes.

   tests/torture/disk.py reads the log. Changes through a memory mapping are not recorded: LMDB makes them in its lock
   file only, whose content has no meaning after a power cut. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, WRITTEN, TRUNCATE, CREATE, UNLINK, RENAME, MKDIR, SYNC_BEGIN, SYNC_END, SYNC_FAILED };
enum { ON_READ = 1, ON_WRITE = 2, ON_SYNC = 4, ON_LOCK = 8, ON_OPEN = 16 };

struct Record {
    uint32_t kind, name_octets;
    uint64_t inode, offset, octets;
};

struct Fault {
    uint32_t calls;    /* ON_…; 0: no call fails */
    int32_t error;     /* an errno */
    int32_t after;     /* calls that still succeed */
    int32_t count;     /* calls that fail after those; negative: all */
    uint32_t failed;   /* calls that have failed */
    char name[44];     /* the end of the file's path */
};

static char folder[PATH_MAX], boot_id[PATH_MAX];
static size_t folder_octets;
static int log_file = -1;
static useconds_t flush_us;
static struct Fault *fault;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("DISK_FOLDER");
    if (given == NULL || realpath(given, folder) == NULL) return;
    folder_octets = strlen(folder);
    if ((given = getenv("DISK_LOG")) != NULL)
        log_file = (int)syscall(SYS_openat, AT_FDCWD, given, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if ((given = getenv("DISK_FAULT")) != NULL) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, given, O_RDWR | O_CLOEXEC);
        fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (fault == MAP_FAILED) abort();
    }
    if ((given = getenv("DISK_BOOT_ID")) != NULL) strcpy(boot_id, given);
    if ((given = getenv("DISK_FLUSH_US")) != NULL) flush_us = (useconds_t)atoi(given);
}

/* Return the path below the folder, NULL if it is elsewhere. */
static const char *below(const char *path) {
    if (!folder_octets || strncmp(path, folder, folder_octets)) return NULL;
    path += folder_octets;
    return *path == '/' ? path + 1 : *path ? NULL : path;
}

static const char *below_at(int directory, const char *given, char *path) {
    char start[PATH_MAX], joined[2 * PATH_MAX];
    if (!folder_octets) return NULL;
    if (*given == '/')
        *start = '\0';
    else if (directory == AT_FDCWD) {
        if (getcwd(start, sizeof start) == NULL) return NULL;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t octets = readlink(link, start, sizeof start - 1);
        if (octets < 0) return NULL;
        start[octets] = '\0';
    }
    snprintf(joined, sizeof joined, "%s/%s", start, given);
    /* The folder of the name may be behind links; the name itself is not followed. */
    char *end = strrchr(joined, '/');
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s", end + 1);
    *end = '\0';
    if (realpath(*joined ? joined : "/", path) == NULL) return NULL;
    strncat(path, "/", PATH_MAX - strlen(path) - 1);
    strncat(path, name, PATH_MAX - strlen(path) - 1);
    return below(path);
}

/* Return the path of an open file below the folder, NULL if it is elsewhere. */
static const char *below_file(int file, char *path) {
    char link[64];
    if (!folder_octets) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t octets = readlink(link, path, PATH_MAX - 1);
    if (octets < 0) return NULL;
    path[octets] = '\0';
    return below(path);
}

static uint64_t inode_of(int file) {
    struct stat found;
    return fstat(file, &found) ? 0 : found.st_ino;
}

static void note(int kind, uint64_t inode, uint64_t offset, const char *name, const void *data, size_t octets) {
    if (log_file < 0) return;
    struct Record record = {(uint32_t)kind, (uint32_t)strlen(name), inode, offset, octets};
    struct iovec parts[] = {{&record, sizeof record}, {(void *)name, record.name_octets}, {(void *)data, octets}};
    ssize_t total = (ssize_t)(sizeof record + record.name_octets + octets);
    if (syscall(SYS_writev, log_file, parts, 3) != total) abort();
}

/* Return whether this call shall fail; errno is set then. Call it with the lock. */
static int fails(unsigned call, const char *name) {
    if (fault == NULL || !(fault->calls & call)) return 0;
    size_t octets = strlen(name), wanted = strlen(fault->name);
    if (wanted > octets || strcmp(name + octets - wanted, fault->name)) return 0;
    if (fault->after-- > 0) return 0;
    fault->after = 0;
    if (!fault->count) return 0;
    if (fault->count > 0) fault->count--;
    fault->failed++;
    errno = fault->error;
    return 1;
}

static ssize_t write_parts(int file, const struct iovec *parts, int count, off_t offset, int has_offset) {
    char path[PATH_MAX];
    const char *name = below_file(file, path);
    int flags = name == NULL ? 0 : fcntl(file, F_GETFL);
    if (name == NULL)
        return has_offset ? syscall(SYS_pwritev, file, parts, count, offset, 0) : syscall(SYS_writev, file, parts, count);
    pthread_mutex_lock(&lock);
    ssize_t written = -1;
    if (!fails(ON_WRITE, name)) {
        size_t octets = 0;
        for (int at = 0; at < count; at++) octets += parts[at].iov_len;
        char *data = malloc(octets + 1), *end = data;
        for (int at = 0; at < count; at++) end = mempcpy(end, parts[at].iov_base, parts[at].iov_len);
        if (!has_offset) offset = flags & O_APPEND ? lseek(file, 0, SEEK_END) : lseek(file, 0, SEEK_CUR);
        note(WRITE, inode_of(file), (uint64_t)offset, name, data, octets);
        free(data);
        written = has_offset ? syscall(SYS_pwritev, file, parts, count, offset, 0) : syscall(SYS_writev, file, parts, count);
        if (written != (ssize_t)octets) abort(); /* the log would be wrong */
        if (flags & O_DSYNC) {
            if (flush_us) usleep(flush_us);
            /* Others see what the disk may not have. */
            if (fails(ON_SYNC, name)) {
                note(SYNC_FAILED, inode_of(file), 0, name, "", 0);
                written = -1;
            } else
                note(WRITTEN, inode_of(file), (uint64_t)offset, name, "", 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t write(int file, const void *data, size_t octets) {
    char path[PATH_MAX];
    if (below_file(file, path) == NULL) return syscall(SYS_write, file, data, octets);
    struct iovec part = {(void *)data, octets};
    return write_parts(file, &part, 1, 0, 0);
}

ssize_t writev(int file, const struct iovec *parts, int count) { return write_parts(file, parts, count, 0, 0); }

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    return write_parts(file, parts, count, offset, 1);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    return write_parts(file, parts, count, offset, 1);
}

ssize_t pwrite(int file, const void *data, size_t octets, off_t offset) {
    struct iovec part = {(void *)data, octets};
    return write_parts(file, &part, 1, offset, 1);
}

ssize_t pwrite64(int file, const void *data, size_t octets, off64_t offset) {
    return pwrite(file, data, octets, offset);
}

static int read_fails(int file) {
    char path[PATH_MAX];
    const char *name;
    if (fault == NULL || !(fault->calls & ON_READ) || (name = below_file(file, path)) == NULL) return 0;
    pthread_mutex_lock(&lock);
    int is_failed = fails(ON_READ, name);
    pthread_mutex_unlock(&lock);
    return is_failed;
}

ssize_t read(int file, void *data, size_t octets) {
    return read_fails(file) ? -1 : syscall(SYS_read, file, data, octets);
}

ssize_t pread(int file, void *data, size_t octets, off_t offset) {
    return read_fails(file) ? -1 : syscall(SYS_pread64, file, data, octets, offset);
}

ssize_t pread64(int file, void *data, size_t octets, off64_t offset) { return pread(file, data, octets, offset); }

static int truncate_file(int file, off_t size, int may_shrink) {
    char path[PATH_MAX];
    const char *name = below_file(file, path);
    if (name == NULL) return may_shrink ? (int)syscall(SYS_ftruncate, file, size) : 0;
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!fails(ON_WRITE, name)) {
        note(TRUNCATE, inode_of(file), (uint64_t)size, name, "", 0);
        result = (int)syscall(SYS_ftruncate, file, size);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int file, off_t size) { return truncate_file(file, size, 1); }
int ftruncate64(int file, off64_t size) { return truncate_file(file, size, 1); }

int posix_fallocate(int file, off_t offset, off_t octets) {
    char path[PATH_MAX];
    struct stat found;
    if (below_file(file, path) != NULL && !fstat(file, &found) && found.st_size < offset + octets)
        return truncate_file(file, offset + octets, 1) ? errno : 0;
    return 0;
}

int posix_fallocate64(int file, off64_t offset, off64_t octets) { return posix_fallocate(file, offset, octets); }

static int flush(int file, long call) {
    char path[PATH_MAX];
    const char *name = below_file(file, path);
    if (name == NULL) return (int)syscall(call, file);
    uint64_t inode = inode_of(file);
    pthread_mutex_lock(&lock);
    int is_failed = fails(ON_SYNC, name);
    int error = errno;
    note(is_failed ? SYNC_FAILED : SYNC_BEGIN, inode, 0, name, "", 0);
    pthread_mutex_unlock(&lock);
    if (flush_us) usleep(flush_us);
    if (is_failed) {
        errno = error;
        return -1;
    }
    int result = (int)syscall(call, file);
    pthread_mutex_lock(&lock);
    note(SYNC_END, inode, 0, name, "", 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int file) { return flush(file, SYS_fsync); }
int fdatasync(int file) { return flush(file, SYS_fdatasync); }

static int open_file(int directory, const char *given, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (*boot_id && !strcmp(given, "/proc/sys/kernel/random/boot_id")) given = boot_id;
    const char *name = below_at(directory, given, path);
    if (name == NULL) return (int)syscall(SYS_openat, directory, given, flags, mode);
    struct stat before;
    pthread_mutex_lock(&lock);
    int file = -1;
    if (!fails(ON_OPEN, name)) {
        int is_new = (flags & O_CREAT) && lstat(path, &before);
        file = (int)syscall(SYS_openat, directory, given, flags, mode);
        int error = errno;
        if (file >= 0 && is_new) note(CREATE, inode_of(file), 0, name, "", 0);
        if (file >= 0 && !is_new && flags & O_TRUNC) note(TRUNCATE, inode_of(file), 0, name, "", 0);
        errno = error;
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define OPEN_MODE(last)                                          \
    mode_t mode = 0;                                             \
    if (flags & (O_CREAT | __O_TMPFILE)) {                       \
        va_list rest;                                            \
        va_start(rest, last);                                    \
        mode = (mode_t)va_arg(rest, int);                        \
        va_end(rest);                                            \
    }

int open(const char *path, int flags, ...) { OPEN_MODE(flags) return open_file(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN_MODE(flags) return open_file(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { OPEN_MODE(flags) return open_file(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { OPEN_MODE(flags) return open_file(at, path, flags, mode); }

static int change_name(int kind, const char *given, const char *to, mode_t mode) {
    char path[PATH_MAX], to_path[PATH_MAX];
    const char *name = below_at(AT_FDCWD, given, path), *to_name = to == NULL ? "" : below_at(AT_FDCWD, to, to_path);
    pthread_mutex_lock(&lock);
    int result = kind == UNLINK   ? (int)syscall(SYS_unlink, given)
                 : kind == RENAME ? (int)syscall(SYS_rename, given, to)
                 : kind == MKDIR  ? (int)syscall(SYS_mkdir, given, mode)
                                  : (int)syscall(SYS_rmdir, given);
    int error = errno;
    if (!result && name != NULL && to_name != NULL) note(kind ? kind : UNLINK, 0, 0, name, to_name, strlen(to_name));
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int unlink(const char *path) { return change_name(UNLINK, path, NULL, 0); }
int rename(const char *path, const char *to) { return change_name(RENAME, path, to, 0); }
int mkdir(const char *path, mode_t mode) { return change_name(MKDIR, path, NULL, mode); }
int rmdir(const char *path) { return change_name(0, path, NULL, 0); }

static int lock_fails(int file) {
    char path[PATH_MAX];
    const char *name;
    if (fault == NULL || !(fault->calls & ON_LOCK) || (name = below_file(file, path)) == NULL) return 0;
    pthread_mutex_lock(&lock);
    int is_failed = fails(ON_LOCK, name);
    pthread_mutex_unlock(&lock);
    return is_failed;
}

int flock(int file, int operation) {
    return lock_fails(file) ? -1 : (int)syscall(SYS_flock, file, operation);
}

static int control(int file, int command, void *argument) {
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    return locks && lock_fails(file) ? -1 : (int)syscall(SYS_fcntl, file, command, argument);
}

#define CONTROL_ARGUMENT                                         \
    va_list rest;                                                \
    va_start(rest, command);                                     \
    void *argument = va_arg(rest, void *);                       \
    va_end(rest);

int fcntl(int file, int command, ...) { CONTROL_ARGUMENT return control(file, command, argument); }
int fcntl64(int file, int command, ...) { CONTROL_ARGUMENT return control(file, command, argument); }
