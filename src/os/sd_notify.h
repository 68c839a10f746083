/* sd_notify.h - tells the service manager about us; does nothing outside of one. */
#ifndef OS_SD_NOTIFY_H
#define OS_SD_NOTIFY_H

#include "base/error.h"

/* "READY=1", "STOPPING=1", "STATUS=...", "WATCHDOG=1". Without NOTIFY_SOCKET: ERR_OK. */
MUST_CHECK enum err sd_notify_send(const char *state, struct error *e);

#endif
