/*
 * local_secret.h - the secret of a job without a key: rank 0 gives it to the
 * ranks on its machine that run as the same user
 *
 * Rank 0 draws the secret and listens on a Unix stream socket in the abstract
 * namespace; a thread of it answers each connection at once and ends when all
 * ranks have the secret.  The other ranks connect, and try again until rank 0
 * listens.  The kernel tells each side the effective user id of the other
 * (SO_PEERCRED), which neither can forge:
 *
 *      rank 0       closes connections of other users without a byte
 *      other ranks  take nothing from a listener of another user
 *
 * The name of rank 0's socket is "blinksort-UID-HASH", of the user id, the
 * job's name and the addresses of all ranks.  Another rank binds its end to
 * that name with "-RANK-" and random digits behind it, and so has told its rank
 * when it connects.  Rank 0 never reads from a connection: no process can hold
 * it up by connecting and saying nothing.
 *
 * Another user can compute the name and take it before rank 0 does.  The job
 * then fails and says which user holds the name; it gives nothing away.
 *
 * Two jobs of one user with one name are not told apart.  While not all ranks
 * of a job have the secret, a rank that comes twice (a second rank 0, too)
 * makes rank 0 give it to no rank any more, so that ranks of two jobs do not
 * sort together; a second job that begins later has a secret of its own.
 *
 * Root, and all processes of the same user, can always join or look.
 */
#ifndef LOCAL_SECRET_H
#define LOCAL_SECRET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"
#include "net/address.h"

#define LOCAL_SECRET_BYTES 32
/* A socket's address has room for this, less the NUL in front and what a rank
 * adds to the name. */
#define LOCAL_SECRET_NAME_BYTES 80

struct local_secret_job {
	unsigned rank, rank_count; /* 2 .. 1000, rank < rank_count */
	uid_t user;
	char name[LOCAL_SECRET_NAME_BYTES]; /* of rank 0's socket */
};

struct local_secret_server;

/*
 * name: the hash of the job's name; addresses: of all ranks, [rank_count].  0
 * or -errno with *failure filled: EXIT_USAGE if the kernel shows this process
 * other users under its own user id, as in some user namespaces.
 */
int local_secret_init(struct local_secret_job *job, unsigned rank,
		      unsigned rank_count,
		      const uint8_t name[LOCAL_SECRET_BYTES],
		      const struct address *addresses, struct failure *failure);

/*
 * Rank 0: give the secret to the other ranks from now on, from a thread.  NULL
 * with *failure filled: EXIT_PEER if another process holds the name (it has 1 s
 * to close, or to say that it is rank 0 of another job of this user);
 * EXIT_RESOURCES.
 */
struct local_secret_server *
local_secret_serve(const struct local_secret_job *job,
		   const uint8_t secret[LOCAL_SECRET_BYTES],
		   struct failure *failure);

/* True if a rank has come twice before all had come.  NULL: false. */
bool local_secret_is_contested(const struct local_secret_server *server);

/* Fill *failure with that; returns -errno. */
int local_secret_fail_contested(const struct local_secret_job *job,
				struct failure *failure);

/* End the thread, if it has not ended, and free.  Safe on NULL. */
void local_secret_end(struct local_secret_server *server);

/*
 * Wait for the secret, as any rank but rank 0 does.  0, or -errno with *failure
 * filled: EXIT_PEER if rank 0 (its host, for the message) has not come within
 * deadline_ns, if another user holds the name, or if rank 0 has refused a
 * second job of this name; EXIT_RESOURCES.
 */
int local_secret_fetch(const struct local_secret_job *job, const char *host,
		       uint64_t deadline_ns, uint8_t secret[LOCAL_SECRET_BYTES],
		       struct failure *failure);

#endif /* LOCAL_SECRET_H */
