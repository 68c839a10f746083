/*
 * hidden.h - numbers of the whole installation, as tenants see them.
 *
 * Versions of objects and cursors of long lists are journal sequences. Shown as they are, they
 * would count what every other tenant does. A keyed permutation shows a tenant numbers that are
 * equal when the sequences are, and say nothing else; the server turns them back. Below 2^52, so
 * that every JSON reader keeps them exact; 0 ("none") stays 0.
 */
#ifndef WIRE_HIDDEN_H
#define WIRE_HIDDEN_H

#include "base/base.h"

/* `key`: 16 bytes; NULL: an operator, who sees numbers as they are. */
uint64_t hidden_of(const uint8_t *key, uint64_t number);
uint64_t hidden_reveal(const uint8_t *key, uint64_t hidden);

#endif
