/*
 * letter.h - what hooks are told, and how it reads: JSON for programs, text for people.
 */
#ifndef CONTROLLER_LETTER_H
#define CONTROLLER_LETTER_H

#include "model/state.h"

struct letter {
    uint64_t sequence; /* of the journal: not told to anybody */
    uint64_t number;   /* in the tenant's feed */
    struct wall at;
    struct buf json; /* an object */
    struct buf text; /* a paragraph */
};

void letter_done(struct letter *letter);

/* Is it of interest to the owner of some work? */
bool letter_is_wanted(const struct event *event);
/* Of a wanted event. What has left memory by now is named by its id alone. */
void letter_write(const struct state *state, const struct event *event, struct letter *out);

struct letters {
    const struct letter *items;
    size_t count;
    uint64_t dropped; /* before these, for they could not be delivered */
    struct id hook;
    struct wall now;
};

/* The body of a request. */
void letters_post(const struct letters *letters, struct buf *out);
/* "Berth-Signature: t=...,v1=..." over the time and the body, by HMAC-SHA256. */
void letters_sign(const struct letters *letters, struct str secret, struct str body,
                  struct buf *out);
/* A message with its head, ready to be sent. */
void letters_mail(const struct letters *letters, const char *from, const char *to, struct buf *out);

#endif
