/* array.h - arrays as a whole: what their elements are in, and how many a command acted upon. */
#ifndef CLI_ARRAY_H
#define CLI_ARRAY_H

#include "cli/cli.h"

/* Of which array there are summaries: those have `elements`. */
extern const struct cli_column array_columns[];
extern const size_t array_column_count;
extern const struct cli_column array_explain_columns[];
extern const size_t array_explain_column_count;

/* Elements that ended a while ago have left the controller's memory and are only in its store. */
enum array_depth { ARRAY_IN_MEMORY, ARRAY_WHOLE };

/* The elements by their index. ERR_NOT_FOUND: ARRAY_WHOLE has none. *out is the caller's. */
enum err array_elements(struct cli *cli, struct str id, enum array_depth depth, json_t **out,
                        struct error *e) MUST_CHECK;

/* One object: name, project, how many elements there are and in which states. *out is the
 * caller's. */
enum err array_summary(struct cli *cli, struct str id, json_t **out, struct error *e) MUST_CHECK;

/* How many elements the command of that verb would act upon now. */
enum err array_count_for(struct cli *cli, struct str id, const char *verb, json_int_t *count,
                         struct error *e) MUST_CHECK;

/* Adds one row for each state and cause in which elements are. */
enum err array_explain(struct cli *cli, struct str id, json_t *rows, struct error *e) MUST_CHECK;

#endif
