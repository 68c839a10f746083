#include "unit/store/faulty_vfs.h"

#include <sqlite3.h>
#include <string.h>

#include "unit/test.h"

struct faulty_file_object {
    sqlite3_file base; /* first: SQLite sees this */
    enum faulty_file kind;
    /* The real file follows. */
};

enum { OBJECT_BYTES = (sizeof(struct faulty_file_object) + 15) / 16 * 16 };

static sqlite3_vfs *real;
static struct faulty_plan plan;
static bool is_armed, was_met, is_dead;
static uint64_t matched; /* operations the plan could have hit */
static uint64_t counts[FAULTY_OP_COUNT];

static sqlite3_file *below(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((char *)file + OBJECT_BYTES);
}

/* Says whether this operation meets the fault. */
static bool meets(enum faulty_op op, enum faulty_file kind)
{
    if (!is_armed)
        return false;
    counts[op]++;
    if (is_dead)
        return true;
    if (op != plan.op || (plan.file != FAULTY_ANY && plan.file != kind))
        return false;
    matched++;
    if (matched != plan.at && !(plan.lasts && matched > plan.at))
        return false;
    was_met = true;
    return true;
}

static int error_of(int io_error)
{
    return plan.kind == FAULTY_FULL || plan.kind == FAULTY_SHORT ? SQLITE_FULL : io_error;
}

static enum faulty_file kind_of(sqlite3_file *file)
{
    return ((struct faulty_file_object *)(void *)file)->kind;
}

static int faulty_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    if (!meets(FAULTY_WRITE, kind_of(file)))
        return below(file)->pMethods->xWrite(below(file), bytes, size, at);
    if (!is_dead && (plan.kind == FAULTY_SHORT || plan.kind == FAULTY_TORN))
        (void)below(file)->pMethods->xWrite(below(file), bytes, size / 2, at);
    if (plan.kind == FAULTY_TORN)
        is_dead = true;
    return error_of(SQLITE_IOERR_WRITE);
}

static int faulty_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    if (!meets(FAULTY_SYNC, kind_of(file)))
        return SQLITE_OK;
    if (plan.kind == FAULTY_TORN)
        is_dead = true;
    return SQLITE_IOERR_FSYNC; /* a full disk is met here too, and known no better */
}

static int faulty_read(sqlite3_file *file, void *out, int size, sqlite3_int64 at)
{
    if (!meets(FAULTY_READ, kind_of(file)))
        return below(file)->pMethods->xRead(below(file), out, size, at);
    return SQLITE_IOERR_READ;
}

static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (!meets(FAULTY_TRUNCATE, kind_of(file)))
        return below(file)->pMethods->xTruncate(below(file), size);
    return error_of(SQLITE_IOERR_TRUNCATE);
}

static int faulty_close(sqlite3_file *file)
{
    return below(file)->pMethods != NULL ? below(file)->pMethods->xClose(below(file)) : SQLITE_OK;
}

static int faulty_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return below(file)->pMethods->xFileSize(below(file), size);
}

static int faulty_lock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xLock(below(file), level);
}

static int faulty_unlock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int faulty_check_lock(sqlite3_file *file, int *out)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), out);
}

static int faulty_control(sqlite3_file *file, int op, void *arg)
{
    return below(file)->pMethods->xFileControl(below(file), op, arg);
}

static int faulty_sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int faulty_characteristics(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int faulty_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    return below(file)->pMethods->xShmMap(below(file), region, size, extend, out);
}

static int faulty_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void faulty_shm_barrier(sqlite3_file *file)
{
    below(file)->pMethods->xShmBarrier(below(file));
}

static int faulty_shm_unmap(sqlite3_file *file, int remove)
{
    return below(file)->pMethods->xShmUnmap(below(file), remove);
}

static const sqlite3_io_methods faulty_methods = {
    .iVersion = 2,
    .xClose = faulty_close,
    .xRead = faulty_read,
    .xWrite = faulty_write,
    .xTruncate = faulty_truncate,
    .xSync = faulty_sync,
    .xFileSize = faulty_size,
    .xLock = faulty_lock,
    .xUnlock = faulty_unlock,
    .xCheckReservedLock = faulty_check_lock,
    .xFileControl = faulty_control,
    .xSectorSize = faulty_sector_size,
    .xDeviceCharacteristics = faulty_characteristics,
    .xShmMap = faulty_shm_map,
    .xShmLock = faulty_shm_lock,
    .xShmBarrier = faulty_shm_barrier,
    .xShmUnmap = faulty_shm_unmap,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    struct faulty_file_object *object = (struct faulty_file_object *)(void *)file;
    (void)vfs;
    memset(object, 0, OBJECT_BYTES);
    object->kind = FAULTY_ANY;
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0)
        object->kind = FAULTY_DATABASE;
    else if ((flags & SQLITE_OPEN_WAL) != 0)
        object->kind = FAULTY_LOG;
    if (meets(FAULTY_OPEN, object->kind))
        return SQLITE_CANTOPEN;
    int rc = real->xOpen(real, name, below(file), flags, out);
    object->base.pMethods = below(file)->pMethods != NULL ? &faulty_methods : NULL;
    return rc;
}

/* What is not about the content of files is passed on with the real VFS as its owner. */
static int faulty_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    return is_dead ? SQLITE_IOERR_DELETE : real->xDelete(real, name, sync);
}

static int faulty_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs;
    return real->xAccess(real, name, flags, out);
}

static int faulty_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    return real->xFullPathname(real, name, size, out);
}

static int faulty_randomness(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    return real->xRandomness(real, size, out);
}

static int faulty_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return real->xSleep(real, us);
}

static int faulty_time(sqlite3_vfs *vfs, double *out)
{
    (void)vfs;
    return real->xCurrentTime(real, out);
}

static int faulty_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    return real->xGetLastError(real, size, out);
}

static int faulty_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    (void)vfs;
    return real->xCurrentTimeInt64(real, out);
}

void faulty_register(void)
{
    static sqlite3_vfs faulty = {
        .iVersion = 2,
        .zName = "faulty",
        .xOpen = faulty_open,
        .xDelete = faulty_delete,
        .xAccess = faulty_access,
        .xFullPathname = faulty_path,
        .xRandomness = faulty_randomness,
        .xSleep = faulty_sleep,
        .xCurrentTime = faulty_time,
        .xGetLastError = faulty_last_error,
        .xCurrentTimeInt64 = faulty_time_ms,
    };
    real = sqlite3_vfs_find(NULL);
    CHECK("a default VFS", real != NULL);
    faulty.mxPathname = real->mxPathname;
    faulty.szOsFile = OBJECT_BYTES + real->szOsFile;
    CHECK("registered", sqlite3_vfs_register(&faulty, 1) == SQLITE_OK);
}

void faulty_arm(const struct faulty_plan *wanted)
{
    plan = *wanted;
    is_armed = true;
    was_met = is_dead = false;
    matched = 0;
    memset(counts, 0, sizeof(counts));
}

bool faulty_disarm(void)
{
    is_armed = is_dead = false;
    return was_met;
}

uint64_t faulty_count(enum faulty_op op)
{
    return counts[op];
}
