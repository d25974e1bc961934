/*
 * daemon.h - the loop of blinkd: datagrams in, jobs started, replies out
 *
 * There is one loop around poll(2) and no thread; signals come by a descriptor,
 * too.  A datagram goes through the checks of command.h, replay.h and start.h
 * in this order.  One that fails any of them is counted and gets no reply; but
 * a request that lacks nothing but a session that the daemon knows is answered
 * by NO_SESSION.  The session of the client that will be told of a running
 * job's end is never forgotten.
 *
 * A START is answered when its job has ended or is refused.  Any further
 * request about the job is answered at once, and the end is told to the address
 * that the latest one came from.  A START that comes after its own CANCEL
 * starts nothing, and neither does one whose job has ended, be its result known
 * or forgotten.
 *
 * Each round reads at most INBOX_DATAGRAMS_MAX datagrams, and each pipe once: a
 * flood of either cannot keep the other, nor the jobs' time-outs, from its
 * turn. (Before a lease is called over, some more datagrams are read: a renewal
 * may be among them.)  All memory is allocated at the start.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "net/address.h"
#include "shell/allowlist.h"
#include "shell/job.h"
#include "shell/wire.h"

struct daemon_options {
	struct address listen; /* port 0: any that is free */
	uint8_t key[WIRE_KEY_BYTES];
	struct allowlist allow;
	struct job_limits limits;
	bool use_groups; /* make a cgroup for each job, if possible */
};

struct daemon;

/* Binds the socket and allocates the memory.  options is borrowed.  0, or
 * -errno with *failure filled. */
int daemon_open(struct daemon **daemon, const struct daemon_options *options,
		struct failure *failure);

/* Returns "address:port", with the port that the socket got. */
const char *daemon_node(const struct daemon *daemon);

/*
 * Kills what an earlier daemon of this node left, and takes over SIGTERM,
 * SIGINT and SIGCHLD.  Call it in the process that will call daemon_run(),
 * since children and signals belong to a process.  0, or -errno with *failure
 * filled.
 */
int daemon_begin(struct daemon *daemon, struct failure *failure);

/* Serves until SIGTERM or SIGINT; then kills and reaps all jobs, and tells the
 * clients that wait for them.  0, or -errno with *failure filled. */
int daemon_run(struct daemon *daemon, struct failure *failure);

void daemon_close(struct daemon *daemon);

#endif /* DAEMON_H */
