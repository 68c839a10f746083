#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "net/reach.h"
#include "unit/test.h"

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage out = { 0 };
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        memcpy(&out, &v4, sizeof(v4));
    else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
        memcpy(&out, &v6, sizeof(v6));
    else
        test_fail("no address", text, __FILE__, __LINE__);
    return out;
}

static enum reach reach_of_text(const char *text)
{
    struct sockaddr_storage address = address_of(text);
    return reach_of((const struct sockaddr *)&address);
}

static const struct {
    const char *address;
    enum reach reach;
} forms[] = {
    { "8.8.8.8", REACH_PUBLIC },
    { "1.0.0.0", REACH_PUBLIC },
    { "223.255.255.255", REACH_PUBLIC },
    { "172.15.255.255", REACH_PUBLIC },
    { "172.32.0.0", REACH_PUBLIC },
    { "100.63.255.255", REACH_PUBLIC },
    { "100.128.0.0", REACH_PUBLIC },
    { "169.253.0.1", REACH_PUBLIC },
    { "2001:4860:4860::8888", REACH_PUBLIC },
    { "2a01::1", REACH_PUBLIC },
    { "::ffff:8.8.8.8", REACH_PUBLIC },
    { "64:ff9b::808:808", REACH_PUBLIC },
    { "2002:808:808::1", REACH_PUBLIC },
    { "10.0.0.1", REACH_PRIVATE },
    { "172.16.0.1", REACH_PRIVATE },
    { "172.31.255.255", REACH_PRIVATE },
    { "192.168.1.1", REACH_PRIVATE },
    { "100.64.0.1", REACH_PRIVATE },
    { "198.19.0.1", REACH_PRIVATE },
    { "fc00::1", REACH_PRIVATE },
    { "fd12:3456::1", REACH_PRIVATE },
    { "::ffff:10.0.0.1", REACH_PRIVATE },
    { "64:ff9b::a00:1", REACH_PRIVATE },
    { "2002:a00:1::1", REACH_PRIVATE },
    { "127.0.0.1", REACH_NEAR },
    { "127.255.255.255", REACH_NEAR },
    { "0.0.0.0", REACH_NEAR },
    { "0.1.2.3", REACH_NEAR },
    { "169.254.169.254", REACH_NEAR },
    { "224.0.0.1", REACH_NEAR },
    { "255.255.255.255", REACH_NEAR },
    { "240.0.0.1", REACH_NEAR },
    { "::", REACH_NEAR },
    { "::1", REACH_NEAR },
    { "::127.0.0.1", REACH_NEAR },
    { "::ffff:127.0.0.1", REACH_NEAR },
    { "::ffff:169.254.169.254", REACH_NEAR },
    { "64:ff9b::7f00:1", REACH_NEAR },
    { "64:ff9b::a9fe:a9fe", REACH_NEAR },
    { "2002:7f00:1::1", REACH_NEAR },
    { "2002:a9fe:a9fe::", REACH_NEAR },
    { "2001:0:7f00:1::", REACH_NEAR },
    { "fe80::1", REACH_NEAR },
    { "febf::1", REACH_NEAR },
    { "fec0::1", REACH_NEAR },
    { "ff02::1", REACH_NEAR },
    { "fd00:ec2::254", REACH_NEAR },
    { "100::1", REACH_NEAR },
    { "5f00::1", REACH_NEAR },
};

static void test_knows_every_form(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, forms)
        CHECK(c->address, reach_of_text(c->address) == c->reach);
    const struct sockaddr local = { .sa_family = AF_UNIX };
    CHECK("no internet address", reach_of(&local) == REACH_NEAR);
}

static const struct {
    const char *address;
    enum reach reach;
} around[] = {
    { "203.0.114.7", REACH_NEAR },     { "::ffff:203.0.114.7", REACH_NEAR },
    { "203.0.114.8", REACH_PRIVATE },  { "203.0.115.8", REACH_PUBLIC },
    { "2a02:1::7", REACH_NEAR },       { "2a02:1::8", REACH_PRIVATE },
    { "2a02:1:0:1::8", REACH_PUBLIC }, { "127.0.0.1", REACH_NEAR },
    { "10.0.0.1", REACH_PRIVATE },
};

static void test_knows_our_own_networks(void **state)
{
    (void)state;
    struct sockaddr_storage parts[] = { address_of("203.0.114.7"), address_of("255.255.255.0"),
                                        address_of("2a02:1::7"),
                                        address_of("ffff:ffff:ffff:ffff::") };
    struct ifaddrs second = { .ifa_addr = (struct sockaddr *)&parts[2],
                              .ifa_netmask = (struct sockaddr *)&parts[3] };
    struct ifaddrs none = { .ifa_next = &second };
    struct ifaddrs first = { .ifa_addr = (struct sockaddr *)&parts[0],
                             .ifa_netmask = (struct sockaddr *)&parts[1],
                             .ifa_next = &none };
    FOR_EACH_CASE (c, around) {
        struct sockaddr_storage address = address_of(c->address);
        CHECK(c->address, reach_of_with((const struct sockaddr *)&address, &first) == c->reach);
    }
}

static void test_names_go_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < REACH_COUNT; i++) {
        enum reach found = REACH_COUNT;
        CHECK("name", reach_parse(str_of(reach_name((enum reach)i)), &found) && (int)found == i);
    }
    enum reach found = REACH_COUNT;
    CHECK("another", !reach_parse(STR("everywhere"), &found) && found == REACH_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_knows_every_form),
        cmocka_unit_test(test_knows_our_own_networks),
        cmocka_unit_test(test_names_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
