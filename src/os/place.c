#include "os/place.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever made the stream does not say who else may write to what is made for it. */
enum { DIR_MODE = 0755 };

size_t place_trim(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && (path[size - 1] == '/' || (path[size - 1] == '.' && path[size - 2] == '/')))
        size--;
    return size;
}

enum err place_find(const char *path, struct place *out, struct error *e)
{
    struct stat info;
    char parent[PATH_MAX];
    size_t size = place_trim(path);
    if (size == 0 || strlen(path) >= PATH_MAX)
        return err_set(e, ERR_INVALID, "\"%.100s\" is no path", path);
    *out = (struct place){ .wants_dir = path[size] != '\0' };
    memcpy(out->path, path, size);
    bool is_there = stat(out->path, &info) == 0;
    if (is_there && S_ISDIR(info.st_mode))
        return chdir(out->path) == 0 ? ERR_OK : err_errno(e, "enter %s", out->path);
    out->is_file = is_there;
    char *slash = strrchr(out->path, '/');
    out->base = slash != NULL ? slash + 1 : out->path;
    if (slash == NULL)
        return ERR_OK;
    size = MAX_OF((size_t)(slash - out->path), (size_t)1); /* "/" is the parent of "/x" */
    memcpy(parent, out->path, size);
    parent[size] = '\0';
    return chdir(parent) == 0 ? ERR_OK : err_errno(e, "the directory %s", parent);
}

/* With the first entry it is known whether it has a name of its own. */
static enum err place_begin(struct place *place, const char *name, bool is_dir, struct error *e)
{
    bool is_inside = strcmp(name, ".") == 0 || strncmp(name, "./", 2) == 0;
    if (place->base == NULL)
        return ERR_OK;
    if ((place->is_file && (is_inside || is_dir)) || (place->wants_dir && !is_dir))
        return err_set(e, ERR_CONFLICT, "%s is no directory", place->path);
    if (!is_inside)
        return ERR_OK;
    if (mkdir(place->base, DIR_MODE) != 0 || chdir(place->base) != 0)
        return err_errno(e, "make %s", place->path);
    place->base = NULL;
    return ERR_OK;
}

static bool leads_elsewhere(const char *name)
{
    if (name[0] == '/')
        return true;
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

enum err place_name(struct place *place, const char *given, bool is_dir, const char **out,
                    struct error *e)
{
    if (given == NULL || given[0] == '\0')
        return err_set(e, ERR_INVALID, "an entry has no name");
    if (leads_elsewhere(given))
        return err_set(e, ERR_INVALID, "%s leads out of where it goes", given);
    enum err rc = place->is_begun ? ERR_OK : place_begin(place, given, is_dir, e);
    if (rc != ERR_OK)
        return rc;
    place->is_begun = true;
    if (place->base == NULL) {
        *out = given;
        return ERR_OK;
    }
    const char *rest = strchr(given, '/');
    int length =
        snprintf(place->name, sizeof(place->name), "%s%s", place->base, rest != NULL ? rest : "");
    if (length >= (int)sizeof(place->name))
        return err_set(e, ERR_LIMIT, "%s: the path is too long", place->base);
    *out = place->name;
    return ERR_OK;
}
