/* address.h - socket addresses from text and to text, without asking a name server. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <sys/socket.h>
#include <sys/un.h>

#include "net/conn.h"

/* A numeric IPv4 or IPv6 address. */
bool address_parse(const char *text, uint16_t port, struct sockaddr_storage *out, socklen_t *size);
bool address_unix(const char *path, struct sockaddr_un *out); /* false: too long */
void address_text(const struct sockaddr_storage *address, char out[CONN_ADDRESS_MAX]);
uint16_t address_port(const struct sockaddr_storage *address);

#endif
