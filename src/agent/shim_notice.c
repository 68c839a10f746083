#include "agent/shim_notice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"

enum { BACKLOG = 4, NOTICE_BYTES_MAX = 1024 };

/* ---- the directory ------------------------------------------------------------------------- */

static enum err listen_there(int *out, struct error *e)
{
    static const struct sockaddr_un address = { .sun_family = AF_UNIX,
                                                .sun_path =
                                                    ATTEMPT_NOTICE_DIR "/" NOTICE_SOCKET_NAME };
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(address.sun_path, 0666) != 0 || listen(fd, BACKLOG) != 0)
        return err_errno(e, "listen at %s", address.sun_path);
    *out = fd_take(&fd);
    return ERR_OK;
}

enum err shim_notice_open(struct shim_notice *notice, struct error *e)
{
    if (mkdir(ATTEMPT_NOTICE_DIR, 0755) != 0)
        return err_errno(e, "make %s", ATTEMPT_NOTICE_DIR);
    notice->dir_fd = open(ATTEMPT_NOTICE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (notice->dir_fd < 0)
        return err_errno(e, "open %s", ATTEMPT_NOTICE_DIR);
    return listen_there(&notice->listen_fd, e);
}

/* ---- being told ---------------------------------------------------------------------------- */

/* What only the node knows it is called as the controller will call it. */
static const char *cause_of(enum ipc_end end)
{
    return end == IPC_END_TIME_LIMIT ? "time_limit" : "node_failure";
}

/* Why it may not have more time than it was given; NULL: it may. */
static const char *extension_fault(const struct shim_notice *notice)
{
    if (notice->context->spec.fence_after_s > 0)
        return "fenced work has to be gone in time";
    if (notice->end != IPC_END_STOPPED)
        return "its node ends it, and cannot wait";
    if (strcmp(notice->cause, "user_cancelled") == 0 ||
        strcmp(notice->cause, "admin_cancelled") == 0)
        return "somebody cancelled it";
    return NULL;
}

/* By the wall clock, which is all that a workload has; the deadline itself is not by that. */
static struct wall wall_of(struct mono at)
{
    return (struct wall){ clock_wall().ns + (at.ns - clock_boottime().ns) };
}

static uint32_t total_s(const struct shim_notice *notice)
{
    return (uint32_t)((notice->kill_at.ns - notice->told_at.ns) / NS_PER_S);
}

static int notice_format(const struct shim_notice *notice, char out[NOTICE_BYTES_MAX])
{
    const struct attempt_spec *spec = &notice->context->spec;
    char allocation[ID_TEXT_MAX];
    char told_at[WALL_TEXT_MAX];
    char kill_at[WALL_TEXT_MAX];
    int64_t kill_s = wall_of(notice->kill_at).ns / NS_PER_S;
    return snprintf(
        out, NOTICE_BYTES_MAX,
        "{\"version\":1,\"cause\":\"%s\",\"told_at\":\"%s\",\"kill_at\":\"%s\","
        "\"kill_at_unix_s\":%lld,\"grace_s\":%u,\"grace_max_s\":%u,"
        "\"allocation\":\"%s\",\"attempt\":%u}\n",
        notice->cause, wall_text(wall_of(notice->told_at), told_at),
        wall_text(wall_of(notice->kill_at), kill_at), (long long)kill_s, total_s(notice),
        extension_fault(notice) == NULL ? MAX_OF((uint32_t)SHIM_GRACE_MAX_S, notice->grace_s)
                                        : notice->grace_s,
        id_text(ID_ALLOCATION, spec->allocation, allocation), spec->attempt);
}

/* Whoever reads it finds all of the old one or all of the new one. */
static void publish(const struct shim_notice *notice)
{
    char text[NOTICE_BYTES_MAX];
    struct error e = { 0 };
    if (notice->dir_fd < 0)
        return;
    int size = notice_format(notice, text);
    (void)unlinkat(notice->dir_fd, NOTICE_FILE_NAME ".new", 0); /* of a time that failed half-way */
    enum err rc = attempt_write_file(notice->dir_fd, NOTICE_FILE_NAME ".new",
                                     (struct str){ text, (size_t)size }, &e);
    if (rc == ERR_OK &&
        (fchmodat(notice->dir_fd, NOTICE_FILE_NAME ".new", 0644, 0) != 0 ||
         renameat(notice->dir_fd, NOTICE_FILE_NAME ".new", notice->dir_fd, NOTICE_FILE_NAME) != 0))
        rc = err_errno(&e, "publish the notice");
    if (rc != ERR_OK)
        (void)dprintf(STDERR_FILENO, "berth-shim %s: %s\n", notice->context->spec.name, e.text);
}

void shim_notice_tell(struct shim_notice *notice, enum ipc_end why, uint32_t grace_s,
                      struct mono now)
{
    struct attempt_reason reason;
    bool is_first = notice->end == IPC_END_NONE;
    if (is_first) {
        bool has_reason = why == IPC_END_STOPPED &&
                          attempt_read_reason(&notice->context->dirs, &reason, NULL) == ERR_OK;
        (void)snprintf(notice->cause, sizeof(notice->cause), "%s",
                       has_reason ? reason.cause : cause_of(why));
        notice->end = why;
        notice->told_at = now;
        notice->grace_s = grace_s;
    }
    notice->kill_at = mono_add_s(now, grace_s);
    publish(notice);
}

/* ---- its words ----------------------------------------------------------------------------- */

/* The extension has to be known elsewhere before somebody counts us as stuck, so it is written at
 * once; of checkpoints the last of a second will do. */
static bool keep_said(struct shim_notice *notice, struct mono now)
{
    struct error e = { 0 };
    if (attempt_write_said(&notice->context->dirs, &notice->said, &e) != ERR_OK)
        return false;
    notice->said_at = now;
    return true;
}

static void checkpointed(struct shim_notice *notice, struct mono now, struct init_report *answer)
{
    const struct attempt_said before = notice->said;
    bool is_soon = before.checkpoints > 0 && mono_before(now, mono_add_s(notice->said_at, 1));
    if (!is_soon) {
        notice->said.checkpoints++;
        notice->said.checkpointed_ns = now.ns;
    }
    if (is_soon || keep_said(notice, now)) {
        (void)snprintf(answer->text, sizeof(answer->text), "ok");
        return;
    }
    notice->said = before;
    (void)snprintf(answer->text, sizeof(answer->text), "error the node cannot write it down now");
}

/* True: there is more time. */
static bool extend(struct shim_notice *notice, int32_t seconds, struct mono now,
                   struct init_report *answer)
{
    const struct attempt_said before = notice->said;
    const char *fault =
        notice->end == IPC_END_NONE ? "nothing stops this workload" : extension_fault(notice);
    if (fault == NULL && !mono_before(now, notice->kill_at))
        fault = "its time is over";
    uint32_t wanted_s = seconds > 0 ? (uint32_t)seconds : notice->context->spec.grace_s;
    wanted_s = MAX_OF(MIN_OF(wanted_s, (uint32_t)SHIM_GRACE_MAX_S), (uint32_t)SHIM_EXTEND_LEAST_S);
    uint32_t total = MIN_OF(total_s(notice) + wanted_s, (uint32_t)SHIM_GRACE_MAX_S);
    if (fault == NULL && total <= total_s(notice))
        fault = "it has all the time there is";
    if (fault == NULL) {
        notice->said.extended_s = total > notice->grace_s ? total - notice->grace_s : 0;
        fault = keep_said(notice, now) ? NULL : "the node cannot write it down now";
    }
    if (fault != NULL) {
        notice->said = before;
        (void)snprintf(answer->text, sizeof(answer->text), "error %s", fault);
        return false;
    }
    notice->kill_at = mono_add_s(notice->told_at, total);
    publish(notice);
    (void)snprintf(answer->text, sizeof(answer->text), "ok %lld",
                   (long long)((notice->kill_at.ns - now.ns) / NS_PER_S));
    return true;
}

bool shim_notice_hear(struct shim_notice *notice, const struct init_report *word, struct mono now,
                      struct init_report *answer)
{
    *answer = (struct init_report){ .kind = INIT_ANSWER };
    if (!mono_before(now, notice->words_until)) {
        notice->words_until = mono_add_s(now, 1);
        notice->words = 0;
    }
    notice->words++;
    if (word->kind == INIT_EXTEND)
        return extend(notice, word->value, now, answer);
    checkpointed(notice, now, answer);
    return false;
}

bool shim_notice_listens(const struct shim_notice *notice, struct mono now)
{
    return notice->words < SHIM_WORDS_AT_ONCE || !mono_before(now, notice->words_until);
}
