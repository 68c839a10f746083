#include "api/api.h"
#include "wire/resource.h"

static void problem_write(const struct problem_view *view, struct api_answer *answer)
{
    struct json_writer w = json_writer_of(&answer->body);

    buf_clear(&answer->body);
    answer->status = (unsigned)view->status;
    answer->content_type = "application/problem+json";
    answer->version = 0;
    answer->location[0] = '\0';
    schema_encode(&w, &problem_view_schema, view, WIRE_PUBLIC, NULL);
    buf_add_char(&answer->body, '\n');
}

void api_problem(const struct error *e, struct api_answer *answer)
{
    struct problem_view view;

    problem_view_fill(&view, e);
    if (e->code == ERR_RATE || e->code == ERR_UNAVAILABLE)
        answer->retry_after_s = 1;
    problem_write(&view, answer);
}

void api_protocol_problem(unsigned status, const char *title, const char *detail,
                          struct api_answer *answer)
{
    const struct problem_view view = {
        .type = STR("about:blank"),
        .title = str_of(title),
        .status = status,
        .cause = str_of(cause_name(status < 500 ? CAUSE_INVALID : CAUSE_UNAVAILABLE)),
        .detail = str_of(detail),
    };

    problem_write(&view, answer);
}
