#include "controller/strangers.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "net/conn.h"

void strangers_init(struct strangers *strangers, const struct strangers_limits *limits)
{
    assert(limits->patience_s > 0 && limits->max > 0 && limits->max_per_address > 0);
    *strangers = (struct strangers){ .patience_s = limits->patience_s,
                                     .max = (size_t)limits->max,
                                     .max_per_address = (size_t)limits->max_per_address };
    strangers->ring.next = strangers->ring.prev = &strangers->ring;
}

static uint64_t first_half(const struct in6_addr *address)
{
    uint64_t half = 0;
    for (size_t i = 0; i < sizeof(half); i++)
        half = half << 8 | address->s6_addr[i];
    return half;
}

/* Of "1.2.3.4:5" or "[v6]:5" without the port. Whatever is no address, "unix" among it, is one. */
static struct id address_key(const char *text)
{
    char host[CONN_ADDRESS_MAX] = "";
    const char *colon = strrchr(text, ':');
    bool is_bracketed = text[0] == '[';
    struct in_addr v4;
    struct in6_addr v6;
    if (colon != NULL && (size_t)(colon - text) < sizeof(host))
        memcpy(host, text + (is_bracketed ? 1 : 0),
               (size_t)(colon - text) - (is_bracketed ? 2 : 0));
    if (inet_pton(AF_INET, host, &v4) == 1)
        return (struct id){ 1, ntohl(v4.s_addr) };
    if (inet_pton(AF_INET6, host, &v6) != 1)
        return (struct id){ 0 };
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        memcpy(&v4, &v6.s6_addr[12], sizeof(v4));
        return (struct id){ 1, ntohl(v4.s_addr) };
    }
    return (struct id){ 2, first_half(&v6) };
}

void strangers_remove(struct strangers *strangers, struct stranger *stranger)
{
    if (stranger->next == NULL)
        return;
    stranger->next->prev = stranger->prev;
    stranger->prev->next = stranger->next;
    stranger->next = stranger->prev = NULL;
    strangers->count--;
}

/* The oldest of the address if it has too many, else the oldest of all if these are too many. */
static struct stranger *find_surplus(struct strangers *strangers, struct id address)
{
    struct stranger *oldest = NULL;
    size_t count = 0;
    for (struct stranger *s = strangers->ring.next; s != &strangers->ring; s = s->next) {
        if (!id_eq(s->address, address))
            continue;
        oldest = oldest == NULL ? s : oldest;
        count++;
    }
    if (count > strangers->max_per_address)
        return oldest;
    return strangers->count > strangers->max ? strangers->ring.next : NULL;
}

struct stranger *strangers_add(struct strangers *strangers, struct stranger *stranger,
                               const char *address, struct mono now)
{
    assert(stranger->next == NULL);
    stranger->address = address_key(address);
    stranger->until = mono_add_s(now, strangers->patience_s);
    stranger->next = &strangers->ring;
    stranger->prev = strangers->ring.prev;
    stranger->prev->next = stranger;
    strangers->ring.prev = stranger;
    strangers->count++;
    struct stranger *surplus = find_surplus(strangers, stranger->address);
    if (surplus != NULL)
        strangers_remove(strangers, surplus);
    return surplus;
}

struct stranger *strangers_take_late(struct strangers *strangers, struct mono now)
{
    struct stranger *oldest = strangers->ring.next;
    if (oldest == &strangers->ring || mono_before(now, oldest->until))
        return NULL;
    strangers_remove(strangers, oldest);
    return oldest;
}

bool strangers_next(const struct strangers *strangers, struct mono *at)
{
    if (strangers->count == 0)
        return false;
    *at = strangers->ring.next->until;
    return true;
}
