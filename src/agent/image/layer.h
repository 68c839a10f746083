/*
 * layer.h - reads a layer (a tar, plain or packed) and writes what it says into a directory.
 *
 * For berth-unpack only: libarchive's decoders run on bytes from strangers.
 */
#ifndef AGENT_IMAGE_LAYER_H
#define AGENT_IMAGE_LAYER_H

#include "agent/image/unpack_protocol.h"

/* To be called before the sandbox closes: names in archives are UTF-8, whatever the locale. */
void layer_prepare(void);

/* Reads `data_fd` to its end. Errors name the entry. */
MUST_CHECK enum err layer_unpack(int data_fd, int dir_fd, const struct image_limits *limits,
                                 struct unpack_layer_result *out, struct error *e);

#endif
