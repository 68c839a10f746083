/*
 * blobs.h - files by their SHA-256: uploaded code and image archives. Written once, verified while
 * they are written, never changed.
 */
#ifndef CONTROLLER_BLOBS_H
#define CONTROLLER_BLOBS_H

#include "base/error.h"
#include "model/record.h"

struct blobs;

/* Makes `dir` when it is missing and removes what an interrupted upload left in it. */
enum err blobs_open(const char *dir, int64_t quota_mib, struct blobs **out, struct error *e)
    MUST_CHECK;
void blobs_free(struct blobs *blobs); /* NULL is a no-op */
DEFINE_CLEANUP(blobs, struct blobs *, blobs_free)

bool blobs_has(const struct blobs *blobs, const struct digest *digest);
/* Opens for reading. ERR_NOT_FOUND. */
enum err blobs_read(const struct blobs *blobs, const struct digest *digest, int *fd,
                    int64_t *size_bytes, struct error *e) MUST_CHECK;
int64_t blobs_bytes(const struct blobs *blobs); /* stored in all */

/* An upload under way. */
struct blob_writer;
/*
 * The quota holds for what is stored and all uploads under way together. Bytes count as they come:
 * what is only announced (0: nothing is) must fit now, but holds no room, or slow clients could
 * take it all. ERR_LIMIT: no room.
 */
enum err blob_writer_new(struct blobs *blobs, int64_t size_bytes_max, int64_t announced_bytes,
                         struct blob_writer **out, struct error *e) MUST_CHECK;
enum err blob_writer_add(struct blob_writer *writer, struct str bytes, struct error *e) MUST_CHECK;
/* Nothing more comes. Checks against `expected` (all zero: any) and makes the bytes durable. */
enum err blob_writer_seal(struct blob_writer *writer, const struct digest *expected,
                          struct digest *digest, int64_t *size_bytes, struct error *e) MUST_CHECK;
const char *blob_writer_path(const struct blob_writer *writer); /* of what is sealed, for looking */
/* Puts what is sealed under its digest. `is_new`: it was not there. */
enum err blob_writer_publish(struct blob_writer *writer, bool *is_new, struct error *e) MUST_CHECK;
void blob_writer_free(struct blob_writer *writer); /* drops what was not published */
DEFINE_CLEANUP(blob_writer, struct blob_writer *, blob_writer_free)

/* What was published for somebody who was then refused. */
void blobs_remove(struct blobs *blobs, const struct digest *digest);

/* Removes blobs that `is_used` denies and that are older than `age_s`; returns how many went. */
size_t blobs_collect(struct blobs *blobs, int64_t now_s, int64_t age_s,
                     bool (*is_used)(void *arg, const struct digest *digest), void *arg);

#endif
