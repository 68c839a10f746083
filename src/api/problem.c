#include "api/api.h"
#include "wire/resource.h"

void api_problem(const struct error *e, struct api_answer *answer)
{
    struct problem_view view;
    struct json_writer w = json_writer_of(&answer->body);

    buf_clear(&answer->body);
    problem_view_fill(&view, e);
    answer->status = (unsigned)view.status;
    answer->content_type = "application/problem+json";
    answer->version = 0;
    answer->location[0] = '\0';
    if (e->code == ERR_RATE || e->code == ERR_UNAVAILABLE)
        answer->retry_after_s = 1;
    schema_encode(&w, &problem_view_schema, &view, WIRE_PUBLIC, NULL);
    buf_add_char(&answer->body, '\n');
}
