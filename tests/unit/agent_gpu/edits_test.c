/* Records of edits: what is written is read again, and nothing else is. */
#include <string.h>

#include "agent/gpu/edits.h"
#include "unit/test.h"

static void fill(struct container_edits *edits)
{
    static const char *const options[] = { "ro", "nosuid" };
    static const char *const args[] = { "ctk", "hook" };
    static const char *const env[] = { "A=1" };
    vec_push(&edits->env, "V=1");
    vec_push(&edits->env, "W=x=y");
    struct edit_mount mount = { "/host/lib", "/lib/x", options, 2 };
    vec_push(&edits->mounts, mount);
    struct edit_device device = { .path = "/dev/a",
                                  .host_path = "/dev/b",
                                  .type = 'c',
                                  .major = 195,
                                  .minor = 3,
                                  .permissions = "rw" };
    vec_push(&edits->devices, device);
    struct edit_hook hook = { EDIT_HOOK_CREATE_CONTAINER, "/usr/bin/ctk", args, 2, env, 1, 5 };
    vec_push(&edits->hooks, hook);
}

static void write_sample(struct buf *out)
{
    AUTO(container_edits) struct container_edits edits = { 0 };
    fill(&edits);
    edit_records_problem(out, "a file is broken");
    edit_records_device(out, 2, &edits);
    edit_records_end(out);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct error e;
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    AUTO(edit_set) struct edit_set set = { 0 };
    write_sample(&bytes);
    CHECK_OK("read", edit_records_read(buf_str(&bytes), 4, &arena, &set, &e), &e);
    CHECK("others have none", set.devices[0].env.count == 0 && set.devices[3].hooks.count == 0);
    CHECK("problem",
          set.problems.count == 1 && strcmp(set.problems.items[0], "a file is broken") == 0);
    const struct container_edits *edits = &set.devices[2];
    CHECK("env", edits->env.count == 2 && strcmp(edits->env.items[1], "W=x=y") == 0);
    CHECK("mount", edits->mounts.count == 1 && edits->mounts.items[0].option_count == 2 &&
                       strcmp(edits->mounts.items[0].options[1], "nosuid") == 0);
    CHECK("device", edits->devices.count == 1 && edits->devices.items[0].minor == 3 &&
                        edits->devices.items[0].type == 'c' &&
                        strcmp(edits->devices.items[0].host_path, "/dev/b") == 0);
    const struct edit_hook *hook = &edits->hooks.items[0];
    CHECK("hook", edits->hooks.count == 1 && hook->stage == EDIT_HOOK_CREATE_CONTAINER &&
                      hook->timeout_s == 5 && hook->arg_count == 2 && hook->env_count == 1 &&
                      strcmp(hook->env[0], "A=1") == 0);
}

static enum err read_bytes(struct str bytes, size_t count)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(edit_set) struct edit_set set = { 0 };
    struct error e;
    return edit_records_read(bytes, count, &arena, &set, &e);
}

static void a_cut_is_noticed_wherever_it_is(void **state)
{
    (void)state;
    AUTO(buf) struct buf bytes = { 0 };
    write_sample(&bytes);
    for (size_t size = 0; size < bytes.size; size++)
        CHECK("cut", read_bytes((struct str){ bytes.data, size }, 4) == ERR_INVALID);
    CHECK("a device that is not there", read_bytes(buf_str(&bytes), 2) == ERR_INVALID);
    buf_add_char(&bytes, 'x');
    CHECK("more behind the end", read_bytes(buf_str(&bytes), 4) == ERR_INVALID);
}

static void no_change_leads_astray(void **state)
{
    (void)state;
    AUTO(buf) struct buf bytes = { 0 };
    write_sample(&bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        char before = bytes.data[i];
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] = (char)(before ^ (1 << bit));
            (void)read_bytes(buf_str(&bytes), 4); /* the sanitizers watch */
        }
        bytes.data[i] = before;
    }
    CHECK("as it was", read_bytes(buf_str(&bytes), 4) == ERR_OK);
}

static bool reads(const struct container_edits *edits)
{
    AUTO(buf) struct buf bytes = { 0 };
    edit_records_device(&bytes, 0, edits);
    edit_records_end(&bytes);
    return read_bytes(buf_str(&bytes), 1) == ERR_OK;
}

static void wrong_edits_are_refused(void **state)
{
    (void)state;
    AUTO(container_edits) struct container_edits edits = { 0 };
    fill(&edits);
    CHECK("fine", reads(&edits));
    static const char *const paths[] = { "relative", "/a/../b", "" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        edits.mounts.items[0].host_path = paths[i];
        CHECK(paths[i], !reads(&edits));
        edits.mounts.items[0].host_path = "/host/lib";
        edits.devices.items[0].path = paths[i];
        CHECK(paths[i], !reads(&edits));
        edits.devices.items[0].path = "/dev/a";
        edits.hooks.items[0].path = paths[i];
        CHECK(paths[i], !reads(&edits));
        edits.hooks.items[0].path = "/usr/bin/ctk";
    }
    edits.devices.items[0].type = 'p';
    CHECK("a pipe", !reads(&edits));
    edits.devices.items[0].type = 'b';
    edits.devices.items[0].permissions = "rwx";
    CHECK("other permissions", !reads(&edits));
    edits.devices.items[0].permissions = "r";
    edits.env.items[0] = "=x";
    CHECK("a variable without a name", !reads(&edits));
    edits.env.items[0] = "X=";
    CHECK("fine again", reads(&edits));
}

static void what_two_devices_share_is_there_once(void **state)
{
    (void)state;
    AUTO(container_edits) struct container_edits one = { 0 };
    AUTO(container_edits) struct container_edits two = { 0 };
    AUTO(container_edits) struct container_edits all = { 0 };
    fill(&one);
    fill(&two);
    two.devices.items[0].path = "/dev/other";
    vec_push(&two.env, "V=2");
    container_edits_merge(&all, &one);
    container_edits_merge(&all, &two);
    CHECK("mounts and hooks", all.mounts.count == 1 && all.hooks.count == 1);
    CHECK("devices", all.devices.count == 2);
    CHECK("env", all.env.count == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_cut_is_noticed_wherever_it_is),
        cmocka_unit_test(no_change_leads_astray),
        cmocka_unit_test(wrong_edits_are_refused),
        cmocka_unit_test(what_two_devices_share_is_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
