/* full.c - of berth-full, which can do everything. */
#include "cli/full.h"

enum err cli_program_choose(struct cli *cli, struct error *e)
{
    (void)cli;
    (void)e;
    return ERR_OK;
}

const struct http_transport *cli_transport(void)
{
    return http_client_tls();
}
