/* Owns the disk that tests can watch and break: stands between a process and its C library
 * (LD_PRELOAD), notes every change below one folder, in order, and fails the calls it was told to.
 *
 * A record: kind (1 byte), file (4), offset (8), length (4), then `length` bytes.  Little endian.
 *   O file, name      a file was opened, its number and its name in the folder
 *   C file, name      the same, and it was not there before
 *   W file, offset    bytes were written        T file, offset    it was cut to this size
 *   S file            it was synced             F file            a sync of it failed
 *   D                 the folder was synced     U name            a name was removed
 *   M offset          a mark that the test set
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FDS 4096
#define FOLDER_FD 0x7fffffffu

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static uint32_t files[MAX_FDS]; /* 0: not watched */
static uint32_t next_file = 1;
static unsigned char *log_data;
static size_t log_size, log_room;
static long calls, fail_at = -1;
static int fail_errno, fail_always;

static void note(char kind, uint32_t file, uint64_t offset, const void *data, uint32_t length) {
    size_t need = log_size + 17 + length;
    if (need > log_room) {
        log_room = need * 2 + 65536;
        log_data = realloc(log_data, log_room);
        if (!log_data) abort();
    }
    unsigned char *at = log_data + log_size;
    at[0] = (unsigned char)kind;
    memcpy(at + 1, &file, 4);
    memcpy(at + 5, &offset, 8);
    memcpy(at + 13, &length, 4);
    if (length) memcpy(at + 17, data, length);
    log_size = need;
}

/* Whether the call that begins now is to fail; counts it. */
static int fails(void) {
    long number = calls++;
    if (fail_at < 0 || number < fail_at || (number > fail_at && !fail_always)) return 0;
    errno = fail_errno;
    return 1;
}

static uint32_t watched(int fd) {
    return root[0] && fd >= 0 && fd < MAX_FDS ? files[fd] : 0;
}

/* The name below the folder, "" for the folder itself, or none. */
static const char *name_of(const char *path) {
    size_t length = strlen(root);
    if (!length || strncmp(path, root, length)) return 0;
    if (path[length] == 0) return path + length;
    if (path[length] != '/') return 0;
    const char *name = path + length + 1;
    size_t n = strlen(name);
    if (n >= 4 && !strcmp(name + n - 4, "-shm")) return 0; /* rebuilt, never trusted */
    if (!strcmp(name, "lock")) return 0;
    return name;
}

static int open_with(const char *real_name, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, real_name);
    const char *name = name_of(path);
    if (!name) {
        int fd = real(path, flags, mode);
        if (fd >= 0 && fd < MAX_FDS) files[fd] = 0;
        return fd;
    }
    pthread_mutex_lock(&lock);
    int existed = access(path, F_OK) == 0;
    int fd = -1;
    if (!fails()) {
        fd = real(path, flags, mode);
        if (fd >= 0 && fd < MAX_FDS) {
            files[fd] = *name ? next_file++ : FOLDER_FD;
            if (*name) note(existed ? 'O' : 'C', files[fd], 0, name, strlen(name));
            if (*name && existed && (flags & O_TRUNC)) note('T', files[fd], 0, 0, 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN(function)                                     \
    int function(const char *path, int flags, ...) {       \
        mode_t mode = 0;                                   \
        if (flags & O_CREAT) {                             \
            va_list more;                                  \
            va_start(more, flags);                         \
            mode = va_arg(more, mode_t);                   \
            va_end(more);                                  \
        }                                                  \
        return open_with(#function, path, flags, mode);    \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, "close");
    if (fd >= 0 && fd < MAX_FDS) files[fd] = 0;
    return real(fd);
}

static ssize_t written(int fd, const void *data, off64_t offset, ssize_t done) {
    if (done > 0) note('W', files[fd], (uint64_t)offset, data, (uint32_t)done);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    if (!watched(fd)) return real(fd, data, size, offset);
    pthread_mutex_lock(&lock);
    ssize_t done = fails() ? -1 : written(fd, data, offset, real(fd, data, size, offset));
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    return pwrite64(fd, data, size, offset);
}

ssize_t write(int fd, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (!watched(fd)) return real(fd, data, size);
    pthread_mutex_lock(&lock);
    off64_t offset = lseek64(fd, 0, SEEK_CUR);
    ssize_t done = fails() ? -1 : written(fd, data, offset, real(fd, data, size));
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset) {
    ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    if (!watched(fd)) return real(fd, data, size, offset);
    pthread_mutex_lock(&lock);
    int failed = fails();
    pthread_mutex_unlock(&lock);
    return failed ? -1 : real(fd, data, size, offset);
}

int ftruncate64(int fd, off64_t size) {
    int (*real)(int, off64_t) = dlsym(RTLD_NEXT, "ftruncate64");
    if (!watched(fd)) return real(fd, size);
    pthread_mutex_lock(&lock);
    int result = fails() ? -1 : real(fd, size);
    if (!result) note('T', files[fd], (uint64_t)size, 0, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

/* Nothing is really synced: the test decides what would have survived. */
static int synced(int fd, const char *real_name) {
    if (!watched(fd)) {
        int (*real)(int) = dlsym(RTLD_NEXT, real_name);
        return real(fd);
    }
    pthread_mutex_lock(&lock);
    int result = fails() ? -1 : 0;
    if (files[fd] != FOLDER_FD)
        note(result ? 'F' : 'S', files[fd], 0, 0, 0);
    else if (!result)
        note('D', 0, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }

int unlink(const char *path) {
    int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
    const char *name = name_of(path);
    if (!name) return real(path);
    pthread_mutex_lock(&lock);
    int result = fails() ? -1 : real(path);
    if (!result) note('U', 0, 0, name, strlen(name));
    pthread_mutex_unlock(&lock);
    return result;
}

/* --- What the test calls ---------------------------------------------------------------------- */

void disk_watch(const char *folder) {
    strncpy(root, folder, sizeof root - 1);
    log_size = 0;
    calls = 0;
    fail_at = -1;
}

void disk_mark(uint64_t number) { note('M', 0, number, 0, 0); }
void disk_fail(long at, int error, int always) {
    fail_at = at < 0 ? -1 : calls + at;
    fail_errno = error;
    fail_always = always;
}
long disk_calls(void) { return calls; }
size_t disk_log_size(void) { return log_size; }
unsigned char *disk_log(void) { return log_data; }
