/* list.h - doubly linked lists of objects that carry their own links, with a head and a tail. */
#ifndef MODEL_LIST_H
#define MODEL_LIST_H

/* Puts `item` behind `after`, or first when that is NULL. */
#define LIST_INSERT(first, last, after, item, next, prev)                                          \
    do {                                                                                           \
        __typeof__(item) before_ = (after) != NULL ? (after)->next : (first);                      \
        (item)->prev = (after);                                                                    \
        (item)->next = before_;                                                                    \
        if (before_ != NULL)                                                                       \
            before_->prev = (item);                                                                \
        else                                                                                       \
            (last) = (item);                                                                       \
        if ((item)->prev != NULL)                                                                  \
            (item)->prev->next = (item);                                                           \
        else                                                                                       \
            (first) = (item);                                                                      \
    } while (0)

#define LIST_APPEND(first, last, item, next, prev)                                                 \
    do {                                                                                           \
        __typeof__(item) tail_ = (last);                                                           \
        LIST_INSERT(first, last, tail_, item, next, prev);                                         \
    } while (0)

#define LIST_REMOVE(first, last, item, next, prev)                                                 \
    do {                                                                                           \
        if ((item)->prev != NULL)                                                                  \
            (item)->prev->next = (item)->next;                                                     \
        else                                                                                       \
            (first) = (item)->next;                                                                \
        if ((item)->next != NULL)                                                                  \
            (item)->next->prev = (item)->prev;                                                     \
        else                                                                                       \
            (last) = (item)->prev;                                                                 \
        (item)->next = NULL;                                                                       \
        (item)->prev = NULL;                                                                       \
    } while (0)

#endif
