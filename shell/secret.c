/* secret.c - the file in memory that holds the secret of one job */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shell/secret.h"

/* Linux has them; the headers of the C library may be older. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008
#endif

static const struct secret none = { .fd = -1 };

/* The file cannot be executed, which some systems demand (vm.memfd_noexec).
 * Linux has such files since 6.3; before, EINVAL leads to an ordinary one. */
static int make_file(void)
{
	int fd = memfd_create("blink-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING |
						      MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("blink-secret",
				  MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

/* The mapping is made before the seal, which denies writing by later ones. */
int secret_open(struct secret *secret)
{
	void *bytes = MAP_FAILED;
	int fd = make_file();
	int error;

	if (fd >= 0 && ftruncate(fd, WIRE_SECRET_BYTES) == 0)
		bytes = mmap(NULL, WIRE_SECRET_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, 0);
	if (bytes != MAP_FAILED &&
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
			  F_SEAL_FUTURE_WRITE) == 0) {
		*secret = (struct secret){ .fd = fd, .bytes = bytes };
		return 0;
	}
	error = errno;
	if (bytes != MAP_FAILED)
		munmap(bytes, WIRE_SECRET_BYTES);
	if (fd >= 0)
		close(fd);
	*secret = none;
	return -error;
}

void secret_close(struct secret *secret)
{
	if (secret->fd >= 0) {
		explicit_bzero(secret->bytes, WIRE_SECRET_BYTES);
		munmap(secret->bytes, WIRE_SECRET_BYTES);
		close(secret->fd);
	}
	*secret = none;
}
