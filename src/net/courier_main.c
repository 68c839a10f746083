/*
 * berth-courier - takes one notice to one place, by HTTP or SMTP, and says how it went.
 *
 * What is to be done comes on standard input: lines "KEY VALUE", an empty line, and the body. So no
 * secret is ever on a command line or in a file. It is run by berth-egress, which decides where it
 * may connect to; it follows no redirection, keeps nothing of an answer but its status, and ends
 * within its time. The answer is one line: "ok" or "fault WHY".
 */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { INPUT_MAX = 256 * 1024, CONNECT_S = 10, ALL_S = 25, HEADERS_MAX = 8, FAULT_MAX = 160 };

struct task {
    const char *url; /* https, http, smtp or smtps */
    const char *headers[HEADERS_MAX];
    size_t header_count;
    const char *from, *to; /* mail */
    const char *user, *password;
    const char *authority; /* file of certificates to trust instead of the system's */
    bool needs_tls;        /* mail: no word before TLS */
    struct str body;
    size_t sent;
};

/* ---- what is to be done -------------------------------------------------------------------- */

static void take_value(struct task *task, const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {
        { "url", &task->url },   { "from", &task->from },         { "to", &task->to },
        { "user", &task->user }, { "password", &task->password }, { "authority", &task->authority },
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (strcmp(key, texts[i].key) == 0)
            *texts[i].to = value;
    }
    if (strcmp(key, "header") == 0 && task->header_count < HEADERS_MAX)
        task->headers[task->header_count++] = value;
    if (strcmp(key, "tls") == 0)
        task->needs_tls = true;
}

/* Cuts `input` into texts of its own. False: it has no end of its head. */
static bool take_task(struct buf *input, struct task *task)
{
    char *at = input->data;
    while (*at != '\n') {
        char *end = strchr(at, '\n');
        char *space = strchr(at, ' ');
        if (end == NULL || space == NULL || space > end)
            return false;
        *end = '\0';
        *space = '\0';
        take_value(task, at, space + 1);
        at = end + 1;
    }
    at++;
    task->body = (struct str){ at, input->size - (size_t)(at - input->data) };
    return task->url != NULL;
}

/* ---- doing it ------------------------------------------------------------------------------ */

static size_t read_body(char *out, size_t size, size_t count, void *arg)
{
    struct task *task = arg;
    size_t part = MIN_OF(size * count, task->body.size - task->sent);
    memcpy(out, task->body.data + task->sent, part);
    task->sent += part;
    return part;
}

static size_t drop_answer(char *bytes, size_t size, size_t count, void *arg)
{
    (void)bytes;
    (void)arg;
    return size * count;
}

#define SET(option, value) (is_set = is_set && curl_easy_setopt(curl, option, value) == CURLE_OK)

static bool set_up(CURL *curl, struct task *task)
{
    bool is_set = true;
    SET(CURLOPT_URL, task->url);
    SET(CURLOPT_PROTOCOLS_STR, "https,http,smtp,smtps");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    SET(CURLOPT_TIMEOUT, (long)ALL_S);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_USERAGENT, "berth-courier");
    SET(CURLOPT_WRITEFUNCTION, drop_answer);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (task->authority != NULL)
        SET(CURLOPT_CAINFO, task->authority);
    return is_set;
}

static bool set_up_post(CURL *curl, const struct task *task, struct curl_slist **list)
{
    bool is_set = true;
    for (size_t i = 0; i < task->header_count; i++)
        *list = curl_slist_append(*list, task->headers[i]);
    SET(CURLOPT_HTTPHEADER, *list);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)task->body.size);
    SET(CURLOPT_POSTFIELDS, task->body.data);
    return is_set;
}

static bool set_up_mail(CURL *curl, struct task *task, struct curl_slist **list)
{
    bool is_set = true;
    *list = curl_slist_append(*list, task->to);
    SET(CURLOPT_MAIL_FROM, task->from);
    SET(CURLOPT_MAIL_RCPT, *list);
    SET(CURLOPT_USE_SSL, (long)(task->needs_tls ? CURLUSESSL_ALL : CURLUSESSL_NONE));
    if (task->user != NULL) {
        SET(CURLOPT_USERNAME, task->user);
        SET(CURLOPT_PASSWORD, task->password != NULL ? task->password : "");
    }
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_READFUNCTION, read_body);
    SET(CURLOPT_READDATA, task);
    return is_set;
}

/* "" : it went well. The words are those that people can do something about. */
static void carry(CURL *curl, bool is_mail, char why[FAULT_MAX])
{
    char detail[CURL_ERROR_SIZE] = "";
    long status = 0;
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    CURLcode rc = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    why[0] = '\0';
    if (rc != CURLE_OK)
        (void)snprintf(why, FAULT_MAX, "%s", detail[0] != '\0' ? detail : curl_easy_strerror(rc));
    else if (!is_mail && (status < 200 || status > 299))
        (void)snprintf(why, FAULT_MAX, "it answered HTTP %ld", status);
}

static void deliver(struct task *task, char why[FAULT_MAX])
{
    bool is_mail = task->to != NULL;
    struct curl_slist *list = NULL;
    CURL *curl = curl_easy_init();
    bool is_set = curl != NULL && set_up(curl, task) &&
                  (is_mail ? set_up_mail(curl, task, &list) : set_up_post(curl, task, &list));
    if (is_set)
        carry(curl, is_mail, why);
    else
        (void)snprintf(why, FAULT_MAX, "it cannot be asked that way");
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
}

int main(void)
{
    AUTO(buf) struct buf input = { 0 };
    struct task task = { .url = NULL };
    char why[FAULT_MAX] = "what is to be done cannot be read";
    size_t got = 0;
    (void)prctl(PR_SET_DUMPABLE, 0); /* there is a secret in our memory, perhaps */
    buf_reserve(&input, INPUT_MAX + 1);
    enum err rc = fd_read_full(STDIN_FILENO, input.data, INPUT_MAX, &got, NULL);
    input.size = got;
    input.data[got] = '\0';
    bool is_ready = rc == ERR_OK && got > 0 && got < INPUT_MAX && take_task(&input, &task) &&
                    curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (is_ready)
        deliver(&task, why);
    explicit_bzero(input.data, input.size);
    (void)printf("%s%s\n", why[0] == '\0' ? "ok" : "fault ", why);
    return 0;
}
