/*
 * hostfold.h - a list of hosts as a short text that hostlist_add() reads again
 *
 *     10.0.0.2:7300 10.0.0.3:7300 ... 10.0.0.17:7300    10.0.0.[2-17]:7300
 *     n08 n09 n10 m                                     n[08-10],m
 *
 * Only neighbours in the list are folded, and only where one number counts up
 * by one: order decides ranks.
 */
#ifndef HOSTFOLD_H
#define HOSTFOLD_H

#include <sys/types.h>

#include "net/hostlist.h"

/*
 * Write the list, which hostlist_add() has made, as at most room bytes of text
 * without a NUL.  When hostlist_add() adds that text to an empty list, it gives
 * the same names in the same order.  Returns the text's length, or -ENOSPC; the
 * bytes at text then mean nothing.
 */
ssize_t hostfold(const struct hostlist *list, char *text, size_t room);

/* Write some names of such a list as a text with a NUL, which the caller frees;
 * or NULL: there is no memory. */
char *hostfold_text(char *const *names, size_t count);

#endif /* HOSTFOLD_H */
