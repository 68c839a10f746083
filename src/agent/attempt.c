#include "agent/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"

enum { SPEC_MAGIC = 0x53544142 };   /* "BATS" */
enum { STATUS_MAGIC = 0x54544142 }; /* "BATT" */
enum { STOP_MAGIC = 0x50544142 };   /* "BATP" */
enum { LEASE_MAGIC = 0x4c544142 };  /* "BATL" */
enum { REASON_MAGIC = 0x52544142 }; /* "BATR" */
enum { SAID_MAGIC = 0x44544142 };   /* "BATD" */

/* Against torn and rotten files, not against attackers: the directory is root's alone. */
static const uint8_t check_key[16] = "berth attempt v1";

/* The shape all records share: magic and version in front, the check at the end. */
struct record {
    void *bytes;
    size_t size;
    uint32_t magic;
};

static uint64_t record_check(const struct record *record)
{
    return siphash(check_key, record->bytes, record->size - sizeof(uint64_t));
}

static void record_seal(const struct record *record)
{
    uint32_t head[2] = { record->magic, ATTEMPT_VERSION };
    memcpy(record->bytes, head, sizeof(head));
    uint64_t check = record_check(record);
    memcpy((char *)record->bytes + record->size - sizeof(check), &check, sizeof(check));
}

static bool record_is_intact(const struct record *record)
{
    uint32_t head[2];
    uint64_t check = 0;
    memcpy(head, record->bytes, sizeof(head));
    memcpy(&check, (const char *)record->bytes + record->size - sizeof(check), sizeof(check));
    return head[0] == record->magic && head[1] == ATTEMPT_VERSION && check == record_check(record);
}

static enum err open_file(int dir_fd, const char *name, int *out, struct error *e)
{
    *out = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*out < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "%s does not exist", name);
    return *out < 0 ? err_errno(e, "open %s", name) : ERR_OK;
}

static enum err record_read(int dir_fd, const char *name, const struct record *record,
                            struct error *e)
{
    AUTO(fd) int fd = -1;
    enum err rc = open_file(dir_fd, name, &fd, e);
    if (rc != ERR_OK)
        return rc;
    size_t got = 0;
    rc = fd_read_full(fd, record->bytes, record->size, &got, e);
    if (rc != ERR_OK)
        return rc;
    if (got != record->size || !record_is_intact(record))
        return err_set(e, ERR_CORRUPT, "%s is not what was written", name);
    return ERR_OK;
}

enum durability { VOLATILE, DURABLE };

static enum err replace(int dir_fd, const char *name, struct str bytes, enum durability durability,
                        struct error *e)
{
    char temporary[ATTEMPT_PATH_MAX];
    (void)snprintf(temporary, sizeof(temporary), "%s.new", name);
    /* Not truncated before, for what is there may be all the room there is. */
    AUTO(fd) int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "create %s", temporary);
    enum err rc = fd_write_full(fd, bytes.data, bytes.size, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "write %s", temporary);
    if (ftruncate(fd, (off_t)bytes.size) != 0)
        return err_errno(e, "cut %s", temporary);
    if (durability == DURABLE && fdatasync(fd) != 0)
        return err_errno(e, "sync %s", temporary);
    if (renameat(dir_fd, temporary, dir_fd, name) != 0)
        return err_errno(e, "rename %s", temporary);
    return ERR_OK;
}

static enum err record_write(int dir_fd, const char *name, const struct record *record,
                             enum durability durability, struct error *e)
{
    record_seal(record);
    return replace(dir_fd, name, (struct str){ record->bytes, record->size }, durability, e);
}

char *attempt_name(struct id allocation, uint32_t attempt, char out[ATTEMPT_NAME_MAX])
{
    char text[ID_TEXT_MAX];
    (void)snprintf(out, ATTEMPT_NAME_MAX, "%s.%u", id_text(ID_ALLOCATION, allocation, text),
                   attempt);
    return out;
}

bool attempt_parse(const char *name, struct id *allocation, uint32_t *attempt)
{
    struct str rest = str_of(name);
    struct str id = str_cut(&rest, '.');
    int64_t number = 0;
    if (!id_parse(ID_ALLOCATION, id, allocation) || !str_to_i64(rest, 1, UINT32_MAX, &number))
        return false;
    *attempt = (uint32_t)number;
    return true;
}

void attempt_dirs_done(struct attempt_dirs *dirs)
{
    fd_close(fd_take(&dirs->disk));
    fd_close(fd_take(&dirs->run));
}

static int open_dir(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

enum err attempt_dirs_open(const char *disk, const char *run, struct attempt_dirs *out,
                           struct error *e)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = { open_dir(disk), -1 };
    if (dirs.disk < 0 && errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "%s does not exist", disk);
    if (dirs.disk < 0)
        return err_errno(e, "open %s", disk);
    dirs.run = open_dir(run);
    if (dirs.run < 0 && errno != ENOENT)
        return err_errno(e, "open %s", run);
    *out = (struct attempt_dirs){ fd_take(&dirs.disk), fd_take(&dirs.run) };
    return ERR_OK;
}

enum err attempt_read_spec(const struct attempt_dirs *dirs, struct attempt_spec *out,
                           struct error *e)
{
    struct attempt_spec spec;
    struct record record = { &spec, sizeof(spec), SPEC_MAGIC };
    enum err rc = record_read(dirs->disk, "spec", &record, e);
    if (rc == ERR_OK)
        *out = spec;
    return rc;
}

enum err attempt_read_payload(const struct attempt_dirs *dirs, struct buf *out, struct error *e)
{
    size_t before = out->size;
    size_t head = sizeof(struct attempt_spec);
    enum err rc = attempt_read_file(dirs->disk, "spec", head + PAYLOAD_MAX, out, e);
    if (rc != ERR_OK)
        return rc;
    if (out->size - before < head) {
        out->size = before;
        return err_set(e, ERR_CORRUPT, "spec is too short");
    }
    memmove(out->data + before, out->data + before + head, out->size - before - head);
    out->size -= head;
    return ERR_OK;
}

enum err attempt_write_spec(const struct attempt_dirs *dirs, struct attempt_spec *spec,
                            struct str payload, struct error *e)
{
    record_seal(&(struct record){ spec, sizeof(*spec), SPEC_MAGIC });
    AUTO(buf) struct buf bytes = { 0 };
    buf_add(&bytes, spec, sizeof(*spec));
    buf_add_str(&bytes, payload);
    return attempt_write_file(dirs->disk, "spec", buf_str(&bytes), e);
}

enum err attempt_read_status(const struct attempt_dirs *dirs, struct attempt_status *out,
                             struct error *e)
{
    struct attempt_status status;
    struct record record = { &status, sizeof(status), STATUS_MAGIC };
    struct error ignored;
    enum err rc = record_read(dirs->disk, "status", &record, e);
    /* The rename may not have reached the disk when the power went, the synced bytes have. */
    if (rc != ERR_OK && record_read(dirs->disk, "status.new", &record, &ignored) == ERR_OK)
        rc = ERR_OK;
    if (rc == ERR_NOT_FOUND && dirs->run >= 0)
        rc = record_read(dirs->run, "status", &record, e);
    if (rc == ERR_OK)
        *out = status;
    return rc;
}

enum err attempt_write_status(const struct attempt_dirs *dirs, struct attempt_status *status,
                              struct error *e)
{
    struct record record = { status, sizeof(*status), STATUS_MAGIC };
    bool is_end = status->state == ATTEMPT_EXITED;
    enum err rc =
        is_end ? record_write(dirs->disk, "status", &record, DURABLE, e) : ERR_UNAVAILABLE;
    return rc == ERR_OK || dirs->run < 0 ? rc
                                         : record_write(dirs->run, "status", &record, VOLATILE, e);
}

enum err attempt_reserve(const struct attempt_dirs *dirs, struct error *e)
{
    static const char zeros[MAX_OF(sizeof(struct attempt_status), sizeof(struct attempt_stop))] = {
        0
    };
    const struct {
        int dir_fd;
        const char *name;
        size_t size;
    } rooms[] = {
        { dirs->disk, "status.new", sizeof(struct attempt_status) },
        { dirs->run, "status.new", sizeof(struct attempt_status) },
        { dirs->run, "stop.new", sizeof(struct attempt_stop) },
    };
    for (size_t i = 0; i < COUNT_OF(rooms); i++) {
        enum err rc = attempt_write_file(rooms[i].dir_fd, rooms[i].name,
                                         (struct str){ zeros, rooms[i].size }, e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

enum err attempt_read_stop(const struct attempt_dirs *dirs, struct attempt_stop *out,
                           struct error *e)
{
    struct attempt_stop stop;
    struct record record = { &stop, sizeof(stop), STOP_MAGIC };
    if (dirs->run < 0)
        return err_set(e, ERR_NOT_FOUND, "nobody was told to stop");
    enum err rc = record_read(dirs->run, "stop", &record, e);
    if (rc == ERR_OK)
        *out = stop;
    return rc;
}

enum err attempt_write_stop(const struct attempt_dirs *dirs, struct attempt_stop *stop,
                            struct error *e)
{
    if (dirs->run < 0)
        return err_set(e, ERR_NOT_FOUND, "nobody is there to be told");
    return record_write(dirs->run, "stop", &(struct record){ stop, sizeof(*stop), STOP_MAGIC },
                        VOLATILE, e);
}

/* In memory, where all of it dies with the processes. */
static enum err read_run(const struct attempt_dirs *dirs, const char *name,
                         const struct record *record, struct error *e)
{
    return dirs->run >= 0 ? record_read(dirs->run, name, record, e)
                          : err_set(e, ERR_NOT_FOUND, "it never ran since the machine started");
}

static enum err write_run(const struct attempt_dirs *dirs, const char *name,
                          const struct record *record, struct error *e)
{
    return dirs->run >= 0 ? record_write(dirs->run, name, record, VOLATILE, e)
                          : err_set(e, ERR_NOT_FOUND, "nobody is there to be told");
}

enum err attempt_read_reason(const struct attempt_dirs *dirs, struct attempt_reason *out,
                             struct error *e)
{
    struct attempt_reason reason;
    enum err rc =
        read_run(dirs, "reason", &(struct record){ &reason, sizeof(reason), REASON_MAGIC }, e);
    if (rc != ERR_OK)
        return rc;
    reason.cause[sizeof(reason.cause) - 1] = '\0';
    *out = reason;
    return ERR_OK;
}

enum err attempt_write_reason(const struct attempt_dirs *dirs, struct attempt_reason *reason,
                              struct error *e)
{
    return write_run(dirs, "reason", &(struct record){ reason, sizeof(*reason), REASON_MAGIC }, e);
}

enum err attempt_read_said(const struct attempt_dirs *dirs, struct attempt_said *out,
                           struct error *e)
{
    struct attempt_said said;
    enum err rc = read_run(dirs, "said", &(struct record){ &said, sizeof(said), SAID_MAGIC }, e);
    if (rc == ERR_OK)
        *out = said;
    return rc;
}

enum err attempt_write_said(const struct attempt_dirs *dirs, struct attempt_said *said,
                            struct error *e)
{
    return write_run(dirs, "said", &(struct record){ said, sizeof(*said), SAID_MAGIC }, e);
}

enum err attempt_read_lease(const char *path, struct attempt_lease *out, struct error *e)
{
    struct attempt_lease lease;
    enum err rc =
        record_read(AT_FDCWD, path, &(struct record){ &lease, sizeof(lease), LEASE_MAGIC }, e);
    if (rc == ERR_OK)
        *out = lease;
    return rc;
}

enum err attempt_write_lease(const char *path, struct attempt_lease *lease, struct error *e)
{
    return record_write(AT_FDCWD, path, &(struct record){ lease, sizeof(*lease), LEASE_MAGIC },
                        VOLATILE, e);
}

enum err attempt_write_file(int dir_fd, const char *name, struct str bytes, struct error *e)
{
    AUTO(fd)
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "create %s", name);
    enum err rc = fd_write_full(fd, bytes.data, bytes.size, e);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "write %s", name);
}

enum err attempt_read_file(int dir_fd, const char *name, size_t max, struct buf *out,
                           struct error *e)
{
    AUTO(fd) int fd = -1;
    enum err rc = open_file(dir_fd, name, &fd, e);
    if (rc != ERR_OK)
        return rc;
    size_t got = 0;
    size_t before = out->size;
    buf_reserve(out, max + 1);
    rc = fd_read_full(fd, out->data + before, max + 1, &got, e);
    if (rc == ERR_OK && got > max)
        rc = err_set(e, ERR_LIMIT, "%s is larger than %zu bytes", name, max);
    out->size = rc == ERR_OK ? before + got : before;
    out->data[out->size] = '\0';
    return rc;
}

enum err attempt_lock(const struct attempt_dirs *dirs, int *lock_fd, struct error *e)
{
    AUTO(fd) int fd = openat(dirs->run, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "open lock");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return err_errno(e, "lock");
    *lock_fd = fd_take(&fd);
    return ERR_OK;
}

enum err attempt_lock_sign(int lock_fd, pid_t pid, struct error *e)
{
    char text[16];
    int size = snprintf(text, sizeof(text), "%d\n", pid);
    if (pwrite(lock_fd, text, (size_t)size, 0) != size)
        return err_errno(e, "sign the lock");
    return ERR_OK;
}

enum err attempt_lock_unsign(int lock_fd, struct error *e)
{
    return ftruncate(lock_fd, 0) == 0 ? ERR_OK : err_errno(e, "take the signature back");
}

/* A shared lock that is refused means that the shim lives; one that is had is given back
 * at once. */
static bool is_held(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return true;
    (void)flock(fd, LOCK_UN); /* closing would do it too */
    return false;
}

static pid_t signer(int fd)
{
    char text[16] = "";
    ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
    struct str line = { text, got > 0 ? (size_t)got : 0 };
    struct str number = str_cut(&line, '\n');
    int64_t pid = 0;
    return str_to_i64(number, 1, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

enum err attempt_holder(const struct attempt_dirs *dirs, enum attempt_holder *out, int *pidfd,
                        struct error *e)
{
    *pidfd = -1;
    AUTO(fd)
    int fd = dirs->run >= 0 ? openat(dirs->run, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0 && (dirs->run < 0 || errno == ENOENT)) {
        *out = ATTEMPT_NEVER_RAN;
        return ERR_OK;
    }
    if (fd < 0)
        return err_errno(e, "open lock");
    pid_t pid = signer(fd);
    if (pid == 0) {
        *out = is_held(fd) ? ATTEMPT_STARTING : ATTEMPT_NEVER_RAN;
        return ERR_OK;
    }
    /* Opened before the lock is looked at: if it is held then, the pid was not reused before. */
    AUTO(fd) int process = pidfd_open(pid, 0);
    if (!is_held(fd)) {
        *out = ATTEMPT_LEFT;
        return ERR_OK;
    }
    if (process < 0)
        return err_errno(e, "open shim %d", pid);
    *out = ATTEMPT_HELD;
    *pidfd = fd_take(&process);
    return ERR_OK;
}
