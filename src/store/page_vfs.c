#include "store/page_vfs.h"

#include <pthread.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "os/random.h"

enum { PAGE_BYTES = 4096, NAME_BYTES = 8, CHECK_BYTES = 8, TRAILER_BYTES = 16 };
enum { CHECKED_BYTES = PAGE_BYTES - CHECK_BYTES, NAME_AT = PAGE_BYTES - TRAILER_BYTES };
/* SQLite reads this much of the head of a file on its own; all other reads are whole pages. */
enum { HEADER_BYTES = 100 };

struct page_file {
    sqlite3_file base; /* first: SQLite sees this */
    bool is_database;  /* of logs and journals nothing is checked here */
    bool has_name;
    uint8_t name[NAME_BYTES];
    int64_t bad_page;
    unsigned unsynced; /* pages of a database written since the last small sync */
    bool is_log;
    struct buf gathered; /* of a log: not written yet */
    int64_t gathered_at;
    /* The file of the layer below follows. */
};

/* Aligned as the layer below wants its own struct. */
enum { FILE_BYTES = (sizeof(struct page_file) + 15) / 16 * 16 };

static sqlite3_file *below(sqlite3_file *file)
{
    return (sqlite3_file *)(void *)((char *)file + FILE_BYTES);
}

static struct page_file *own(sqlite3_file *file)
{
    return (struct page_file *)(void *)file;
}

/* ---- the log's writes ------------------------------------------------------------------------ */

/* SQLite's own files take less than 128 KiB a write. */
enum { GATHERED_MAX = 1 << 20, WRITE_MAX = 1 << 16 };

/* After a failure they are gone: the transaction they belong to fails as a whole. */
static int write_gathered(sqlite3_file *file)
{
    struct page_file *p = own(file);
    sqlite3_file *f = below(file);
    int rc = SQLITE_OK;
    for (size_t done = 0; rc == SQLITE_OK && done < p->gathered.size; done += WRITE_MAX) {
        size_t size = MIN_OF(p->gathered.size - done, (size_t)WRITE_MAX);
        rc = f->pMethods->xWrite(f, p->gathered.data + done, (int)size,
                                 p->gathered_at + (int64_t)done);
    }
    buf_clear(&p->gathered);
    return rc;
}

static int log_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    struct page_file *p = own(file);
    bool follows = at == p->gathered_at + (int64_t)p->gathered.size &&
                   p->gathered.size + (size_t)size <= GATHERED_MAX;
    if (!follows) {
        int rc = write_gathered(file);
        if (rc != SQLITE_OK)
            return rc;
        p->gathered_at = at;
    }
    buf_add(&p->gathered, bytes, (size_t)size);
    return SQLITE_OK;
}

/* ---- signing and checking ------------------------------------------------------------------- */

static uint64_t page_check(const uint8_t *page, int64_t number)
{
    uint8_t key[16] = "berth page chk"; /* no secret: damage is found, not forgery */
    for (unsigned i = 0; i < 8; i++)
        key[8 + i] ^= (uint8_t)((uint64_t)number >> (8 * i));
    return siphash(key, page, CHECKED_BYTES);
}

/* The name on page 1, whichever page is met first; a file without one gets it now. */
static bool find_name(sqlite3_file *file, bool may_make)
{
    struct page_file *p = own(file);
    static const uint8_t none[NAME_BYTES];
    if (p->has_name)
        return true;
    sqlite3_file *f = below(file);
    uint8_t name[NAME_BYTES] = { 0 };
    if (f->pMethods->xRead(f, name, NAME_BYTES, NAME_AT) != SQLITE_OK ||
        memcmp(name, none, NAME_BYTES) == 0) {
        if (!may_make)
            return false;
        random_bytes(name, NAME_BYTES);
        name[0] |= 1; /* never all zero */
    }
    memcpy(p->name, name, NAME_BYTES);
    p->has_name = true;
    return true;
}

static int page_read(sqlite3_file *file, void *out, int size, sqlite3_int64 at)
{
    struct page_file *p = own(file);
    sqlite3_file *f = below(file);
    int rc = write_gathered(file);
    if (rc == SQLITE_OK)
        rc = f->pMethods->xRead(f, out, size, at);
    if (!p->is_database || size <= HEADER_BYTES)
        return rc;
    if (rc == SQLITE_IOERR_SHORT_READ && at == 0)
        return rc; /* a file that is being made */
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        return rc;

    const uint8_t *page = out;
    int64_t number = at / PAGE_BYTES + 1;
    uint64_t check = 0;
    if (rc == SQLITE_OK && size == PAGE_BYTES && at % PAGE_BYTES == 0) {
        memcpy(&check, page + CHECKED_BYTES, CHECK_BYTES);
        if (check == page_check(page, number) && find_name(file, false) &&
            memcmp(page + NAME_AT, p->name, NAME_BYTES) == 0)
            return SQLITE_OK;
    }
    p->bad_page = number;
    return SQLITE_IOERR_DATA;
}

/*
 * Copying a log back writes tens of MiB. Left to the final sync, they would all stand in
 * the disk's queue before the next commit of the log; so they are forced in small portions,
 * and commits wait for one.
 */
enum { UNSYNCED_MAX = 128 };

static int page_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    struct page_file *p = own(file);
    sqlite3_file *f = below(file);
    if (p->is_log)
        return log_write(file, bytes, size, at);
    if (!p->is_database)
        return f->pMethods->xWrite(f, bytes, size, at);
    if (size != PAGE_BYTES || at % PAGE_BYTES != 0)
        return SQLITE_IOERR_WRITE; /* pages of another size cannot be signed */
    uint8_t page[PAGE_BYTES];
    (void)find_name(file, true);
    memcpy(page, bytes, NAME_AT);
    memcpy(page + NAME_AT, p->name, NAME_BYTES);
    uint64_t check = page_check(page, at / PAGE_BYTES + 1);
    memcpy(page + CHECKED_BYTES, &check, CHECK_BYTES);
    int rc = f->pMethods->xWrite(f, page, size, at);
    if (rc != SQLITE_OK || ++p->unsynced < UNSYNCED_MAX)
        return rc;
    p->unsynced = 0;
    return f->pMethods->xSync(f, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
}

/* ---- passing on ----------------------------------------------------------------------------- */

static int page_close(sqlite3_file *file)
{
    sqlite3_file *f = below(file);
    buf_done(&own(file)->gathered); /* never forced, so of no transaction that counts */
    return f->pMethods != NULL ? f->pMethods->xClose(f) : SQLITE_OK;
}

static int page_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = write_gathered(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xTruncate(below(file), size) : rc;
}

static int page_sync(sqlite3_file *file, int flags)
{
    int rc = write_gathered(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : rc;
}

static int page_size(sqlite3_file *file, sqlite3_int64 *size)
{
    int rc = write_gathered(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), size) : rc;
}

static int page_lock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xLock(below(file), level);
}

static int page_unlock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int page_check_lock(sqlite3_file *file, int *out)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), out);
}

static int page_control(sqlite3_file *file, int op, void *arg)
{
    return below(file)->pMethods->xFileControl(below(file), op, arg);
}

static int page_sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int page_characteristics(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int page_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    return below(file)->pMethods->xShmMap(below(file), region, size, extend, out);
}

static int page_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void page_shm_barrier(sqlite3_file *file)
{
    below(file)->pMethods->xShmBarrier(below(file));
}

static int page_shm_unmap(sqlite3_file *file, int remove)
{
    return below(file)->pMethods->xShmUnmap(below(file), remove);
}

/* Version 2: without memory-mapped pages, which would pass by the checks. */
static const sqlite3_io_methods page_methods = {
    .iVersion = 2,
    .xClose = page_close,
    .xRead = page_read,
    .xWrite = page_write,
    .xTruncate = page_truncate,
    .xSync = page_sync,
    .xFileSize = page_size,
    .xLock = page_lock,
    .xUnlock = page_unlock,
    .xCheckReservedLock = page_check_lock,
    .xFileControl = page_control,
    .xSectorSize = page_sector_size,
    .xDeviceCharacteristics = page_characteristics,
    .xShmMap = page_shm_map,
    .xShmLock = page_shm_lock,
    .xShmBarrier = page_shm_barrier,
    .xShmUnmap = page_shm_unmap,
};

static sqlite3_vfs *parent(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    struct page_file *p = own(file);
    memset(p, 0, FILE_BYTES);
    p->is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    p->is_log = (flags & SQLITE_OPEN_WAL) != 0;
    int rc = parent(vfs)->xOpen(parent(vfs), name, below(file), flags, out);
    /* SQLite closes what has methods, even after a failure. */
    p->base.pMethods = below(file)->pMethods != NULL ? &page_methods : NULL;
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    return parent(vfs)->xDelete(parent(vfs), name, sync);
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    return parent(vfs)->xAccess(parent(vfs), name, flags, out);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    return parent(vfs)->xFullPathname(parent(vfs), name, size, out);
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *out)
{
    return parent(vfs)->xRandomness(parent(vfs), size, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    return parent(vfs)->xSleep(parent(vfs), us);
}

static int vfs_time(sqlite3_vfs *vfs, double *out)
{
    return parent(vfs)->xCurrentTime(parent(vfs), out);
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    return parent(vfs)->xGetLastError(parent(vfs), size, out);
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    return parent(vfs)->xCurrentTimeInt64(parent(vfs), out);
}

static sqlite3_vfs page_vfs = {
    .iVersion = 2,
    .zName = PAGE_VFS_NAME,
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_path,
    .xRandomness = vfs_randomness,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
    .xGetLastError = vfs_last_error,
    .xCurrentTimeInt64 = vfs_time_ms,
};
static int register_rc;

static void register_once(void)
{
    /* Its count of memory costs a lock for every allocation, and nobody asks for it. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_vfs *base = sqlite3_vfs_find(NULL);
    if (base == NULL) {
        register_rc = SQLITE_ERROR;
        return;
    }
    page_vfs.pAppData = base;
    page_vfs.mxPathname = base->mxPathname;
    page_vfs.szOsFile = FILE_BYTES + base->szOsFile;
    register_rc = sqlite3_vfs_register(&page_vfs, 0);
}

enum err page_vfs_register(struct error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, register_once) != 0 || register_rc != SQLITE_OK)
        return err_set(e, ERR_IO, "SQLite has no default VFS to put page checks on");
    return ERR_OK;
}

enum err page_vfs_reserve(sqlite3 *db, struct error *e)
{
    int bytes = TRAILER_BYTES;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes) != SQLITE_OK)
        return err_set(e, ERR_IO, "this SQLite cannot reserve bytes on a page (3.32 can)");
    return ERR_OK;
}

bool page_vfs_is_reserved(sqlite3 *db)
{
    int bytes = -1;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes) == SQLITE_OK &&
           bytes == TRAILER_BYTES;
}

int64_t page_vfs_bad_page(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    if (db == NULL ||
        sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        file == NULL || file->pMethods != &page_methods)
        return 0;
    return own(file)->bad_page;
}
