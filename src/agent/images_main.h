/*
 * images_main.h - what berth-images tells berth-agentd by its exit status, besides 0 (done) and 1
 * (failed, the reason is on stdout).
 */
#ifndef AGENT_IMAGES_MAIN_H
#define AGENT_IMAGES_MAIN_H

enum {
    IMAGES_STORE_IS_OVER = 3, /* collected, but what is in use is more than the limit */
    IMAGES_NOT_NOW = 4,       /* room or something like it is short: as 1, but worth another try */
};

#endif
