/* policy.h - a patch of a project or of the settings, checked and put on what is there. */
#ifndef CORE_POLICY_H
#define CORE_POLICY_H

#include "core/decide.h"
#include "model/policy.h"

/* project.c. Rows by class number, one a class; fields that were not given stay UNSET. */
enum err quotas_resolve(const struct decision *d, const struct quota_spec_list *specs,
                        struct quota_list *out, struct error *e) MUST_CHECK;
/* The project as it becomes. Guarantees beyond what there is are refused, or flagged if forced;
 * rows of classes that were removed are passed over. */
enum err project_patch(const struct decision *d, const struct project *project,
                       const struct policy_patch *patch, bool is_forced, struct project_record *out,
                       struct error *e) MUST_CHECK;
bool project_differs(const struct project_record *a, const struct project_record *b);
/* A change of guarantees as project_patch() counts them: a project's own, or the sum of its
 * children's where it has none. */
int64_t effective_quota(const struct project *project, int64_t class_number);
int64_t quota_below(const struct project *top, int64_t class_number);

/* config.c. The settings as they become. */
enum err settings_patch(const struct decision *d, const struct policy_patch *patch,
                        struct settings_record *out, struct error *e) MUST_CHECK;
bool settings_differ(const struct settings_record *a, const struct settings_record *b);

#endif
