#!/bin/sh
# Lints the metrics that a program prints: check_metrics.sh PROGRAM [ARGUMENT...]. Prints TAP.
echo 1..1
if ! command -v promtool >/dev/null; then
    echo "ok 1 - promtool accepts the metrics # SKIP promtool is not installed"
    exit 0
fi
if complaints=$("$@" | promtool check metrics 2>&1); then
    echo "ok 1 - promtool accepts the metrics"
else
    echo "not ok 1 - promtool accepts the metrics"
    printf '%s\n' "$complaints" | sed 's/^/# /'
    exit 1
fi
