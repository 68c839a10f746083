/* filter.h - which workloads a list wants, of those in memory and of those in the store alike. */
#ifndef API_FILTER_H
#define API_FILTER_H

#include "model/record.h"

struct workload_filter {
    uint64_t states; /* one bit each; 0: any */
    struct id array;
    bool has_array;
    struct str user;                    /* data NULL: any */
    struct str label_name, label_value; /* name empty: any */
    struct str path;                    /* of this project or one below it; empty: any */
};

/* From the texts of a query, where data NULL is absent; borrows them. Errors name the parameter. */
struct workload_filter_text {
    struct str state, array, user, label;
};
enum err workload_filter_parse(const struct workload_filter_text *text, struct workload_filter *out,
                               struct error *e) MUST_CHECK;

/* ERR_INVALID: the parameter has none of the names; says which there are. */
enum err refuse_name(const char *name, const struct enum_names *names, struct error *e) MUST_CHECK;

/* Does it want more than all? */
bool workload_filter_is_set(const struct workload_filter *filter);

/* What of a workload is looked at. */
struct workload_traits {
    enum workload_state state;
    struct id array;
    struct str user;
    struct str path; /* of its project */
};
bool workload_filter_takes(const struct workload_filter *filter,
                           const struct workload_traits *traits);
/* Labels are only in the spec: looked at last, and only when asked for. */
bool workload_filter_takes_spec(const struct workload_filter *filter, struct str spec_json);

#endif
