/*
 * Layout: DIR/<project>/<workload>/<attempt>.<rank>.<allocation>.<suffix>, where the suffix is
 * `spool` while the output grows and `done` when nothing follows; `cut` beside it is an empty file
 * that says that bytes were dropped. DIR/expected/<allocation> names project, workload, attempt,
 * rank and node of output that is not complete. The file system is the only state besides caches of
 * how much each project stores and of which workloads output is expected.
 */
#include "controller/logstore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "os/fd.h"
#include "os/file.h"

struct project_use {
    int64_t bytes;
    struct project_use *next;
};

/* A workload of which output is expected. */
struct awaited {
    struct id workload;
    size_t count; /* of its allocations */
    struct awaited *next, *prev;
};

struct logstore {
    char *dir; /* owned */
    int dir_fd;
    logstore_limits_fn *limits;
    void *limits_arg;
    struct id_map uses;            /* project -> struct project_use */
    struct project_use *first_use; /* owned */
    struct id_map awaited;         /* workload -> struct awaited */
    struct awaited *first_awaited; /* owned */
};

enum { PATH_BYTES = 512 };
static const char growing[] = "spool";
static const char done[] = "done";
static const char cut[] = "cut";
static const char expected[] = "expected";

/* Relative to the store's directory. */
static void workload_path(struct id project, struct id workload, char out[PATH_BYTES])
{
    char project_text[ID_TEXT_MAX];
    char workload_text[ID_TEXT_MAX];
    (void)snprintf(out, PATH_BYTES, "%s/%s", id_text(ID_PROJECT, project, project_text),
                   id_text(ID_WORKLOAD, workload, workload_text));
}

static void log_path(const struct log_key *key, const char *suffix, char out[PATH_BYTES])
{
    char dir[PATH_BYTES];
    char allocation[ID_TEXT_MAX];
    workload_path(key->project, key->workload, dir);
    (void)snprintf(out, PATH_BYTES, "%.*s/%lld.%lld.%s.%s", PATH_BYTES - 128, dir,
                   (long long)key->attempt, (long long)key->rank,
                   id_text(ID_ALLOCATION, key->allocation, allocation), suffix);
}

static bool log_exists(const struct logstore *logs, const struct log_key *key, const char *suffix,
                       int64_t *size_bytes)
{
    char path[PATH_BYTES];
    struct stat info;
    log_path(key, suffix, path);
    if (fstatat(logs->dir_fd, path, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (size_bytes != NULL)
        *size_bytes = info.st_size;
    return true;
}

uint64_t logstore_size(struct logstore *logs, const struct log_key *key)
{
    int64_t size_bytes = 0;
    if (!log_exists(logs, key, done, &size_bytes))
        (void)log_exists(logs, key, growing, &size_bytes);
    return (uint64_t)size_bytes;
}

bool logstore_is_final(struct logstore *logs, const struct log_key *key)
{
    return log_exists(logs, key, done, NULL);
}

bool logstore_is_cut(struct logstore *logs, const struct log_key *key)
{
    return log_exists(logs, key, cut, NULL);
}

/* "<attempt>.<rank>.alc_....<suffix>" */
static bool name_parse(struct str name, struct log_key *key, struct str *suffix)
{
    struct str rest = name;
    struct str attempt = str_cut(&rest, '.');
    struct str rank = str_cut(&rest, '.');
    struct str allocation = str_cut(&rest, '.');
    *suffix = rest;
    return str_to_i64(attempt, 0, INT64_MAX, &key->attempt) &&
           str_to_i64(rank, 0, INT64_MAX, &key->rank) &&
           id_parse(ID_ALLOCATION, allocation, &key->allocation);
}

/* A directory below the store, for reading its names; NULL when there is none. */
static DIR *open_below(const struct logstore *logs, const char *path)
{
    int fd = openat(logs->dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (dir == NULL)
        fd_close(fd);
    return dir;
}

/* Calls `each` for every name in a directory that is not hidden. */
static void each_name(DIR *dir, void (*each)(void *arg, DIR *dir, const char *name), void *arg)
{
    const struct dirent *entry;
    while (dir != NULL &&
           (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): our own stream */
        if (entry->d_name[0] != '.')
            each(arg, dir, entry->d_name);
    }
    if (dir != NULL)
        (void)closedir(dir);
}

struct sizing {
    const struct logstore *logs;
    const char *project;
    int64_t bytes;
};

static void add_file(void *arg, DIR *dir, const char *name)
{
    struct sizing *sizing = arg;
    struct stat info;
    if (fstatat(dirfd(dir), name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        sizing->bytes += info.st_size;
}

static void add_workload(void *arg, DIR *dir, const char *name)
{
    struct sizing *sizing = arg;
    char path[PATH_BYTES];
    (void)dir;
    (void)snprintf(path, sizeof(path), "%.64s/%.64s", sizing->project, name);
    each_name(open_below(sizing->logs, path), add_file, sizing);
}

static struct project_use *project_use(struct logstore *logs, struct id project)
{
    struct project_use *use = id_map_get(&logs->uses, project);
    if (use != NULL)
        return use;
    char text[ID_TEXT_MAX];
    struct sizing sizing = { .logs = logs, .project = id_text(ID_PROJECT, project, text) };
    each_name(open_below(logs, sizing.project), add_workload, &sizing);

    use = mem_new(1, sizeof(*use));
    use->bytes = sizing.bytes;
    use->next = logs->first_use;
    logs->first_use = use;
    id_map_put(&logs->uses, project, use);
    return use;
}

/* The ended output that was written to longest ago. */
struct oldest {
    const struct logstore *logs;
    const char *project;
    char path[PATH_BYTES]; /* "": none */
    int64_t size_bytes;
    struct timespec written;
    char workload[ID_TEXT_MAX];
};

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static void consider_file(void *arg, DIR *dir, const char *name)
{
    struct oldest *oldest = arg;
    struct log_key key;
    struct str suffix;
    struct stat info;
    if (!name_parse(str_of(name), &key, &suffix) || !str_is(suffix, done) ||
        fstatat(dirfd(dir), name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (oldest->path[0] != '\0' && !is_before(info.st_mtim, oldest->written))
        return;
    (void)snprintf(oldest->path, sizeof(oldest->path), "%.64s/%.64s/%.200s", oldest->project,
                   oldest->workload, name);
    oldest->size_bytes = info.st_size;
    oldest->written = info.st_mtim;
}

static void consider_workload(void *arg, DIR *dir, const char *name)
{
    struct oldest *oldest = arg;
    char path[PATH_BYTES];
    (void)dir;
    (void)snprintf(oldest->workload, sizeof(oldest->workload), "%.31s", name);
    (void)snprintf(path, sizeof(path), "%.64s/%.64s", oldest->project, name);
    each_name(open_below(oldest->logs, path), consider_file, oldest);
}

static struct logstore_limits limits_of(const struct logstore *logs, struct id project)
{
    return logs->limits(logs->limits_arg, project);
}

/* Makes room for `bytes` more by dropping the oldest ended output of the project. */
static bool make_room(struct logstore *logs, struct id project, struct project_use *use,
                      int64_t bytes)
{
    char text[ID_TEXT_MAX];
    int64_t quota_bytes = limits_of(logs, project).quota_mib * 1024 * 1024;
    while (use->bytes + bytes > quota_bytes) {
        struct oldest oldest = { .logs = logs, .project = id_text(ID_PROJECT, project, text) };
        each_name(open_below(logs, oldest.project), consider_workload, &oldest);
        if (oldest.path[0] == '\0' || unlinkat(logs->dir_fd, oldest.path, 0) != 0)
            return false;
        use->bytes -= oldest.size_bytes;
    }
    return true;
}

static enum err log_open(struct logstore *logs, const struct log_key *key, int *fd, struct error *e)
{
    char path[PATH_BYTES];
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
    log_path(key, growing, path);
    *fd = openat(logs->dir_fd, path, flags, 0600);
    if (*fd >= 0 || errno != ENOENT)
        return *fd >= 0 ? ERR_OK : err_errno(e, "log %s", path);

    char dir[PATH_BYTES];
    char project[ID_TEXT_MAX];
    workload_path(key->project, key->workload, dir);
    (void)mkdirat(logs->dir_fd, id_text(ID_PROJECT, key->project, project), 0700);
    (void)mkdirat(logs->dir_fd, dir, 0700); /* a failure shows in the next line */
    *fd = openat(logs->dir_fd, path, flags, 0600);
    return *fd >= 0 ? ERR_OK : err_errno(e, "log %s", path);
}

static void log_mark_cut(struct logstore *logs, const struct log_key *key)
{
    char path[PATH_BYTES];
    log_path(key, cut, path);
    fd_close(openat(logs->dir_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

enum err logstore_append(struct logstore *logs, const struct log_key *key, uint64_t offset,
                         struct str bytes, struct error *e)
{
    uint64_t stored = logstore_size(logs, key);
    if (logstore_is_final(logs, key) || offset + bytes.size <= stored)
        return ERR_OK;
    if (offset > stored)
        return err_set(e, ERR_CONFLICT, "%llu bytes are stored, offset %llu does not follow",
                       (unsigned long long)stored, (unsigned long long)offset);
    size_t known = (size_t)(stored - offset);
    struct str fresh = { bytes.data + known, bytes.size - known };
    struct project_use *use = project_use(logs, key->project);
    if (!make_room(logs, key->project, use, (int64_t)fresh.size)) {
        log_mark_cut(logs, key);
        return err_set(e, ERR_LIMIT, "the project's output fills its quota of %lld MiB",
                       (long long)limits_of(logs, key->project).quota_mib);
    }
    AUTO(fd) int fd = -1;
    enum err rc = log_open(logs, key, &fd, e);
    if (rc == ERR_OK)
        rc = fd_write_full(fd, fresh.data, fresh.size, e);
    if (rc == ERR_OK)
        use->bytes += (int64_t)fresh.size;
    return rc;
}

/* Whose output it is stands in the name of every file, see log_path() and expected_path(). */
static struct id allocation_of(const char *name)
{
    struct id id = { 0 };
    const char *text = strstr(name, id_prefix(ID_ALLOCATION));
    size_t size = strlen(id_prefix(ID_ALLOCATION)) + ID_DIGITS;
    if (text == NULL || strlen(text) < size ||
        !id_parse(ID_ALLOCATION, (struct str){ text, size }, &id))
        return (struct id){ 0 };
    return id;
}

static void expected_path(struct id allocation, char out[PATH_BYTES])
{
    char text[ID_TEXT_MAX];
    (void)snprintf(out, PATH_BYTES, "%s/%s", expected, id_text(ID_ALLOCATION, allocation, text));
}

bool logstore_expected(struct logstore *logs, struct id allocation, struct log_key *key,
                       struct id *node)
{
    char path[PATH_BYTES];
    char text[4 * ID_TEXT_MAX];
    size_t size = 0;
    expected_path(allocation, path);
    AUTO(fd) int fd = openat(logs->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fd_read_full(fd, text, sizeof(text), &size, NULL) != ERR_OK)
        return false;
    struct str rest = { text, size };
    struct log_key found = { .allocation = allocation };
    struct str project = str_cut(&rest, ' ');
    struct str workload = str_cut(&rest, ' ');
    struct str attempt = str_cut(&rest, ' ');
    struct str rank = str_cut(&rest, ' ');
    struct str node_text = str_cut(&rest, '\n');
    if (!id_parse(ID_PROJECT, project, &found.project) ||
        !id_parse(ID_WORKLOAD, workload, &found.workload) ||
        !str_to_i64(attempt, 0, INT64_MAX, &found.attempt) ||
        !str_to_i64(rank, 0, INT64_MAX, &found.rank) || !id_parse(ID_NODE, node_text, node))
        return false;
    *key = found;
    return true;
}

static void awaited_add(struct logstore *logs, struct id workload)
{
    struct awaited *awaited = id_map_get(&logs->awaited, workload);
    if (awaited == NULL) {
        awaited = mem_new(1, sizeof(*awaited));
        *awaited = (struct awaited){ .workload = workload, .next = logs->first_awaited };
        if (logs->first_awaited != NULL)
            logs->first_awaited->prev = awaited;
        logs->first_awaited = awaited;
        id_map_put(&logs->awaited, workload, awaited);
    }
    awaited->count++;
}

static void awaited_remove(struct logstore *logs, struct awaited *awaited)
{
    (void)id_map_remove(&logs->awaited, awaited->workload);
    if (awaited->prev != NULL)
        awaited->prev->next = awaited->next;
    else
        logs->first_awaited = awaited->next;
    if (awaited->next != NULL)
        awaited->next->prev = awaited->prev;
    mem_free(awaited);
}

static void awaited_take(struct logstore *logs, struct id workload)
{
    struct awaited *awaited = id_map_get(&logs->awaited, workload);
    if (awaited != NULL && --awaited->count == 0)
        awaited_remove(logs, awaited);
}

bool logstore_awaits(const struct logstore *logs, struct id workload)
{
    return id_map_get(&logs->awaited, workload) != NULL;
}

/* What the last process expected. */
static void await_file(void *arg, DIR *dir, const char *name)
{
    struct logstore *logs = arg;
    struct log_key key;
    struct id node;
    (void)dir;
    if (logstore_expected(logs, allocation_of(name), &key, &node))
        awaited_add(logs, key.workload);
}

void logstore_expect(struct logstore *logs, const struct log_key *key, struct id node)
{
    char path[PATH_BYTES];
    char text[4 * ID_TEXT_MAX];
    char project[ID_TEXT_MAX];
    char workload[ID_TEXT_MAX];
    char node_text[ID_TEXT_MAX];
    struct error e = { 0 };
    expected_path(key->allocation, path);
    int length = snprintf(text, sizeof(text), "%s %s %lld %lld %s\n",
                          id_text(ID_PROJECT, key->project, project),
                          id_text(ID_WORKLOAD, key->workload, workload), (long long)key->attempt,
                          (long long)key->rank, id_text(ID_NODE, node, node_text));
    struct log_key known;
    struct id owner;
    if (logstore_expected(logs, key->allocation, &known, &owner))
        return;
    AUTO(fd) int fd = openat(logs->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return; /* as if not expected */
    if (fd_write_full(fd, text, (size_t)length, &e) == ERR_OK)
        awaited_add(logs, key->workload);
    else
        (void)unlinkat(logs->dir_fd, path, 0); /* half a line would name nobody */
}

void logstore_forget(struct logstore *logs, struct id allocation)
{
    char path[PATH_BYTES];
    struct log_key key;
    struct id node;
    bool is_expected = logstore_expected(logs, allocation, &key, &node);
    expected_path(allocation, path);
    if (unlinkat(logs->dir_fd, path, 0) == 0 && is_expected) /* one that stays expires */
        awaited_take(logs, key.workload);
}

void logstore_finish(struct logstore *logs, const struct log_key *key)
{
    char from[PATH_BYTES];
    char to[PATH_BYTES];
    int fd = -1;
    if (logstore_is_final(logs, key))
        return;
    if (log_open(logs, key, &fd, NULL) == ERR_OK) /* output may be empty: then it is made here */
        fd_close(fd);
    log_path(key, growing, from);
    log_path(key, done, to);
    (void)renameat(logs->dir_fd, from, logs->dir_fd, to); /* the next offer finishes it again */
    logstore_forget(logs, key->allocation);
}

struct listing {
    struct logstore *logs;
    struct id project, workload;
    VEC(struct log_entry) entries;
};

static void list_file(void *arg, DIR *dir, const char *name)
{
    struct listing *listing = arg;
    struct log_entry entry = { .key = { .project = listing->project,
                                        .workload = listing->workload } };
    struct str suffix;
    struct stat info;
    if (!name_parse(str_of(name), &entry.key, &suffix) || str_is(suffix, cut) ||
        fstatat(dirfd(dir), name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    entry.size = (uint64_t)info.st_size;
    entry.is_final = str_is(suffix, done);
    entry.is_cut = logstore_is_cut(listing->logs, &entry.key);
    vec_push(&listing->entries, entry);
}

static int entry_order(const void *a, const void *b)
{
    const struct log_entry *x = a;
    const struct log_entry *y = b;
    if (x->key.attempt != y->key.attempt)
        return x->key.attempt < y->key.attempt ? -1 : 1;
    if (x->key.rank != y->key.rank)
        return x->key.rank < y->key.rank ? -1 : 1;
    return id_cmp(x->key.allocation, y->key.allocation);
}

void logstore_list(struct logstore *logs, struct id project, struct id workload, log_entry_fn *each,
                   void *arg)
{
    char path[PATH_BYTES];
    struct listing listing = { .logs = logs, .project = project, .workload = workload };
    workload_path(project, workload, path);
    each_name(open_below(logs, path), list_file, &listing);
    if (listing.entries.count > 1)
        qsort(listing.entries.items, listing.entries.count, sizeof(struct log_entry), entry_order);
    for (size_t i = 0; i < listing.entries.count && each(arg, &listing.entries.items[i]); i++)
        continue;
    vec_done(&listing.entries);
}

enum err logstore_read(struct logstore *logs, const struct log_key *key, uint64_t offset,
                       size_t max, struct buf *out, struct error *e)
{
    char path[PATH_BYTES];
    log_path(key, done, path);
    AUTO(fd) int fd = openat(logs->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        log_path(key, growing, path);
        fd = openat(logs->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0)
        return err_set(e, ERR_NOT_FOUND, "no output is stored");
    buf_reserve(out, max);
    ssize_t got = pread(fd, out->data + out->size, max, (off_t)offset);
    if (got < 0)
        return err_errno(e, "log %s", path);
    out->size += (size_t)got;
    out->data[out->size] = '\0';
    return ERR_OK;
}

enum err logstore_sync(const struct logstore *logs, struct error *e)
{
    return syncfs(logs->dir_fd) == 0 ? ERR_OK : err_errno(e, "sync %s", logs->dir);
}

struct expiry {
    struct logstore *logs;
    int64_t now_s;
    int64_t before_s; /* of the project looked at */
    bool (*is_live)(void *arg, struct id allocation);
    void *arg;
    size_t removed;
    char project[ID_TEXT_MAX];
};

static bool is_expired(const struct expiry *expiry, DIR *dir, const char *name)
{
    struct stat info;
    return fstatat(dirfd(dir), name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           info.st_mtim.tv_sec < expiry->before_s &&
           !expiry->is_live(expiry->arg, allocation_of(name));
}

static void expire_file(void *arg, DIR *dir, const char *name)
{
    struct expiry *expiry = arg;
    if (is_expired(expiry, dir, name) && unlinkat(dirfd(dir), name, 0) == 0)
        expiry->removed++;
}

static void expire_expected(void *arg, DIR *dir, const char *name)
{
    struct expiry *expiry = arg;
    struct log_key key = { 0 };
    struct id node;
    (void)logstore_expected(expiry->logs, allocation_of(name), &key, &node); /* else: nobody's */
    expiry->before_s = expiry->now_s - limits_of(expiry->logs, key.project).age_s;
    if (!is_expired(expiry, dir, name))
        return;
    logstore_forget(expiry->logs, allocation_of(name));
    (void)unlinkat(dirfd(dir), name, 0); /* also one that names nobody */
}

static void expire_workload(void *arg, DIR *dir, const char *name)
{
    struct expiry *expiry = arg;
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%.40s/%.40s", expiry->project, name);
    each_name(open_below(expiry->logs, path), expire_file, expiry);
    (void)unlinkat(dirfd(dir), name, AT_REMOVEDIR); /* goes when it is empty */
}

static void expire_project(void *arg, DIR *dir, const char *name)
{
    struct expiry *expiry = arg;
    struct id project;
    (void)dir;
    if (!id_parse(ID_PROJECT, str_of(name), &project))
        return;
    (void)snprintf(expiry->project, sizeof(expiry->project), "%.31s", name);
    expiry->before_s = expiry->now_s - limits_of(expiry->logs, project).age_s;
    each_name(open_below(expiry->logs, name), expire_workload, expiry);
    struct project_use *use = project_use(expiry->logs, project);
    struct sizing sizing = { .logs = expiry->logs, .project = expiry->project };
    each_name(open_below(expiry->logs, name), add_workload, &sizing);
    use->bytes = sizing.bytes;
    (void)make_room(expiry->logs, project, use, 0); /* what still grows stays, and is cut next */
}

size_t logstore_expire(struct logstore *logs, struct wall now,
                       bool (*is_live)(void *arg, struct id allocation), void *arg)
{
    struct expiry expiry = {
        .logs = logs, .now_s = now.ns / NS_PER_S, .is_live = is_live, .arg = arg
    };
    each_name(open_below(logs, "."), expire_project, &expiry);
    size_t removed = expiry.removed;
    each_name(open_below(logs, expected), expire_expected, &expiry); /* nobody has brought these */
    return removed;
}

enum err logstore_open(const char *dir, logstore_limits_fn *limits, void *arg,
                       struct logstore **out, struct error *e)
{
    enum err rc = file_make_dirs(dir, 0700, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "%s", dir);
    struct logstore *logs = mem_new(1, sizeof(*logs));
    logs->dir = mem_strdup(dir);
    logs->dir_fd = fd_take(&fd);
    logs->limits = limits;
    logs->limits_arg = arg;
    (void)mkdirat(logs->dir_fd, expected, 0700); /* a failure shows when something is expected */
    each_name(open_below(logs, expected), await_file, logs);
    *out = logs;
    return ERR_OK;
}

void logstore_free(struct logstore *logs)
{
    if (logs == NULL)
        return;
    while (logs->first_use != NULL) {
        struct project_use *next = logs->first_use->next;
        mem_free(logs->first_use);
        logs->first_use = next;
    }
    while (logs->first_awaited != NULL)
        awaited_remove(logs, logs->first_awaited);
    id_map_done(&logs->awaited);
    id_map_done(&logs->uses);
    fd_close(logs->dir_fd);
    mem_free(logs->dir);
    mem_free(logs);
}
