/*
 * images_main.h - what berth-images tells berth-agentd by its exit status, besides 0 (done) and 1 (failed,
 * the reason is on stdout).
 */
#ifndef AGENT_IMAGES_MAIN_H
#define AGENT_IMAGES_MAIN_H

enum { IMAGES_STORE_IS_OVER = 3 }; /* collected, but what is in use is more than the limit */

#endif
