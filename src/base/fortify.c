/*
 * fortify.c - what a libsodium that was built against glibc asks of musl
 *
 * The distribution's static library calls the checked form of explicit_bzero()
 * that only glibc has.  Its check is of a length known when libsodium was
 * compiled; what it does is the same.
 */
#include <stddef.h>
#include <string.h>

#ifndef __GLIBC__
void __explicit_bzero_chk(void *bytes, size_t length, size_t room);

void __explicit_bzero_chk(void *bytes, size_t length, size_t room)
{
	if (length > room)
		__builtin_trap();
	explicit_bzero(bytes, length);
}
#endif
