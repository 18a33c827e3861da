/* Files that fail on demand: the n-th call that changes anything below a folder fails.
 *
 * Loaded by LD_PRELOAD in front of the C library, and armed by the process under test itself
 * (fault_arm, through ctypes). Why not a VFS of SQLite: the standard library's sqlite3 module has
 * no way to name one, and a gallery, a feature store and a model write through different code; in
 * front of the C library one shim serves them all.
 *
 * Seen: write, pwrite, writev, sendfile, copy_file_range, ftruncate, fsync, fdatasync, rename,
 * unlink, rmdir, mkdir and the creation of files. Not seen: memory maps (SQLite's -shm, which it
 * makes anew after a crash) and stdio's own writes (nothing here writes through FILE).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, FULL, BROKEN, KILLED, POWER_CUT };

static char folder[PATH_MAX];  /* only what lies below it is counted */
static int armed, kind, full;
static long seen, aim;
static char where[PATH_MAX + 32]; /* the call that was hit */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- what a power cut takes away: contents and names that were never flushed to the disk */

struct contents { /* of a file as it was last flushed */
    dev_t device;
    ino_t inode;
    int handle; /* never closed: closing any handle of a file drops this process's locks on it */
    int changed;
    off_t size;
    char *data;
};
static struct contents files[4096];
static int n_files;

struct name { /* a file created (no old name), removed (no new name) or renamed */
    char old[PATH_MAX], new[PATH_MAX], saved[PATH_MAX];
};
static struct name names[4096];
static int n_names;

static struct contents *contents_of(int fd) {
    struct stat about;
    if (fstat(fd, &about) || !S_ISREG(about.st_mode)) return NULL;
    for (int i = 0; i < n_files; i++)
        if (files[i].device == about.st_dev && files[i].inode == about.st_ino) return &files[i];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int handle = REAL(open)(link, O_RDWR);
    if (handle < 0 || n_files == 4096) return NULL;
    files[n_files] = (struct contents){about.st_dev, about.st_ino, handle, 0, 0, NULL};
    return &files[n_files++];
}

static void before_change(int fd) { /* keep what is on the disk, once after each flush */
    struct contents *file = kind == POWER_CUT ? contents_of(fd) : NULL;
    if (!file || file->changed) return;
    file->changed = 1;
    file->size = lseek(file->handle, 0, SEEK_END);
    file->data = realloc(file->data, file->size + 1);
    if (pread(file->handle, file->data, file->size, 0) != file->size) abort();
}

static void before_names_change(const char *old, const char *new) {
    if (kind != POWER_CUT || n_names == 4096) return;
    struct name *entry = &names[n_names];
    const char *lost = new ? new : old; /* the file that loses this name is kept under another */
    strcpy(entry->old, old ? old : "");
    strcpy(entry->new, new ? new : "");
    snprintf(entry->saved, PATH_MAX, "%.*s.saved-%d", PATH_MAX / 2, folder, n_names++);
    if (link(lost, entry->saved)) entry->saved[0] = 0;
}

static int lies_in(const char *path, const char *parent) {
    const char *slash = strrchr(path, '/');
    return slash && (size_t)(slash - path) == strlen(parent) && !strncmp(path, parent, slash - path);
}

static void flushed(int fd, const char *path) { /* a file keeps contents and name, a folder names */
    struct contents *file = kind == POWER_CUT ? contents_of(fd) : NULL;
    if (file) file->changed = 0;
    for (int i = 0; kind == POWER_CUT && i < n_names; i++)
        if (file ? !names[i].old[0] && !strcmp(names[i].new, path)
                 : lies_in(names[i].old, path) || lies_in(names[i].new, path)) {
            if (names[i].saved[0]) REAL(unlink)(names[i].saved);
            names[i] = (struct name){0};
        }
}

void fault_cut_power(void) {
    for (int i = 0; i < n_files; i++)
        if (files[i].changed) {
            if (REAL(ftruncate)(files[i].handle, files[i].size)) abort();
            if (REAL(pwrite)(files[i].handle, files[i].data, files[i].size, 0) < 0) abort();
        }
    for (int i = n_names - 1; i >= 0; i--) {
        struct name *entry = &names[i];
        if (entry->old[0] && entry->new[0]) REAL(rename)(entry->new, entry->old);
        if (!entry->old[0] && entry->new[0]) REAL(unlink)(entry->new);
        if (entry->saved[0]) REAL(rename)(entry->saved, entry->new[0] ? entry->new : entry->old);
    }
}

/* ---- counting and failing */

void fault_arm(const char *below, int how, long nth) {
    strncpy(folder, below, sizeof folder - 1);
    kind = how, aim = nth, seen = full = 0, where[0] = 0, armed = 1;
}
void fault_disarm(void) { armed = 0; }
long fault_seen(void) { return seen; }
const char *fault_where(void) { return where; }

static int below(const char *path) {
    size_t length = strlen(folder);
    return armed && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int path_of(int fd, char *path) { /* whether fd is a file below the folder */
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = armed ? readlink(link, path, PATH_MAX - 1) : -1;
    path[length < 0 ? 0 : length] = 0;
    return length > 0 && below(path);
}

static int path_at(int at, const char *name, char *path) { /* the same for a name in a folder */
    if (!armed) return 0;
    path[0] = 0;
    if (name[0] != '/') {
        char link[64] = "/proc/self/cwd";
        if (at != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t length = readlink(link, path, PATH_MAX / 2);
        if (length < 0) return 0;
        strcpy(path + length, "/");
    }
    strncat(path, name, PATH_MAX / 2 - 1);
    return below(path);
}

static int fails(const char *call, const char *path, int takes_space) {
    int hit = ++seen == aim;
    if (hit) snprintf(where, sizeof where, "%s %s", call, path + strlen(folder));
    if (hit && kind == POWER_CUT) fault_cut_power();
    if (hit && kind >= KILLED) kill(getpid(), SIGKILL);
    full |= hit && kind == FULL; /* and stays full */
    errno = kind == FULL ? ENOSPC : EIO;
    return (full && takes_space) || (hit && kind == BROKEN);
}

/* Half of the bytes that the call was to write reach the file before the disk is full, or before
 * the process is killed; every later one finds no space at all. */
static size_t half_of(size_t count) {
    return armed && seen + 1 == aim && (kind == FULL || kind == KILLED) ? count / 2 : 0;
}

/* ---- the calls */

ssize_t write(int fd, const void *data, size_t count) {
    char path[PATH_MAX];
    if (path_of(fd, path)) {
        size_t half = half_of(count);
        before_change(fd);
        if (half) half = REAL(write)(fd, data, half);
        if (fails("write", path, 1)) return half ? (ssize_t)half : -1;
    }
    return REAL(write)(fd, data, count);
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t offset) {
    char path[PATH_MAX];
    if (path_of(fd, path)) {
        size_t half = half_of(count);
        before_change(fd);
        if (half) half = REAL(pwrite)(fd, data, half, offset);
        if (fails("pwrite", path, 1)) return half ? (ssize_t)half : -1;
    }
    return REAL(pwrite)(fd, data, count, offset);
}
ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));

/* A call that changes the file behind `fd`. */
#define CHANGES(call, fd, takes_space)                                   \
    do {                                                                 \
        char path[PATH_MAX];                                             \
        if (path_of(fd, path)) {                                         \
            before_change(fd);                                           \
            if (fails(call, path, takes_space)) return -1;               \
        }                                                                \
    } while (0)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    CHANGES("writev", fd, 1);
    return REAL(writev)(fd, parts, count);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count) {
    CHANGES("sendfile", out, 1);
    return ((ssize_t(*)(int, int, off_t *, size_t))dlsym(RTLD_NEXT, "sendfile"))(out, in, offset, count);
}
ssize_t sendfile64(int, int, off_t *, size_t) __attribute__((alias("sendfile")));

ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t count, unsigned flags) {
    CHANGES("copy_file_range", out, 1);
    return REAL(copy_file_range)(in, from, out, to, count, flags);
}

int ftruncate(int fd, off_t size) {
    CHANGES("ftruncate", fd, 0);
    return REAL(ftruncate)(fd, size);
}
int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));

int fsync(int fd) {
    char path[PATH_MAX];
    int counted = path_of(fd, path);
    if (counted && fails("fsync", path, 1)) return -1;
    int failed = REAL(fsync)(fd);
    if (counted && !failed) flushed(fd, path);
    return failed;
}
int fdatasync(int) __attribute__((alias("fsync")));

int renameat2(int at, const char *old, int to, const char *new, unsigned flags) {
    char old_path[PATH_MAX], new_path[PATH_MAX];
    int counted = path_at(to, new, new_path);
    path_at(at, old, old_path);
    if (counted) {
        if (fails("rename", new_path, 1)) return -1;
        before_names_change(old_path, new_path);
    }
    return REAL(renameat2)(at, old, to, new, flags);
}
int renameat(int at, const char *old, int to, const char *new) {
    return renameat2(at, old, to, new, 0);
}
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int at, const char *name, int flags) {
    char path[PATH_MAX];
    if (path_at(at, name, path)) {
        if (fails("unlink", path, 0)) return -1;
        before_names_change(path, NULL);
    }
    return REAL(unlinkat)(at, name, flags);
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int at, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (path_at(at, name, path) && fails("mkdir", path, 1)) return -1;
    return REAL(mkdirat)(at, name, mode);
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int openat(int at, const char *name, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    char path[PATH_MAX];
    if ((flags & (O_CREAT | O_TRUNC)) && path_at(at, name, path)) {
        struct stat about;
        int there = !stat(path, &about);
        if ((!there || (flags & O_TRUNC)) && fails("create", path, 1)) return -1;
        if (!there) before_names_change(NULL, path);
        if (there && (flags & O_TRUNC)) {
            int handle = REAL(openat)(AT_FDCWD, path, O_RDWR);
            if (handle >= 0) before_change(handle); /* left open, as all handles here */
        }
    }
    return REAL(openat)(at, name, flags, mode);
}
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));

int open(const char *name, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return openat(AT_FDCWD, name, flags, mode);
}
int open64(const char *, int, ...) __attribute__((alias("open")));
