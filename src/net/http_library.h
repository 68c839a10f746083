/* http_library.h - libhttp-parser's header, whose list of methods has the tag that ours
 * in http.h has. */
#ifndef NET_HTTP_LIBRARY_H
#define NET_HTTP_LIBRARY_H

#define http_method http_parser_method /* NOLINT(readability-identifier-naming): theirs */
#include <http_parser.h>
#undef http_method

#endif
