/* main.h - what the commands of berth-sim share. */
#ifndef SIM_MAIN_H
#define SIM_MAIN_H

#include <stdbool.h>

enum { EXIT_HELD = 0, EXIT_FAULT = 1, EXIT_WRONG = 2 };

/* Says what is wrong and how it is called; EXIT_WRONG. */
int wrong_use(const char *what);
int replay_main(int argc, char **argv);
int whatif_main(int argc, char **argv);
int bench_main(int argc, char **argv);

/* Options, all with a value but --json; NULL: not given. */
struct words {
    const char *nodes, *pods, *order, *inflate, *placement, *placements; /* of traces */
    const char *gpus, *projects, *workloads, *events, *preset;           /* of made-up clusters */
    const char *philly, *policy;                                         /* of recorded jobs */
    bool is_json;
};
/* False: an option that is not known, or has no value. */
bool words_read(int argc, char **argv, struct words *out);
bool words_has_trace(const struct words *words); /* any that bench does not know */
bool words_has_bench(const struct words *words); /* any that replay does not know */
int philly_main(const struct words *given);

#endif
