#include "agent/runtime/program.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "os/fd.h"

/* As crun looks for them: with fewer it would copy itself again. */
enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
enum { PROGRAM_MAX = 256 * 1024 * 1024 };

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

static int make_memory(void)
{
    int fd = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    return fd >= 0 ? fd : memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static bool is_elf(int fd)
{
    char magic[SELFMAG];
    return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
           memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* -1: not copied. */
static int copy_sealed(int source, off_t size)
{
    AUTO(fd) int fd = make_memory();
    off_t at = 0;
    while (fd >= 0 && at < size) {
        if (sendfile(fd, source, &at, (size_t)(size - at)) <= 0)
            return -1;
    }
    if (fd < 0 || fchmod(fd, 0500) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0)
        return -1;
    return fd_take(&fd);
}

void sealed_program_refresh(struct sealed_program *program, const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0 || (program->file.st_ino != 0 && is_same(&file, &program->file)))
        return;
    sealed_program_done(program);
    AUTO(fd) int source = open(path, O_RDONLY | O_CLOEXEC);
    if (source < 0 || fstat(source, &file) != 0 || !S_ISREG(file.st_mode))
        return;
    program->file = file;
    if (file.st_size <= PROGRAM_MAX && is_elf(source))
        program->fd = copy_sealed(source, file.st_size);
}

void sealed_program_done(struct sealed_program *program)
{
    fd_close(program->fd);
    *program = SEALED_PROGRAM_NONE;
}

bool sealed_program_is(int fd)
{
    return fcntl(fd, F_GET_SEALS) == SEALS;
}
