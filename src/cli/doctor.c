/* doctor.c - is this installation in order? One line a check; exit 1 when one failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/safe.h"
#include "cli/special.h"
#include "os/file.h"

enum { SKEW_MS_MAX = 2000 }; /* what a time service keeps to, with room for the way */

struct report {
    bool is_bad;
};

static void line(struct report *report, bool is_good, const char *what, const char *detail)
{
    AUTO(buf) struct buf text = { 0 };
    safe_line(str_of(detail), &text);
    (void)printf("%s  %s%s%.*s\n", is_good ? "ok  " : "FAIL", what, text.size > 0 ? ": " : "",
                 STR_ARG(buf_str(&text)));
    report->is_bad = report->is_bad || !is_good;
}

static void note(const char *what, const char *detail)
{
    AUTO(buf) struct buf text = { 0 };
    safe_line(str_of(detail), &text);
    (void)printf("note  %s: %.*s\n", what, STR_ARG(buf_str(&text)));
}

/* ---- the controller -------------------------------------------------------------------------- */

static bool check_reach(struct cli *cli, struct report *report)
{
    struct error e = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_request(cli, "GET", "/v1/whoami", NULL, &answer, &e);
    if (rc != ERR_OK) {
        line(report, false, "the controller answers", e.text);
        return false;
    }
    const char *role = json_string_value(json_object_get(answer.json, "role"));
    const char *user = json_string_value(json_object_get(answer.json, "user"));
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "%s, as %s (%s)", cli->server, user != NULL ? user : "?",
               role != NULL ? role : "?");
    line(report, true, "the controller answers", text.data);
    return true;
}

static void check_ready(struct cli *cli, struct report *report)
{
    struct error e = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = cli_request(cli, "GET", "/readyz", NULL, &answer, &e);
    line(report, rc == ERR_OK, "it takes changes", rc == ERR_OK ? "" : e.text);
}

static bool is_operator(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    if (cli_request(cli, "GET", "/v1/whoami", NULL, &answer, &e) != ERR_OK)
        return false;
    const char *role = json_string_value(json_object_get(answer.json, "role"));
    return role != NULL && strcmp(role, "admin") == 0;
}

static void check_status(struct cli *cli, struct report *report)
{
    struct error e = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    if (cli_request(cli, "GET", "/v1/status", NULL, &answer, &e) != ERR_OK) {
        line(report, false, "its status", e.text);
        return;
    }
    json_int_t nodes = json_integer_value(json_object_get(answer.json, "nodes"));
    json_int_t usable = json_integer_value(json_object_get(answer.json, "nodes_usable"));
    const char *version = json_string_value(json_object_get(answer.json, "version"));
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "%lld of %lld", (long long)usable, (long long)nodes);
    if (nodes == 0 && !is_operator(cli))
        line(report, true, "nodes that can take work", "only operators see them");
    else
        line(report, usable > 0, "nodes that can take work",
             nodes == 0 ? "none has joined: berth node join-token" : text.data);
    bool is_same = version != NULL && strcmp(version, BERTH_VERSION) == 0;
    line(report, is_same, "versions of berth and berthd", version != NULL ? version : "?");
}

static void note_skew(const char *node, json_int_t skew_ms)
{
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "its clock is %lld ms %s the controller's: look at its time service",
               llabs((long long)skew_ms), skew_ms > 0 ? "ahead of" : "behind");
    note(node, text.data);
}

/* What is kept out of use, or is broken, on a node that takes work otherwise. */
static void note_devices(const char *node, const json_t *devices)
{
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *health = json_string_value(json_object_get(device, "health"));
        bool is_held = json_is_true(json_object_get(device, "is_held"));
        const char *why = is_held ? "hold_reason" : "health_reason";
        const char *reason = json_string_value(json_object_get(device, why));
        bool is_broken = health != NULL && strcmp(health, "ok") != 0;
        json_int_t index = json_integer_value(json_object_get(device, "index"));
        AUTO(buf) struct buf text = { 0 };
        if (!is_held && !is_broken)
            continue;
        buf_format(&text, "device %lld is %s", (long long)index, is_held ? "held" : health);
        if (reason != NULL && reason[0] != '\0')
            buf_format(&text, ": %s", reason);
        note(node, text.data);
    }
}

static void check_nodes(struct cli *cli, struct report *report)
{
    struct error e = { 0 };
    AUTO(json) json_t *nodes = NULL;
    if (cli_list(cli, "/v1/nodes?limit=1000", &nodes, &e) != ERR_OK)
        return; /* not this person's to see */
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        const char *name = json_string_value(json_object_get(node, "name"));
        const char *contact = json_string_value(json_object_get(node, "contact"));
        bool is_held = json_array_size(json_object_get(node, "holds")) > 0;
        if (name != NULL && contact != NULL && strcmp(contact, "ok") != 0)
            note(name, contact);
        json_int_t skew_ms = json_integer_value(json_object_get(node, "clock_skew_ms"));
        if (name != NULL && (skew_ms > SKEW_MS_MAX || skew_ms < -SKEW_MS_MAX))
            note_skew(name, skew_ms);
        const char *problems = json_string_value(json_object_get(node, "problems"));
        if (name != NULL && problems != NULL && problems[0] != '\0')
            line(report, false, name, problems);
        if (name != NULL && is_held)
            note(name, "held: berth node show says by whom");
        if (name != NULL)
            note_devices(name, json_object_get(node, "devices"));
    }
}

/* ---- this machine ---------------------------------------------------------------------------- */

static bool in_path(struct cli *cli, const char *program)
{
    const char *path = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): one thread */
    struct str rest = str_of(path);
    while (rest.size > 0) {
        struct str dir = str_cut(&rest, ':');
        if (access(arena_format(&cli->arena, "%.*s/%s", STR_ARG(dir), program), X_OK) == 0)
            return true;
    }
    return false;
}

static void check_machine(struct cli *cli)
{
    struct stat info;
    AUTO(buf) struct buf limit = { 0 };
    int64_t namespaces = 0;
    if (!in_path(cli, "berth-agentd") && stat("/var/lib/berth/agent", &info) != 0)
        return; /* no node: nothing to say */
    if (!in_path(cli, "crun"))
        note("this node", "crun is not installed: apt-get install crun");
    if (!in_path(cli, "skopeo"))
        note("this node", "skopeo is not installed: images of registries cannot be fetched");
    if (file_read("/proc/sys/user/max_user_namespaces", 64, &limit, NULL) == ERR_OK) {
        struct str text = buf_str(&limit);
        struct str number = str_cut(&text, '\n');
        if (!str_to_i64(number, 1, INT64_MAX, &namespaces))
            note("this node",
                 "user namespaces are off (user.max_user_namespaces): nothing can run");
    }
}

enum cli_exit run_doctor(struct cli *cli)
{
    struct report report = { 0 };
    if (check_reach(cli, &report)) {
        check_ready(cli, &report);
        check_status(cli, &report);
        check_nodes(cli, &report);
    }
    check_machine(cli);
    return report.is_bad ? CLI_FAILED : CLI_OK;
}
