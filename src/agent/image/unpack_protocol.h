/*
 * unpack_protocol.h - what the privileged half and berth-unpack say to each other.
 *
 * One program, started afresh for each layer or text, with
 *   0  a stream socket: the blob's bytes, as shipped
 *   3  a SOCK_SEQPACKET socket: the structs below
 *   4  the directory to unpack into, and in any case the sandbox's root
 * It asks for its ids (HELLO), gets them and its limits (GO), and answers once (RESULT). Both ends
 * come from one build, so the structs need no version.
 */
#ifndef AGENT_IMAGE_UNPACK_PROTOCOL_H
#define AGENT_IMAGE_UNPACK_PROTOCOL_H

#include "agent/image/spec.h"
#include "agent/image/store.h"

enum { UNPACK_FD_DATA = 0, UNPACK_FD_CONTROL = 3, UNPACK_FD_DIR = 4, UNPACK_FD_COUNT = 5 };

enum unpack_task {
    UNPACK_TASK_LAYER, /* a tar, plain or packed, into the directory */
    UNPACK_TASK_INDEX, /* JSON of an index; the other texts likewise */
    UNPACK_TASK_MANIFEST,
    UNPACK_TASK_CONFIG,
    UNPACK_TASK_COUNT
};

struct unpack_hello {
    uint32_t magic;
    uint32_t code; /* enum err: its namespaces are made, or why not */
    char text[256];
};
#define UNPACK_MAGIC UINT32_C(0x62657274)

struct unpack_go {
    uint32_t task; /* enum unpack_task */
    struct image_limits limits;
    char name[256]; /* of the image in an index; "" is any */
};

struct unpack_layer_result {
    struct image_digest diff_id;
    int64_t bytes;
    int64_t entries;
    uint32_t is_opaque; /* hides every layer below it */
};

struct unpack_result {
    uint32_t code;  /* enum err; the rest means something only with ERR_OK */
    int32_t number; /* errno of what failed, or 0 */
    char text[256];
    struct unpack_layer_result layer;
    struct image_digest manifest; /* INDEX */
    uint32_t is_index;
    struct image_manifest image; /* MANIFEST; CONFIG sets layer_count and the diff_ids only */
};

#endif
