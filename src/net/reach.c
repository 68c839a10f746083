#include "net/reach.h"

#include <assert.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

static const char *const names[REACH_COUNT] = { "public", "private", "near" };

const char *reach_name(enum reach reach)
{
    assert(reach < REACH_COUNT);
    return names[reach];
}

bool reach_parse(struct str text, enum reach *out)
{
    for (size_t i = 0; i < REACH_COUNT; i++) {
        if (!str_is(text, names[i]))
            continue;
        *out = (enum reach)i;
        return true;
    }
    return false;
}

/* Everything as 16 bytes; IPv4 as its mapped form. */
static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static bool to_bytes(const struct sockaddr *address, uint8_t out[16])
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        memcpy(out, mapped, sizeof(mapped));
        memcpy(out + sizeof(mapped), &v4.sin_addr, 4);
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof(v6));
    memcpy(out, &v6.sin6_addr, 16);
    return true;
}

struct range {
    uint8_t prefix[16];
    unsigned bits;
    enum reach reach;
};

#define V4(a, b, c, d, length, how)                                                                \
    {                                                                                              \
        { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d }, 96 + (length), how               \
    }

/* The first that fits. */
static const struct range ranges[] = {
    V4(0, 0, 0, 0, 8, REACH_NEAR), /* 0.0.0.0 reaches this machine */
    V4(127, 0, 0, 0, 8, REACH_NEAR),
    V4(169, 254, 0, 0, 16, REACH_NEAR),
    V4(224, 0, 0, 0, 3, REACH_NEAR), /* many at once, and what is reserved */
    V4(10, 0, 0, 0, 8, REACH_PRIVATE),
    V4(100, 64, 0, 0, 10, REACH_PRIVATE),
    V4(172, 16, 0, 0, 12, REACH_PRIVATE),
    V4(192, 0, 0, 0, 24, REACH_PRIVATE),
    V4(192, 168, 0, 0, 16, REACH_PRIVATE),
    V4(198, 18, 0, 0, 15, REACH_PRIVATE),
    V4(0, 0, 0, 0, 0, REACH_PUBLIC),
    { { 0xfd, 0x00, 0x0e, 0xc2 }, 32, REACH_NEAR }, /* metadata of one cloud */
    { { 0xfc }, 7, REACH_PRIVATE },
    { { 0x20, 0x01, 0x00, 0x00 }, 32, REACH_NEAR }, /* Teredo: an IPv4 address of whom? */
    { { 0x20 }, 3, REACH_PUBLIC },                  /* 2000::/3, what is given out */
    { { 0 }, 0, REACH_NEAR },                       /* ::1, fe80::, ff00::, and all the rest */
};

static bool is_within(const uint8_t address[16], const uint8_t prefix[16], unsigned bits)
{
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;
    if (memcmp(address, prefix, whole) != 0)
        return false;
    return rest == 0 || (address[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

/* IPv6 addresses that carry one of IPv4 lead where that does. */
static void take_out(uint8_t address[16])
{
    static const uint8_t nat64[16] = { 0x00, 0x64, 0xff, 0x9b };
    static const uint8_t six_to_four[16] = { 0x20, 0x02 };
    static const uint8_t compatible[16] = { 0 };
    unsigned at = 0;
    if (is_within(address, nat64, 96) || is_within(address, compatible, 96))
        at = 12;
    else if (is_within(address, six_to_four, 16))
        at = 2;
    else
        return;
    uint8_t v4[4];
    memcpy(v4, address + at, sizeof(v4));
    memcpy(address, mapped, sizeof(mapped));
    memcpy(address + sizeof(mapped), v4, sizeof(v4));
}

enum reach reach_of(const struct sockaddr *address)
{
    uint8_t bytes[16];
    if (!to_bytes(address, bytes))
        return REACH_NEAR;
    take_out(bytes);
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        if (is_within(bytes, ranges[i].prefix, ranges[i].bits))
            return ranges[i].reach;
    }
    return REACH_NEAR;
}

bool reach_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    uint8_t left[16];
    uint8_t right[16];
    return to_bytes(a, left) && to_bytes(b, right) && memcmp(left, right, sizeof(left)) == 0;
}

/* Is it in the network of an interface's address? */
static bool is_neighbour(const uint8_t address[16], const struct ifaddrs *own)
{
    uint8_t ours[16];
    uint8_t mask[16];
    if (own->ifa_netmask == NULL || !to_bytes(own->ifa_addr, ours) ||
        !to_bytes(own->ifa_netmask, mask))
        return false;
    for (size_t i = own->ifa_addr->sa_family == AF_INET ? sizeof(mapped) : 0; i < 16; i++) {
        if (((address[i] ^ ours[i]) & mask[i]) != 0)
            return false;
    }
    return own->ifa_addr->sa_family == AF_INET6 || memcmp(address, mapped, sizeof(mapped)) == 0;
}

enum reach reach_of_with(const struct sockaddr *address, const struct ifaddrs *own)
{
    enum reach reach = reach_of(address);
    uint8_t bytes[16];
    if (!to_bytes(address, bytes))
        return REACH_NEAR;
    take_out(bytes);
    for (; own != NULL; own = own->ifa_next) {
        uint8_t ours[16];
        if (own->ifa_addr == NULL || !to_bytes(own->ifa_addr, ours))
            continue;
        if (memcmp(ours, bytes, sizeof(ours)) == 0)
            return REACH_NEAR;
        if (reach == REACH_PUBLIC && is_neighbour(bytes, own))
            reach = REACH_PRIVATE;
    }
    return reach;
}
