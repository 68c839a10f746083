#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

bool address_parse(const char *text, uint16_t port, struct sockaddr_storage *out, socklen_t *size)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memcpy(out, &v4, sizeof(v4));
        *size = sizeof(v4);
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
        memcpy(out, &v6, sizeof(v6));
        *size = sizeof(v6);
        return true;
    }
    return false;
}

bool address_unix(const char *path, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(out->sun_path))
        return false;
    (void)snprintf(out->sun_path, sizeof(out->sun_path), "%s", path);
    return true;
}

uint16_t address_port(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        return ntohs(v4.sin_port);
    }
    if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof(v6));
        return ntohs(v6.sin6_port);
    }
    return 0;
}

/* An IPv4 peer of a socket that serves both is shown as IPv4. */
static void text_v6(const struct sockaddr_in6 *v6, char out[CONN_ADDRESS_MAX])
{
    char text[INET6_ADDRSTRLEN] = "";
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        (void)inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof(text));
        (void)snprintf(out, CONN_ADDRESS_MAX, "%s:%u", text, (unsigned)ntohs(v6->sin6_port));
        return;
    }
    (void)inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    (void)snprintf(out, CONN_ADDRESS_MAX, "[%s]:%u", text, (unsigned)ntohs(v6->sin6_port));
}

void address_text(const struct sockaddr_storage *address, char out[CONN_ADDRESS_MAX])
{
    out[0] = '\0';
    if (address->ss_family == AF_INET) {
        struct sockaddr_in v4;
        char text[INET_ADDRSTRLEN] = "";
        memcpy(&v4, address, sizeof(v4));
        (void)inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
        (void)snprintf(out, CONN_ADDRESS_MAX, "%s:%u", text, (unsigned)ntohs(v4.sin_port));
    } else if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof(v6));
        text_v6(&v6, out);
    }
}
