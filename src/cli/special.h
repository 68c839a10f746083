/* special.h - commands that are more than one request; one file each, named after them. */
#ifndef CLI_SPECIAL_H
#define CLI_SPECIAL_H

#include "cli/cli.h"
#include "model/kinds.h"

enum cli_exit run_submit(struct cli *cli);
enum cli_exit run_logs(struct cli *cli);
enum cli_exit run_wait(struct cli *cli);
enum cli_exit run_exec(struct cli *cli);
enum cli_exit run_cp(struct cli *cli);
enum cli_exit run_volume_put(struct cli *cli);
enum cli_exit run_volume_get(struct cli *cli);
enum cli_exit run_node_drain(struct cli *cli);
enum cli_exit run_usage_report(struct cli *cli);
enum cli_exit run_invoice(struct cli *cli);
enum cli_exit run_apply(struct cli *cli);
enum cli_exit run_import(struct cli *cli);
enum cli_exit run_events(struct cli *cli);
enum cli_exit run_doctor(struct cli *cli);
enum cli_exit run_completion(struct cli *cli);
enum cli_exit run_remove(struct cli *cli);
enum cli_exit run_token_create(struct cli *cli);
enum cli_exit run_device_hold(struct cli *cli);
enum cli_exit run_image_import(struct cli *cli);
enum cli_exit run_credential_set(struct cli *cli);
enum cli_exit run_hook_set(struct cli *cli);

/* submit.c: the request of options, a file and the words behind them. */
enum err submit_body(struct cli *cli, json_t **out, struct error *e) MUST_CHECK;
/* whatif.c: what would follow of the work, the change or the loss that is named */
enum cli_exit run_whatif_submit(struct cli *cli);
enum cli_exit run_whatif_change(struct cli *cli);
enum cli_exit run_whatif_lose(struct cli *cli);
enum cli_exit run_export(struct cli *cli);

/* policy.c: a table with their quotas of what one may see, or of the projects that are named */
enum cli_exit run_top(struct cli *cli);
enum cli_exit run_quota_show(struct cli *cli);
/* policy.c: changes quotas, priorities, settings; with --dry-run it says what that would do */
enum cli_exit run_change(struct cli *cli);
enum cli_exit run_policy_show(struct cli *cli);

/* dry_run.c: what a command with `look` would do. */
enum cli_exit run_dry(struct cli *cli);

/* apply.c: a file of at most 4 MiB, or standard input with "-". */
enum err manifest_read(const char *path, struct buf *out, struct error *e) MUST_CHECK;
/* apply.c: makes things as the manifests in a text say, or shows what that would change; `name` is
 * what the text is called in complaints. */
enum cli_exit apply_text(struct cli *cli, const char *name, struct str text, bool is_dry);

/* wait.c: the state of that name; WL_NONE of one that this version does not know. */
enum workload_state cli_state(const char *name);
/* wait.c: does a workload's state say that it has ended? */
bool cli_state_is_final(const char *name);
/* wait.c: waits for all ids, and says why they wait; *failed counts those that did not succeed.
 * `deadline_s` 0: for ever. */
enum err wait_for_ends(struct cli *cli, const struct str *ids, size_t count, int64_t deadline_s,
                       size_t *failed, struct error *e) MUST_CHECK;
/* The same until it runs or has ended; of an array, all of it. */
enum err wait_for_begin(struct cli *cli, struct str id, struct error *e) MUST_CHECK;
/* For what needs a running workload: waits for one that starts, half a minute at most.
 * ERR_CONFLICT: it does not run, and what to do about that. */
enum err wait_for_running(struct cli *cli, struct str id, struct error *e) MUST_CHECK;
/* logs.c: copies the output to stdout until the workload ends, one attempt after the other; from
 * the latest on, unless all are wanted. */
enum err logs_follow(struct cli *cli, struct str id, bool is_from_first, struct error *e)
    MUST_CHECK;
/* upload.c: packs a directory, stores it unless it is stored already; digest in hexadecimal.
 * `project` is what it is for: its tenant gets the bytes. */
enum err upload_dir(struct cli *cli, const char *dir, struct str project, struct str *digest,
                    struct error *e) MUST_CHECK;

#endif
