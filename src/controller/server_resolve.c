/*
 * Images named by a tag: the registry is asked on a worker, one at a time, because a registry that
 * does not answer must not keep the workers from commits.
 */
#include <sodium.h>
#include <string.h>

#include "controller/exchange.h"
#include "controller/registry.h"
#include "net/egress.h"

enum { RESOLUTIONS_MAX = 32 };

struct resolution {
    struct exchange *exchange;
    struct registry_request request;
    struct registry_image image;
    struct arena arena;
    struct buf password; /* owned, wiped */
    enum err rc;
    struct error error;
    struct resolution *next;
};

static void resolution_free(struct resolution *resolution)
{
    if (resolution->password.data != NULL)
        sodium_memzero(resolution->password.data, resolution->password.capacity);
    buf_done(&resolution->password);
    arena_done(&resolution->arena);
    mem_free(resolution);
}

static enum err request_fill(struct resolution *resolution, struct berthd *berthd, struct error *e)
{
    const struct api_resolve *resolve = &resolution->exchange->result.resolve;
    /* The login of the image's tenant at the host of its reference. */
    const struct credential *credential = state_credential_at(
        engine_state(berthd->engine), resolve->tenant, registry_host(resolve->reference));
    resolution->request = (struct registry_request){
        .reference = str_c(&resolution->arena, resolve->reference),
        .work_dir = str_c(&resolution->arena, berthd->config.state_dir),
        .is_plain_http =
            registry_is_plain(resolve->reference, &berthd->config.plain_http_registries),
    };
    const struct registry_rules rules = { &berthd->config.registries,
                                          &berthd->config.plain_http_registries };
    enum err rc = registry_judge(resolve->reference, &rules, &resolution->request.reach, e);
    if (rc == ERR_OK)
        rc = egress_find(&resolution->arena, &resolution->request.egress, e);
    if (rc != ERR_OK || credential == NULL)
        return rc;
    rc = keys_open(berthd->keys, credential->r.sealed, &resolution->password, e);
    resolution->request.username = str_copy(&resolution->arena, credential->r.username);
    resolution->request.password = buf_str(&resolution->password);
    return rc;
}

static void resolution_run(void *arg)
{
    struct resolution *resolution = arg;
    resolution->rc = registry_resolve(&resolution->request, &resolution->arena, &resolution->image,
                                      &resolution->error);
}

static void resolution_settle(struct resolution *resolution)
{
    struct exchange *exchange = resolution->exchange;
    const struct registry_image *image = &resolution->image;
    exchange->is_waiting = false;
    if (exchange->is_gone) {
        exchange_release(exchange);
        return;
    }
    if (resolution->rc == ERR_OK)
        resolution->rc = images_keep(exchange->server->berthd->images, &image->manifest,
                                     &image->defaults, &resolution->error);
    if (resolution->rc != ERR_OK) {
        exchange_refuse(exchange, &resolution->error);
        return;
    }
    const struct api_resolved resolved = { image->manifest, image->size_bytes };
    struct berthd *berthd = exchange->server->berthd;
    api_resolved(&resolved, &exchange->result);
    if (!exchange_command(exchange))
        images_forget(berthd->images, engine_state(berthd->engine), &image->manifest);
}

static void resolution_take_off(struct server *server)
{
    struct resolution *resolution = server->first_resolution;
    server->first_resolution = resolution->next;
    if (server->first_resolution == NULL)
        server->last_resolution = &server->first_resolution;
    server->resolution_count--;
    resolution_settle(resolution);
    resolution_free(resolution);
}

static void resolution_done(void *arg)
{
    struct resolution *resolution = arg;
    struct server *server = resolution->exchange->server;
    resolution_take_off(server);
    while (server->is_draining && server->first_resolution != NULL) {
        server->first_resolution->rc =
            err_set(&server->first_resolution->error, ERR_UNAVAILABLE, "the controller stops");
        resolution_take_off(server);
    }
    if (server->first_resolution != NULL)
        loop_work(server->berthd->loop, resolution_run, resolution_done, server->first_resolution);
}

void resolve_start(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct error e = { 0 };
    if (server->resolution_count >= RESOLUTIONS_MAX) {
        (void)err_cause(&e, ERR_RATE, CAUSE_RATE_LIMITED,
                        "%d images are being looked up already; try again", RESOLUTIONS_MAX);
        exchange_refuse(exchange, &e);
        return;
    }
    struct resolution *resolution = mem_new(1, sizeof(*resolution));
    resolution->exchange = exchange;
    if (request_fill(resolution, server->berthd, &e) != ERR_OK) {
        resolution_free(resolution);
        exchange_refuse(exchange, &e);
        return;
    }
    exchange->is_waiting = true;
    *server->last_resolution = resolution;
    server->last_resolution = &resolution->next;
    if (server->resolution_count++ == 0)
        loop_work(server->berthd->loop, resolution_run, resolution_done, resolution);
}
