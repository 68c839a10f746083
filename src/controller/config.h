/*
 * config.h - berthd's configuration: one table of keys, from which docs and messages come too.
 * Read from YAML; a missing file means the defaults. Unknown keys are errors with their line.
 */
#ifndef CONTROLLER_CONFIG_H
#define CONTROLLER_CONFIG_H

#include "base/str.h"
#include "model/record.h"
#include "wire/schema.h"

struct config {
    struct str state_dir;   /* everything that must survive */
    struct str socket;      /* unix socket; root is admin there */
    struct str listen;      /* numeric address of the TLS port; "" for none */
    int64_t port;           /* 0: any free one, written to STATE/port */
    struct str_list names;  /* DNS names and addresses in the server certificate */
    struct str certificate; /* bring your own: paths of PEM files; "" uses our CA's */
    struct str certificate_key;
    struct str_list registries;            /* the only ones, if there are any; they may be near */
    struct str_list plain_http_registries; /* host:port, on the loopback */
    struct str_list notice_hosts;
    struct str notice_authority;
    struct str smtp_relay, smtp_tls, smtp_from, smtp_user, smtp_password_file;
    struct str log_level;          /* debug, info, warning, error */
    int64_t hello_s;               /* within which a link says who it is */
    int64_t strangers;             /* links that have not, at once */
    int64_t strangers_per_address; /* of them, of one address */
    int64_t requests_per_s;        /* of one token, sustained; bursts up to ten times that */
    int64_t log_quota_mib;         /* of workload output kept per project */
    int64_t log_days;
    int64_t blob_quota_mib;  /* of uploads and images kept */
    int64_t workload_days;   /* ended workloads in the store */
    int64_t usage_days;      /* 0: for ever */
    int64_t journal_days;    /* 0: for ever */
    int64_t audit_days;      /* 0: for ever */
    int64_t snapshot_events; /* a snapshot every so many events */
};

extern const struct schema config_schema;

/* Strings live in the arena. ERR_INVALID with file, line or field. */
enum err config_load(const char *path, struct arena *arena, struct config *out, struct error *e)
    MUST_CHECK;
void config_defaults(struct config *out);
/* What belongs together; after everything has been set. */
enum err config_check(const struct config *config, struct error *e) MUST_CHECK;

#endif
