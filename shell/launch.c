/* launch.c - run one command on every node, and fetch its output */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/progress.h"
#include "shell/hostfold.h"
#include "shell/job_progress.h"
#include "shell/launch.h"

/* The first RENEW is sent after the time of a short job, since the message of
 * its end may have been lost; the next ones after twice the time each, up to
 * ASK_NS_MAX or a third of the lease. */
#define ASK_NS 50000000u
#define ASK_NS_MAX 1000000000u
/* Wait this long for the ends after ^C: twice the daemon's grace, and the time
 * to repeat some lost datagrams. */
#define CANCEL_NS 3000000000u

#define PART_BYTES (WIRE_LONG_BODY_BYTES - sizeof(struct wire_output))
#define PARTS_UNDER_WAY 8

static_assert(JOB_OUTPUT_BYTES <= 64 * PART_BYTES, "a bit for each part");

static struct launch *launch_of(struct client *client)
{
	return client->work->context;
}

static struct launch_node *state_of(struct client *client,
				    const struct client_node *node)
{
	return &launch_of(client)->nodes[node->rank];
}

bool launch_met_restart(const struct launch_node *state,
			const struct client_node *node)
{
	return state->start_sent && state->start_restarts != node->restarts;
}

/* The ranks of one sort speak through rank 0. */
static bool shows_progress_of(struct client *client,
			      const struct client_node *node)
{
	return launch_of(client)->options.shows_progress && node->rank == 0;
}

/* --- requests ------------------------------------------------------------- */

static void send_start(struct client *client, struct client_node *node)
{
	struct launch *launch = launch_of(client);
	struct launch_node *state = state_of(client, node);
	struct wire_start *start = (struct wire_start *)launch->body;
	size_t host_bytes = strlen(node->host);

	start->rank = le32_store(node->rank);
	start->host_bytes = le32_store((uint32_t)host_bytes);
	memcpy(launch->body + launch->body_bytes, node->host, host_bytes);
	if (!state->start_sent) {
		state->start_ns = clock_now_ns();
		state->start_restarts = node->restarts;
	}
	state->start_sent = true;
	client_send(client, node, WIRE_START, launch->body,
		    launch->body_bytes + host_bytes, WIRE_SHORT_BYTES);
}

static void send_job_request(struct client *client, struct client_node *node,
			     enum wire_type type, size_t length_bytes)
{
	struct wire_job_request request;

	memcpy(request.job, launch_of(client)->job, WIRE_JOB_BYTES);
	client_send(client, node, type, &request, sizeof(request),
		    length_bytes);
}

static uint32_t part_bytes(const struct launch_stream *stream, unsigned part)
{
	return (uint32_t)MIN(stream->fetch_bytes - part * PART_BYTES,
			     PART_BYTES);
}

static void send_output_request(struct client *client, struct client_node *node,
				unsigned stream_index, unsigned part)
{
	struct launch_node *state = state_of(client, node);
	struct launch_stream *stream = &state->streams[stream_index];
	uint64_t first = stream->total_bytes - stream->kept_bytes;
	struct wire_output output = {
		.stream = le32_store(stream_index + 1),
		.bytes = le32_store(part_bytes(stream, part)),
		.offset = le64_store(first + part * PART_BYTES),
	};

	memcpy(output.job, launch_of(client)->job, WIRE_JOB_BYTES);
	client_send(client, node, WIRE_OUTPUT, &output, sizeof(output),
		    WIRE_LONG_BYTES);
}

/* --- the output behind the end -------------------------------------------- */

static unsigned part_count(const struct launch_stream *stream)
{
	return (unsigned)DIV_ROUND_UP(stream->fetch_bytes, PART_BYTES);
}

static struct launch_stream *stream_to_fetch(struct launch_node *state)
{
	for (unsigned i = 0; i < ARRAY_LEN(state->streams); i++) {
		if (!state->streams[i].complete)
			return &state->streams[i];
	}
	return NULL;
}

/* Asks for parts until as many are under way as may be. */
static void fetch_more(struct client *client, struct client_node *node)
{
	struct launch_node *state = state_of(client, node);
	struct launch_stream *stream = stream_to_fetch(state);
	unsigned under_way;

	if (!stream)
		return;
	under_way =
		(unsigned)__builtin_popcountll(stream->asked & ~stream->got);
	for (unsigned i = 0;
	     i < part_count(stream) && under_way < PARTS_UNDER_WAY; i++) {
		if (stream->asked >> i & 1)
			continue;
		stream->asked |= (uint64_t)1 << i;
		under_way++;
		send_output_request(client, node,
				    (unsigned)(stream - state->streams), i);
	}
}

/* Forget the parts that have not come: only what came with the end of the job
 * is left then. */
static void give_up_fetching(struct launch_stream *stream)
{
	if (stream->complete)
		return;
	stream->kept_bytes -= stream->fetch_bytes;
	memmove(stream->bytes, stream->bytes + stream->fetch_bytes,
		stream->kept_bytes);
	stream->complete = true;
}

static void take_part(struct client *client, struct client_node *node,
		      const struct command *command)
{
	struct launch_node *state = state_of(client, node);
	struct launch_stream *stream = stream_to_fetch(state);
	struct wire_output output;
	uint64_t at, part;

	memcpy(&output, command->body, sizeof(output));
	if (!stream ||
	    le32_load(output.stream) != stream - state->streams + 1u ||
	    memcmp(output.job, launch_of(client)->job, WIRE_JOB_BYTES) != 0)
		return; /* it comes late, and has been fetched already */
	at = le64_load(output.offset) -
	     (stream->total_bytes - stream->kept_bytes);
	part = at / PART_BYTES;
	if (at % PART_BYTES != 0 || part >= part_count(stream))
		return;
	if (le32_load(output.bytes) != part_bytes(stream, (unsigned)part) ||
	    command->body_bytes != sizeof(output) + le32_load(output.bytes)) {
		/* The daemon has forgotten the output. */
		give_up_fetching(stream);
	} else {
		memcpy(stream->bytes + at, command->body + sizeof(output),
		       le32_load(output.bytes));
		stream->asked |= (uint64_t)1 << part;
		stream->got |= (uint64_t)1 << part;
		if (__builtin_popcountll(stream->got) ==
		    (int)part_count(stream))
			stream->complete = true;
	}
	if (!stream_to_fetch(state)) {
		state->phase = LAUNCH_ENDED;
		client_end(client, node);
		return;
	}
	/* No other part is overdue while parts come in. */
	fetch_more(client, node);
	client_pause(client, node, CLIENT_RETRY_NS);
}

/* --- ends ----------------------------------------------------------------- */

static bool failed(const struct launch_node *state)
{
	return state->state != WIRE_JOB_EXITED || state->code != 0;
}

/* Kills the jobs that run; a job whose START was not sent never starts. */
static void cancel_all(struct launch *launch)
{
	struct client *client = launch->client;

	if (launch->cancelled)
		return;
	launch->cancelled = true;
	for (uint32_t i = 0; i < client->node_count; i++) {
		struct client_node *node = &client->nodes[i];
		struct launch_node *state = &launch->nodes[i];

		if (!node->working || state->phase >= LAUNCH_ENDED)
			continue;
		if (state->start_sent) {
			state->cancelled = true;
			state->phase = LAUNCH_CANCELLING;
			client_ask(client, node);
			continue;
		}
		state->phase = LAUNCH_ENDED;
		state->state = WIRE_JOB_CANCELLED;
		state->cancelled = true;
		client_end(client, node);
	}
}

static void end(struct client *client, struct client_node *node)
{
	struct launch *launch = launch_of(client);
	struct launch_node *state = state_of(client, node);

	state->phase = LAUNCH_ENDED;
	state->end_ns = clock_now_ns();
	launch->whole_ns = state->end_ns - client->first_ns;
	if (failed(state) && launch->options.kill_on_fail)
		cancel_all(launch);
}

/* Takes the last bytes of a stream, which came with the end of the job. */
static void take_tail(struct launch_stream *stream, uint64_t total_bytes,
		      const uint8_t *tail, uint32_t tail_bytes)
{
	stream->total_bytes = total_bytes;
	stream->kept_bytes = (uint32_t)MIN(total_bytes, JOB_OUTPUT_BYTES);
	tail_bytes = MIN(tail_bytes, stream->kept_bytes);
	stream->fetch_bytes = stream->kept_bytes - tail_bytes;
	stream->complete = stream->fetch_bytes == 0;
	memcpy(stream->bytes + stream->fetch_bytes, tail, tail_bytes);
}

static void take_end(struct client *client, struct client_node *node,
		     const struct wire_job *job, const uint8_t *tails)
{
	struct launch_node *state = state_of(client, node);
	uint32_t stdout_bytes = le32_load(job->stdout_bytes);

	state->state = (enum wire_job_state)le32_load(job->state);
	state->code = (int)le32_load(job->code);
	state->elapsed_ns = le64_load(job->elapsed_ns);
	state->user_ns = le64_load(job->user_ns);
	state->system_ns = le64_load(job->system_ns);
	state->max_rss_bytes = le64_load(job->max_rss_bytes);
	take_tail(&state->streams[0], le64_load(job->stdout_total), tails,
		  stdout_bytes);
	take_tail(&state->streams[1], le64_load(job->stderr_total),
		  tails + stdout_bytes, le32_load(job->stderr_bytes));
	client_end(client, node);
	end(client, node);
}

static void show_progress(const uint8_t *tail, uint32_t tail_bytes)
{
	char text[128];

	if (!job_progress_find(tail, tail_bytes, text, sizeof(text)))
		return;
	progress_draw(STDERR_FILENO, text);
}

static void take_running(struct client *client, struct client_node *node)
{
	struct launch *launch = launch_of(client);
	struct launch_node *state = state_of(client, node);
	uint64_t longest_ns = MIN(
		(uint64_t)launch->options.lease_ms * 1000000u / 3, ASK_NS_MAX);

	if (state->phase == LAUNCH_CANCELLING) {
		client_pause(client, node, CLIENT_RETRY_NS_MAX);
		return;
	}
	if (state->phase == LAUNCH_STARTING)
		state->ask_ns = ASK_NS;
	else
		state->ask_ns = 2 * state->ask_ns;
	state->phase = LAUNCH_RUNNING;
	state->ask_ns = MIN(state->ask_ns, longest_ns);
	client_pause(client, node, state->ask_ns);
}

static void take_job(struct client *client, struct client_node *node,
		     const struct command *command)
{
	struct launch_node *state = state_of(client, node);
	size_t tails_bytes = command->body_bytes - sizeof(struct wire_job);
	struct wire_job job;

	memcpy(&job, command->body, sizeof(job));
	if (state->phase >= LAUNCH_ENDED ||
	    memcmp(job.job, launch_of(client)->job, WIRE_JOB_BYTES) != 0 ||
	    (uint64_t)le32_load(job.stdout_bytes) +
			    le32_load(job.stderr_bytes) >
		    tails_bytes) {
		client->ignored++; /* it is of an earlier job, or came twice */
		return;
	}
	if (le32_load(job.state) == WIRE_JOB_RUNNING) {
		if (shows_progress_of(client, node))
			show_progress(command->body + sizeof(job) +
					      le32_load(job.stdout_bytes),
				      le32_load(job.stderr_bytes));
		take_running(client, node);
		return;
	}
	/* CANCEL came before START: if START comes yet, the daemon remembers
	 * and starts nothing. */
	if (le32_load(job.state) == WIRE_JOB_UNKNOWN &&
	    state->phase == LAUNCH_CANCELLING)
		job.state = le32_store(WIRE_JOB_CANCELLED);
	take_end(client, node, &job, command->body + sizeof(job));
}

/* --- the work ------------------------------------------------------------- */

static void launch_send(struct client *client, struct client_node *node)
{
	struct launch_node *state = state_of(client, node);
	struct launch_stream *stream;

	switch (state->phase) {
	case LAUNCH_STARTING:
		if (launch_met_restart(state, node))
			send_job_request(client, node, WIRE_RENEW,
					 WIRE_SHORT_BYTES);
		else
			send_start(client, node);
		break;
	case LAUNCH_RUNNING:
		/* blinkd's reply is never longer than the request.  Where
		 * progress is shown, it has room for the end of standard error.
		 */
		send_job_request(client, node, WIRE_RENEW,
				 shows_progress_of(client, node)
					 ? WIRE_LONG_BYTES
					 : WIRE_SHORT_BYTES);
		break;
	case LAUNCH_CANCELLING:
		send_job_request(client, node, WIRE_CANCEL, WIRE_SHORT_BYTES);
		break;
	case LAUNCH_FETCHING:
		/* The parts that are under way are overdue. */
		stream = stream_to_fetch(state);
		if (stream)
			stream->asked = stream->got;
		fetch_more(client, node);
		break;
	case LAUNCH_ENDED:
		break;
	}
}

static void launch_reply(struct client *client, struct client_node *node,
			 const struct command *command)
{
	if (command->type == WIRE_OUTPUT_PART)
		take_part(client, node, command);
	else
		take_job(client, node, command);
}

static void launch_lost(struct client *client, struct client_node *node)
{
	struct launch_node *state = state_of(client, node);

	if (state->phase == LAUNCH_FETCHING)
		return; /* the end is known, and the output incomplete */
	state->state = WIRE_JOB_UNKNOWN;
	end(client, node);
}

static void launch_interrupt(struct client *client)
{
	client->deadline_ns = clock_now_ns() + CANCEL_NS;
	cancel_all(launch_of(client));
}

/* --- a run ---------------------------------------------------------------- */

static size_t longest_host(const struct client *client)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < client->node_count; i++)
		bytes = MAX(bytes, strlen(client->nodes[i].host));
	return bytes;
}

/* room: the bytes of the body without those of the host. */
static int pack_arguments(struct launch *launch, size_t room,
			  struct failure *failure)
{
	const struct launch_options *options = &launch->options;

	for (uint32_t i = 0; i < options->argument_count; i++) {
		size_t bytes = strlen(options->arguments[i]) + 1;

		if (bytes > room - launch->body_bytes)
			return failure_set(failure, EXIT_USAGE, NULL, 0,
					   "the command is too long for one "
					   "datagram of %d bytes",
					   WIRE_LONG_BYTES);
		memcpy(launch->body + launch->body_bytes, options->arguments[i],
		       bytes);
		launch->body_bytes += bytes;
	}
	return 0;
}

/* Leaves the list out if there is no room for it: jobs can do without it. */
static void pack_hosts(struct launch *launch, size_t room)
{
	struct wire_start *start = (struct wire_start *)launch->body;
	ssize_t bytes = hostfold(launch->client->hosts,
				 (char *)launch->body + launch->body_bytes,
				 room - launch->body_bytes);

	bytes = MAX(bytes, 0);
	start->hosts_bytes = le32_store((uint32_t)bytes);
	launch->body_bytes += (size_t)bytes;
}

static int alloc_states(struct launch *launch)
{
	size_t stream_bytes = JOB_OUTPUT_BYTES + 1;
	uint32_t count = launch->client->node_count;

	launch->nodes = calloc(MAX(count, 1), sizeof(*launch->nodes));
	/* calloc() takes address space only: pages come with output. */
	launch->output = calloc(MAX(2 * (size_t)count, 1), stream_bytes);
	if (!launch->nodes || !launch->output)
		return -ENOMEM;
	for (uint32_t i = 0; i < 2 * count; i++)
		launch->nodes[i / 2].streams[i % 2].bytes =
			launch->output + i * stream_bytes;
	return 0;
}

int launch_init(struct launch *launch, struct client *client,
		const struct launch_options *options, struct failure *failure)
{
	struct wire_start *start = (struct wire_start *)launch->body;
	size_t room = sizeof(launch->body) - longest_host(client);

	*launch = (struct launch){ .client = client,
				   .options = *options,
				   .body_bytes = sizeof(*start) };
	if (options->argument_count > JOB_ARGUMENTS_MAX)
		return failure_set(failure, EXIT_USAGE, NULL, 0,
				   "more than %d arguments", JOB_ARGUMENTS_MAX);
	start->node_count = le32_store(client->node_count);
	start->lease_ms = le32_store(options->lease_ms);
	start->timeout_ms = le32_store(options->timeout_ms);
	start->argument_count = le32_store(options->argument_count);
	if (pack_arguments(launch, room, failure) < 0)
		return -EINVAL;
	pack_hosts(launch, room);
	if (alloc_states(launch) < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u nodes", client->node_count);
	return 0;
}

void launch_fini(struct launch *launch)
{
	free(launch->nodes);
	free(launch->output);
	launch->nodes = NULL;
	launch->output = NULL;
}

static void reset_states(struct launch *launch)
{
	for (uint32_t i = 0; i < launch->client->node_count; i++) {
		struct launch_node *state = &launch->nodes[i];
		struct launch_node fresh = { .phase = LAUNCH_STARTING };

		for (unsigned s = 0; s < ARRAY_LEN(fresh.streams); s++) {
			fresh.streams[s].bytes = state->streams[s].bytes;
			fresh.streams[s].complete = true;
		}
		*state = fresh;
	}
}

int launch_prepare(struct launch *launch)
{
	if (getrandom(launch->job, WIRE_JOB_BYTES, 0) != WIRE_JOB_BYTES)
		return -EIO;
	memcpy(launch->body, launch->job, WIRE_JOB_BYTES);
	reset_states(launch);
	launch->cancelled = false;
	launch->whole_ns = 0;
	return 0;
}

static void begin_fetching(struct launch *launch)
{
	struct client *client = launch->client;

	for (uint32_t i = 0; i < client->node_count; i++) {
		struct launch_node *state = &launch->nodes[i];

		if (client->nodes[i].lost || !stream_to_fetch(state))
			continue;
		state->phase = LAUNCH_FETCHING;
		client_begin(client, &client->nodes[i]);
	}
}

static void end_fetching(struct launch *launch)
{
	for (uint32_t i = 0; i < 2 * launch->client->node_count; i++)
		give_up_fetching(&launch->nodes[i / 2].streams[i % 2]);
}

/* Remove the line from the terminal, and lines of progress from the output that
 * is printed next. */
static void end_progress(struct launch *launch)
{
	progress_remove();
	if (!launch->options.shows_progress)
		return;
	for (uint32_t i = 0; i < launch->client->node_count; i++) {
		struct launch_stream *stream = &launch->nodes[i].streams[1];
		uint32_t kept = (uint32_t)job_progress_drop(stream->bytes,
							    stream->kept_bytes);

		stream->total_bytes -= stream->kept_bytes - kept;
		stream->kept_bytes = kept;
	}
}

int launch_run(struct launch *launch)
{
	const struct client_work work = {
		.send = launch_send,
		.reply = launch_reply,
		.lost = launch_lost,
		.interrupt = launch_interrupt,
		.context = launch,
	};
	struct client *client = launch->client;
	int ret;

	client->first_ns = 0;
	for (uint32_t i = 0; i < client->node_count; i++)
		client_begin(client, &client->nodes[i]);
	ret = client_run(client, &work);
	if (ret == 0) {
		begin_fetching(launch);
		ret = client_run(client, &work);
	}
	/* A signal has left some jobs to the daemons. */
	if (ret < 0 && client->first_ns != 0)
		launch->whole_ns = clock_now_ns() - client->first_ns;
	end_fetching(launch);
	end_progress(launch);
	client->work = NULL;
	return ret;
}
