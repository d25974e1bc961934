/*
 * daemon.h - what blinkd is: datagrams in, jobs started, replies out
 *
 * One loop around poll(2) and no threads; signals come by a descriptor, too.  A
 * datagram goes through the checks of command.h, replay.h and start.h in this
 * order; one that fails any of them is counted and gets no reply, or NO_SESSION
 * if all that it lacks is a session that the daemon knows.  The session of the
 * client that is told of a running job's end is never forgotten.  A START is
 * answered when its job has ended or is refused; any further request about the
 * job is answered at once, and where the latest one came from is where the end
 * is told.  A START that comes after its own CANCEL starts nothing, and neither
 * does one whose job has ended, be its result known or forgotten.
 *
 * In each round at most DAEMON_BATCH datagrams and one read of each pipe: a
 * flood of either cannot keep the other, nor the jobs' time-outs, from its
 * turn.  (Before a lease is called over, some more datagrams: a renewal may be
 * among them.)  All memory is got at the start.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"
#include "shell/allowlist.h"
#include "base/failure.h"
#include "shell/job.h"
#include "shell/wire.h"

#define DAEMON_BATCH 64

struct daemon_options {
	struct address listen; /* port 0: any that is free */
	uint8_t key[WIRE_KEY_BYTES];
	struct allowlist allow;
	struct job_limits limits;
	bool use_groups; /* cgroups, if they can be had */
};

struct daemon;

/* The socket is bound and the memory there.  options is borrowed.  0, or -errno
 * with *failure filled. */
int daemon_open(struct daemon **daemon, const struct daemon_options *options,
		struct failure *failure);

/* "address:port", with the port that it got. */
const char *daemon_node(const struct daemon *daemon);

/*
 * In the process that will run it, since children and signals belong to one:
 * kills what an earlier daemon of this node left, takes over SIGTERM, SIGINT
 * and SIGCHLD.  0, or -errno with *failure filled.
 */
int daemon_begin(struct daemon *daemon, struct failure *failure);

/* Until SIGTERM or SIGINT: then kills and reaps all jobs, telling whoever waits
 * for them.  0, or -errno with *failure filled. */
int daemon_run(struct daemon *daemon, struct failure *failure);

void daemon_close(struct daemon *daemon);

#endif /* DAEMON_H */
