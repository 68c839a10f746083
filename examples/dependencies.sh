#!/bin/sh
# Work that waits for other work: an array of parts, then one step when all of them succeeded, and
# one that tells of a failure. Prints the ids.
#
#     examples/dependencies.sh
set -eu
submit() { berth submit --project amber --image debian-12 --gpus 0.25 --cpus 0.1 --memory 256M "$@"; }
parts=$(submit --name parts --count 3 -- sh -c 'echo "part $BERTH_ARRAY_INDEX"')
submit --name merge --after "ok:$parts" -- echo "all parts are there"
submit --name alarm --after "failed:$parts" -- echo "a part has failed"
echo "$parts"
