#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/program.h"
#include "os/fd.h"
#include "os/process.h"
#include "unit/test.h"
#include "unit/test_dir.h"

struct fixture {
    struct test_dir dir;
    char path[512];
    struct sealed_program program;
};

static struct fixture fixture_new(void)
{
    struct fixture f = { .dir = test_dir_new(), .program = SEALED_PROGRAM_NONE };
    (void)snprintf(f.path, sizeof(f.path), "%s/runtime", f.dir.path);
    return f;
}

static void fixture_done(struct fixture *f)
{
    sealed_program_done(&f->program);
    test_dir_remove(&f->dir);
}
DEFINE_CLEANUP_AT(fixture, struct fixture, fixture_done)

/* Under a new inode, as a package manager does it. */
static void put_program(const struct fixture *f, const char *source)
{
    const char *const argv[] = { "cp", "--remove-destination", source, f->path, NULL };
    const struct process_run run = { .spec = { .argv = argv },
                                     .output_max = 1024,
                                     .timeout_ms = 20000 };
    AUTO(process_result) struct process_result result = { 0 };
    struct error e = { 0 };
    CHECK_OK(source, process_check(&run, &result, &e), &e);
}

static int exit_of(const struct fixture *f)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", f->program.fd);
    const char *const argv[] = { "runtime", NULL };
    const struct process_run run = { .spec = { .argv = argv, .program = path },
                                     .output_max = 1024,
                                     .timeout_ms = 20000 };
    AUTO(process_result) struct process_result result = { 0 };
    struct error e = { 0 };
    CHECK_OK("run", process_run(&run, &result, &e), &e);
    return result.exit.code;
}

static void a_copy_runs_and_cannot_be_written(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    put_program(&f, "/bin/false");
    sealed_program_refresh(&f.program, f.path);
    CHECK("copied", f.program.fd >= 0);
    CHECK("sealed", sealed_program_is(f.program.fd));
    CHECK("runs", exit_of(&f) == 1);
    CHECK("not written", write(f.program.fd, "x", 1) == -1);
    CHECK("not cut", ftruncate(f.program.fd, 0) == -1);
    CHECK("not unsealed", fcntl(f.program.fd, F_ADD_SEALS, 0) == -1);
}

static void another_file_is_another_copy(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    put_program(&f, "/bin/false");
    sealed_program_refresh(&f.program, f.path);
    int first = f.program.fd;
    sealed_program_refresh(&f.program, f.path);
    CHECK("the same file", f.program.fd == first);
    put_program(&f, "/bin/true");
    sealed_program_refresh(&f.program, f.path);
    CHECK("another one", exit_of(&f) == 0);
    CHECK("goes on while it is away", unlink(f.path) == 0);
    sealed_program_refresh(&f.program, f.path);
    CHECK("with the last one", exit_of(&f) == 0);
}

static void what_cannot_be_copied_runs_by_its_path(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    FILE *script = fopen(f.path, "we");
    CHECK("write", script != NULL && fputs("#!/bin/sh\nexit 0\n", script) >= 0);
    CHECK("close", fclose(script) == 0);
    sealed_program_refresh(&f.program, f.path);
    CHECK("a script", f.program.fd == -1);
    put_program(&f, "/bin/true");
    sealed_program_refresh(&f.program, f.path);
    CHECK("then a program", f.program.fd >= 0);
    sealed_program_done(&f.program);
    sealed_program_refresh(&f.program, f.dir.path);
    CHECK("a directory", f.program.fd == -1);
    sealed_program_refresh(&f.program, "/nonexistent/runtime");
    CHECK("nothing", f.program.fd == -1);
}

static void other_descriptors_are_told_apart(void **state)
{
    (void)state;
    AUTO(fd) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK("a device", !sealed_program_is(null_fd));
    CHECK("none", !sealed_program_is(-1));
    AUTO(fd) int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK("memory that is not sealed", loose >= 0 && !sealed_program_is(loose));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_runs_and_cannot_be_written),
        cmocka_unit_test(another_file_is_another_copy),
        cmocka_unit_test(what_cannot_be_copied_runs_by_its_path),
        cmocka_unit_test(other_descriptors_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
