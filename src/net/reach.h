/*
 * reach.h - how near an address is. What strangers name, a registry for instance, may be anywhere
 * in the world; a machine that is nearer needs the word of an operator.
 */
#ifndef NET_REACH_H
#define NET_REACH_H

#include <sys/socket.h>

#include "base/base.h"
#include "base/str.h"

enum reach {
    REACH_PUBLIC,  /* the world */
    REACH_PRIVATE, /* networks of a site: 10/8, fc00::/7, ... and those of our own interfaces */
    REACH_NEAR,    /* this machine, its links, and what listens there: metadata of clouds */
    REACH_COUNT
};

/* Of an IPv4 or IPv6 address, whatever form it has: mapped, NAT64, 6to4. Others are REACH_NEAR. */
enum reach reach_of(const struct sockaddr *address); /* for tests */

/* The same with the addresses and networks of this machine, as getifaddrs() gives them. */
struct ifaddrs;
enum reach reach_of_with(const struct sockaddr *address, const struct ifaddrs *own);

bool reach_same_address(const struct sockaddr *a, const struct sockaddr *b); /* ports aside */

const char *reach_name(enum reach reach); /* "public", "private", "near" */
bool reach_parse(struct str text, enum reach *out);

#endif
