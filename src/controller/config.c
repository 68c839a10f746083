#include "controller/config.h"

#include "controller/registry.h"
#include "os/file.h"
#include "wire/yaml.h"

enum { CONFIG_BYTES_MAX = 256 * 1024 };

#define TEXT(member, text)                                                                         \
    {                                                                                              \
        .name = #member, .kind = FIELD_STR, .offset = offsetof(struct config, member),             \
        .size = sizeof(struct str), .max = 4096, .doc = (text)                                     \
    }
#define NUMBER(member, low, high, text)                                                            \
    {                                                                                              \
        .name = #member, .kind = FIELD_I64, .offset = offsetof(struct config, member),             \
        .size = sizeof(int64_t), .min = (low), .max = (high), .doc = (text)                        \
    }

static const struct field fields[] = {
    TEXT(state_dir, "directory of everything that must survive; default /var/lib/berth"),
    TEXT(socket, "unix socket where root is admin; default /run/berth/berthd.sock"),
    TEXT(listen, "numeric address of the TLS port, empty for none; default 0.0.0.0"),
    NUMBER(port, 0, 65535, "TLS port for API, console and agents; default 7878"),
    { .name = "names",
      .kind = FIELD_STR_LIST,
      .offset = offsetof(struct config, names),
      .size = sizeof(struct str_list),
      .max = 32,
      .item_max = 253,
      .doc = "DNS names and addresses under which clients and agents reach this controller" },
    TEXT(certificate, "PEM chain to serve instead of one from the own CA"),
    TEXT(certificate_key, "PEM key of `certificate`"),
    { .name = "registries",
      .kind = FIELD_STR_LIST,
      .offset = offsetof(struct config, registries),
      .size = sizeof(struct str_list),
      .max = 256,
      .item_max = 253,
      .doc = "registries that images may come from, as host or host:port; default: any that is "
             "not on a network of ours" },
    { .name = "plain_http_registries",
      .kind = FIELD_STR_LIST,
      .offset = offsetof(struct config, plain_http_registries),
      .size = sizeof(struct str_list),
      .max = 16,
      .item_max = 253,
      .doc = "registries on the loopback, as host:port, that are asked without TLS" },
    { .name = "notice_hosts",
      .kind = FIELD_STR_LIST,
      .offset = offsetof(struct config, notice_hosts),
      .size = sizeof(struct str_list),
      .max = 256,
      .item_max = 253,
      .doc = "hosts of hooks, as host or host:port the way their URLs name them, that may be on "
             "networks of ours and need no TLS; default: none" },
    TEXT(notice_authority, "PEM file of the authorities that hooks and the mail relay are "
                           "certified by; default: the system's"),
    TEXT(smtp_relay, "host:port that takes mail to owners of work; default: none, no mail"),
    TEXT(smtp_tls, "`starttls` (default), `tls` from the first byte, or `none`"),
    TEXT(smtp_from, "address that mail comes from"),
    TEXT(smtp_user, "login at the relay; its password is the content of `smtp_password_file`"),
    TEXT(smtp_password_file, "file with that password and nothing else"),
    TEXT(log_level, "debug, info, warning or error; default info"),
    NUMBER(hello_s, 1, 600, "seconds a link has for saying who it is; default 10"),
    NUMBER(strangers, 1, 65536, "links at once that have not said who they are; default 8192"),
    NUMBER(strangers_per_address, 1, 65536, "of them, those of one address; default 1024"),
    NUMBER(requests_per_s, 1, 1000000, "requests a second one token may make; default 200"),
    NUMBER(log_quota_mib, 1, LOG_QUOTA_MIB_MAX,
           "output of workloads kept per project that sets none itself; default 1024"),
    NUMBER(log_days, 1, LOG_DAYS_MAX,
           "days the output of ended workloads is kept where no project says else; default 30"),
    NUMBER(blob_quota_mib, 1, 1 << 30, "uploads and images kept; default 65536"),
    NUMBER(workload_days, 1, 36500, "days ended workloads stay in the store; default 365"),
    NUMBER(usage_days, 0, 36500, "days usage segments stay; default 0: for ever"),
    NUMBER(
        journal_days, 0, 36500,
        "days the archived journal stays, without which projections cannot be made again; default "
        "0: for ever"),
    NUMBER(audit_days, 0, 36500, "days audit rows stay; default 0: for ever"),
    NUMBER(
        snapshot_events, 100, 10000000,
        "a snapshot every so many events, and one more for each workload at hand; default 20000"),
};

const struct schema config_schema = {
    .name = "Config",
    .doc = "berthd.yaml",
    .size = sizeof(struct config),
    .fields = fields,
    .count = COUNT_OF(fields),
};

void config_defaults(struct config *out)
{
    *out = (struct config){
        .state_dir = STR("/var/lib/berth"),
        .socket = STR("/run/berth/berthd.sock"),
        .listen = STR("0.0.0.0"),
        .port = 7878,
        .smtp_tls = STR("starttls"),
        .log_level = STR("info"),
        .hello_s = 10,
        .strangers = 8192,
        .strangers_per_address = 1024,
        .requests_per_s = 200,
        .log_quota_mib = 1024,
        .log_days = 30,
        .blob_quota_mib = 65536,
        .workload_days = 365,
        .snapshot_events = 20000,
    };
}

static enum err check_mail(const struct config *config, struct error *e)
{
    bool is_clear = str_is(config->smtp_tls, "none");
    if (!is_clear && !str_is(config->smtp_tls, "starttls") && !str_is(config->smtp_tls, "tls"))
        return err_field(e, "smtp_tls", "smtp_tls is starttls, tls or none");
    if (config->smtp_relay.size > 0 && config->smtp_from.size == 0)
        return err_field(e, "smtp_from", "smtp_relay needs smtp_from, the address mail comes from");
    if (config->smtp_user.size > 0 && (is_clear || config->smtp_password_file.size == 0))
        return err_field(e, "smtp_user", "smtp_user needs smtp_password_file, and TLS");
    return ERR_OK;
}

enum err config_check(const struct config *config, struct error *e)
{
    if (config->state_dir.size == 0 || config->state_dir.data[0] != '/')
        return err_field(e, "state_dir", "state_dir must be an absolute path");
    if (config->socket.size > 100)
        return err_field(e, "socket", "socket is %zu bytes long; a unix socket's path may have 100",
                         config->socket.size);
    if ((config->certificate.size == 0) != (config->certificate_key.size == 0))
        return err_field(e, "certificate_key", "certificate and certificate_key go together");
    enum err rc = check_mail(config, e);
    return rc == ERR_OK ? registry_check_plain(&config->plain_http_registries, e) : rc;
}

enum err config_load(const char *path, struct arena *arena, struct config *out, struct error *e)
{
    struct config config;
    config_defaults(&config);

    AUTO(buf) struct buf text = { 0 };
    enum err rc = file_read(path, CONFIG_BYTES_MAX, &text, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "configuration");
    AUTO(json) json_t *documents = NULL;
    rc = yaml_read(buf_str(&text), &documents, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", path);
    if (json_array_size(documents) > 1)
        return err_set(e, ERR_INVALID, "%s: one document is wanted, not %zu", path,
                       json_array_size(documents));
    if (json_array_size(documents) == 1) {
        rc = schema_decode(&config_schema, json_array_get(documents, 0), UNKNOWN_REFUSED, arena,
                           &config, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "%s", path);
    }
    *out = config;
    return ERR_OK;
}
