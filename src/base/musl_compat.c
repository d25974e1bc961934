/*
 * musl_compat.c - a function of glibc that musl lacks and libsodium calls
 *
 * Debian's static libsodium was built against glibc.  It calls glibc's checked
 * form of explicit_bzero(), which compares the length with the size of the
 * buffer, known when libsodium was compiled, and then does the same.
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
