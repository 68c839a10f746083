/*
 * What is kept: images that a workload runs from, and every layer and text of an image that is
 * kept. What goes first: images unused for too long, then the longest unused until the layers fit.
 * What belongs to no image, of an import that was refused or killed half-way, goes at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/path.h"
#include "agent/image/store_internal.h"
#include "os/fd.h"
#include "os/file.h"

/* One image and whether it stays. */
struct candidate {
    struct image_entry entry;
    struct image_manifest manifest;
    bool is_removed;
};

/* One layer and how many remaining images need it. */
struct layer_use {
    struct image_digest blob;
    int64_t bytes;
    size_t users;
};

struct collection {
    struct candidate *images; /* owned; by digest */
    size_t image_count;
    struct layer_use *layers; /* owned; by digest */
    size_t layer_count;
    int64_t bytes; /* of layers with users */
};

static void collection_done(struct collection *all)
{
    mem_free(all->images);
    mem_free(all->layers);
}
DEFINE_CLEANUP_AT(collection, struct collection, collection_done)

static bool digest_from_name(const char *name, struct image_digest *out)
{
    char text[IMAGE_DIGEST_TEXT_MAX];
    int size = snprintf(text, sizeof(text), "sha256:%s", name);
    return size < (int)sizeof(text) && image_digest_parse(str_of(text), out);
}

/* Digests of the images that leases name, sorted by nothing: there are as many as workloads run. */
struct leased {
    struct image_digest *items;
    size_t count;
};

static enum err read_leases(const struct image_store *store, struct leased *out, struct error *e)
{
    AUTO(store_names) struct store_names names = { 0 };
    enum err rc = store_list_names(store, "leases", &names, e);
    if (rc != ERR_OK)
        return rc;
    VEC(struct image_digest) digests = { 0 };
    for (size_t i = 0; i < names.count; i++) {
        store_path_text path;
        AUTO(buf) struct buf text = { 0 };
        struct image_digest digest;
        rc = file_read(store_path(store, path, "leases/%s", names.items[i]), IMAGE_DIGEST_TEXT_MAX,
                       &text, e);
        if (rc == ERR_OK && image_digest_parse(buf_str(&text), &digest))
            vec_push(&digests, digest);
        else if (rc == ERR_OK)
            rc = err_set(e, ERR_CORRUPT, "%s does not name an image", path);
        if (rc != ERR_OK) {
            vec_done(&digests);
            return rc;
        }
    }
    *out = (struct leased){ digests.items, digests.count };
    return ERR_OK;
}

static bool is_among(const struct image_digest *items, size_t count,
                     const struct image_digest *image)
{
    for (size_t i = 0; i < count; i++) {
        if (image_digest_eq(&items[i], image))
            return true;
    }
    return false;
}

static enum err read_candidate(const struct image_store *store, const struct image_digest *image,
                               struct candidate *out, struct error *e)
{
    store_path_text path;
    struct stat st;
    enum err rc = image_store_find(store, image, &out->manifest, e);
    if (rc != ERR_OK)
        return rc;
    if (stat(store_digest_path(store, path, "images", image), &st) != 0)
        return err_errno(e, "look at %s", path);
    out->entry.image = *image;
    out->entry.used_at.ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
    for (size_t i = 0; i < out->manifest.layer_count; i++) {
        struct layer_meta meta;
        rc = store_read_meta(store, &out->manifest.layers[i].blob, &meta, e);
        if (rc != ERR_OK)
            return rc;
        out->entry.bytes += meta.bytes;
    }
    return ERR_OK;
}

static int compare_layers(const void *a, const void *b)
{
    const struct layer_use *left = a;
    const struct layer_use *right = b;
    return image_digest_cmp(&left->blob, &right->blob);
}

static struct layer_use *find_layer(const struct collection *all, const struct image_digest *blob)
{
    const struct layer_use key = { .blob = *blob };
    return all->layer_count == 0 ? NULL
                                 : bsearch(&key, all->layers, all->layer_count,
                                           sizeof(all->layers[0]), compare_layers);
}

static enum err read_images(const struct image_store *store, struct collection *all,
                            struct error *e)
{
    AUTO(store_names) struct store_names names = { 0 };
    struct leased leased = { 0 };
    enum err rc = store_list_names(store, "images", &names, e);
    if (rc == ERR_OK)
        rc = read_leases(store, &leased, e);
    all->images = mem_new(names.count + 1, sizeof(all->images[0]));
    for (size_t i = 0; i < names.count && rc == ERR_OK; i++) {
        struct image_digest image;
        if (!digest_from_name(names.items[i], &image))
            continue; /* a temporary file of a write that was killed */
        struct candidate *candidate = &all->images[all->image_count];
        rc = read_candidate(store, &image, candidate, e);
        candidate->entry.is_leased = is_among(leased.items, leased.count, &image);
        all->image_count += rc == ERR_OK;
    }
    mem_free(leased.items);
    return rc;
}

static enum err read_layers(const struct image_store *store, struct collection *all,
                            struct error *e)
{
    AUTO(store_names) struct store_names names = { 0 };
    enum err rc = store_list_names(store, "layers", &names, e);
    if (rc != ERR_OK)
        return rc;
    all->layers = mem_new(names.count + 1, sizeof(all->layers[0]));
    for (size_t i = 0; i < names.count; i++) {
        struct layer_meta meta = { .bytes = 0 };
        struct layer_use *layer = &all->layers[all->layer_count];
        if (!digest_from_name(names.items[i], &layer->blob))
            continue;
        /* Without its facts nobody can use it, so it has no users and goes. */
        if (store_read_meta(store, &layer->blob, &meta, NULL) == ERR_OK)
            layer->bytes = meta.bytes;
        all->layer_count++;
    }
    return ERR_OK;
}

static void count_users(struct collection *all)
{
    for (size_t i = 0; i < all->image_count; i++) {
        const struct image_manifest *manifest = &all->images[i].manifest;
        for (size_t l = 0; l < manifest->layer_count; l++) {
            struct layer_use *layer = find_layer(all, &manifest->layers[l].blob);
            if (layer == NULL)
                continue;
            if (layer->users++ == 0)
                all->bytes += layer->bytes;
        }
    }
}

static void mark_removed(struct collection *all, struct candidate *image)
{
    image->is_removed = true;
    for (size_t l = 0; l < image->manifest.layer_count; l++) {
        struct layer_use *layer = find_layer(all, &image->manifest.layers[l].blob);
        if (layer != NULL && --layer->users == 0)
            all->bytes -= layer->bytes;
    }
}

static struct candidate *longest_unused(const struct collection *all)
{
    struct candidate *found = NULL;
    for (size_t i = 0; i < all->image_count; i++) {
        struct candidate *image = &all->images[i];
        if (image->is_removed || image->entry.is_leased)
            continue;
        if (found == NULL || image->entry.used_at.ns < found->entry.used_at.ns)
            found = image;
    }
    return found;
}

static void choose(struct collection *all, const struct image_gc *policy)
{
    for (size_t i = 0; i < all->image_count; i++)
        all->images[i].entry.is_leased |=
            is_among(policy->keep, policy->keep_count, &all->images[i].entry.image);
    for (;;) {
        struct candidate *image = longest_unused(all);
        if (image == NULL)
            return;
        int64_t age_ns = policy->now.ns - image->entry.used_at.ns;
        bool is_old = policy->max_age_s >= 0 && age_ns / NS_PER_S > policy->max_age_s;
        bool is_full = policy->max_bytes >= 0 && all->bytes > policy->max_bytes;
        if (!is_old && !is_full)
            return;
        mark_removed(all, image);
    }
}

/* Permits go with the image: who wants it again must show again that they have it. */
static void remove_permits(const struct image_store *store, const struct image_digest *image)
{
    AUTO(store_names) struct store_names tenants = { 0 };
    char hex[IMAGE_DIGEST_HEX_MAX];
    store_path_text path;
    image_digest_hex(image, hex);
    if (store_list_names(store, "permits", &tenants, NULL) != ERR_OK)
        return;
    for (size_t i = 0; i < tenants.count; i++)
        (void)unlink(store_path(store, path, "permits/%s/%s", tenants.items[i], hex));
}

static bool is_text_needed(const struct collection *all, const struct image_digest *text)
{
    for (size_t i = 0; i < all->image_count; i++) {
        const struct candidate *image = &all->images[i];
        if (!image->is_removed && (image_digest_eq(&image->entry.image, text) ||
                                   image_digest_eq(&image->manifest.config, text)))
            return true;
    }
    return false;
}

/* Manifests and configurations: those of removed images, and of imports that were cut off. */
static enum err remove_texts(const struct image_store *store, const struct collection *all,
                             struct error *e)
{
    AUTO(store_names) struct store_names names = { 0 };
    enum err rc = store_list_names(store, "blobs", &names, e);
    for (size_t i = 0; i < names.count; i++) {
        struct image_digest text;
        store_path_text path;
        if (digest_from_name(names.items[i], &text) && !is_text_needed(all, &text))
            (void)unlink(store_path(store, path, "blobs/%s", names.items[i])); /* or next time */
    }
    return rc;
}

/* The record goes first: without it nobody can start from the image, whatever happens next. */
static enum err remove_images(const struct image_store *store, const struct collection *all,
                              struct image_gc_result *out, struct error *e)
{
    store_path_text path;
    for (size_t i = 0; i < all->image_count; i++) {
        const struct candidate *image = &all->images[i];
        if (!image->is_removed)
            continue;
        if (unlink(store_digest_path(store, path, "images", &image->entry.image)) != 0)
            return err_errno(e, "remove %s", path);
        remove_permits(store, &image->entry.image);
        out->images_removed++;
    }
    return remove_texts(store, all, e);
}

/* Copies for tenants (see mount.c) are named <uid base>-<layer>. */
static void retire_copies(const struct image_store *store, const char *bin,
                          const struct image_digest *blob)
{
    AUTO(store_names) struct store_names copies = { 0 };
    char hex[IMAGE_DIGEST_HEX_MAX];
    image_digest_hex(blob, hex);
    if (store_list_names(store, "copies", &copies, NULL) != ERR_OK)
        return;
    for (size_t i = 0; i < copies.count; i++) {
        store_path_text from;
        char to[PATH_MAX];
        const char *dash = strchr(copies.items[i], '-');
        if (dash == NULL || strcmp(dash + 1, hex) != 0)
            continue;
        store_path(store, from, "copies/%s", copies.items[i]);
        if (path_format(to, NULL, "%s/%s", bin, copies.items[i]) == ERR_OK)
            (void)rename(from, to); /* what stays goes with the next collection */
    }
}

/* Away at once by rename, so that a kill leaves no half layer under its name. */
static enum err retire_layers(const struct image_store *store, const struct collection *all,
                              const char *bin, struct image_gc_result *out, struct error *e)
{
    for (size_t i = 0; i < all->layer_count; i++) {
        const struct layer_use *layer = &all->layers[i];
        char hex[IMAGE_DIGEST_HEX_MAX];
        store_path_text from;
        char to[PATH_MAX];
        if (layer->users > 0)
            continue;
        retire_copies(store, bin, &layer->blob);
        store_digest_path(store, from, "layers", &layer->blob);
        enum err rc = path_format(to, e, "%s/%s", bin, image_digest_hex(&layer->blob, hex));
        if (rc != ERR_OK)
            return rc;
        if (rename(from, to) != 0)
            return err_errno(e, "retire %s", from);
        out->layers_removed++;
        out->bytes_removed += layer->bytes;
    }
    return ERR_OK;
}

/* What goes is moved into the directory `bin`, made here. */
static enum err collect(const struct image_store *store, const struct image_gc *policy,
                        const char *bin, struct image_gc_result *out, struct error *e)
{
    AUTO(collection) struct collection all = { 0 };
    AUTO(fd) int lock = -1;
    enum err rc = store_lock_exclusive(store, &lock, e);
    if (rc == ERR_OK && mkdir(bin, 0700) != 0)
        rc = err_errno(e, "make %s", bin);
    if (rc == ERR_OK)
        rc = read_images(store, &all, e);
    if (rc == ERR_OK)
        rc = read_layers(store, &all, e);
    if (rc != ERR_OK)
        return rc;
    count_users(&all);
    choose(&all, policy);
    rc = remove_images(store, &all, out, e);
    if (rc == ERR_OK)
        rc = retire_layers(store, &all, bin, out, e);
    out->bytes_left = all.bytes;
    return rc;
}

enum err image_store_gc(struct image_store *store, const struct image_gc *policy,
                        struct image_gc_result *out, struct error *e)
{
    struct image_gc_result result = { 0 };
    store_path_text bin;
    enum err rc = collect(store, policy, store_temporary(store, bin), &result, e);
    /* Deleting takes long and needs no lock: nobody knows these names. */
    remove_tree(bin);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "collect unused images");
    *out = result;
    return ERR_OK;
}

enum err image_store_list(const struct image_store *store, image_store_each *each, void *context,
                          struct error *e)
{
    AUTO(collection) struct collection all = { 0 };
    enum err rc = read_images(store, &all, e);
    for (size_t i = 0; i < all.image_count && rc == ERR_OK; i++)
        each(context, &all.images[i].entry);
    return rc;
}
