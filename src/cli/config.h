/*
 * config.h - which controller, and as whom: options, then BERTH_SERVER, BERTH_CA and BERTH_TOKEN,
 * then ~/.config/berth/config.yaml {server, ca, token}, then the local socket. Tokens never come
 * from the command line, where others could read them.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "cli/cli.h"

enum err cli_config_load(struct cli *cli, struct error *e) MUST_CHECK;

#endif
