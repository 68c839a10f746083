/*
 * faulty_vfs.h - a disk that fails where a test says: SQLite's default VFS with one planned fault.
 *
 * Operations are counted from faulty_arm() on. A fault hits the n-th operation of its kind, on
 * files of its kind; a lasting one hits all that follow as well. FAULTY_TORN is a power cut in the
 * middle of a write: half of it gets to the file, and nothing after it does. One thread at a time.
 *
 * A sync that does not fail is not passed on: what a process wrote outlives it without, so nothing
 * here needs to wait for a real disk. crash.c alone works on one.
 */
#ifndef TESTS_UNIT_STORE_FAULTY_VFS_H
#define TESTS_UNIT_STORE_FAULTY_VFS_H

#include "base/base.h"

enum faulty_op {
    FAULTY_WRITE,
    FAULTY_SYNC,
    FAULTY_READ,
    FAULTY_TRUNCATE,
    FAULTY_OPEN,
    FAULTY_OP_COUNT
};

enum faulty_kind {
    FAULTY_EIO,
    FAULTY_FULL,  /* nothing of it is written */
    FAULTY_SHORT, /* half of it is written, then the disk is full */
    FAULTY_TORN,  /* half of it is written, then the power is gone: always lasting, for all kinds */
    FAULTY_KIND_COUNT
};

enum faulty_file { FAULTY_ANY, FAULTY_DATABASE, FAULTY_LOG };

struct faulty_plan {
    enum faulty_op op;
    enum faulty_kind kind;
    enum faulty_file file;
    uint64_t at; /* 1: the next one */
    bool lasts;
};

/* Becomes the default VFS. Before any other use of SQLite in the process. */
void faulty_register(void);
void faulty_arm(const struct faulty_plan *wanted);
/* The disk works again. Returns whether the fault was met. */
bool faulty_disarm(void);
/* Operations of a kind since faulty_arm(). */
uint64_t faulty_count(enum faulty_op op);

#endif
