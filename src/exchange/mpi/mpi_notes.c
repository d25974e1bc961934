/*
 * mpi_notes.c - tell where this rank stands, and hear where the others are
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "exchange/mpi/mpi_state.h"

#define TAG_NOTE 1
/* A request that was cancelled ends at once, unless its message is under way
 * from a rank that is gone. */
#define CANCEL_NS ((uint64_t)200000000)
#define CANCEL_PAUSE_NS 100000

static_assert(MPI_NOTE_TEXT_MAX >= EXCHANGE_HELLO_BYTES_MAX &&
		      MPI_NOTE_TEXT_MAX >= EXCHANGE_APPLICATION_BYTES_MAX &&
		      MPI_NOTE_TEXT_MAX >= FAILURE_WHY_BYTES,
	      "all texts fit");
static_assert(offsetof(struct mpi_note, text) == sizeof(struct mpi_note_head),
	      "the text follows the head");

/* --- sending ----------------------------------------------------------------
 */

static bool is_sent(struct mpi *x, struct mpi_sent_note *sent)
{
	int flag = 0;

	return mpi_succeeds(x, MPI_Testall((int)sent->request_count,
					   sent->requests, &flag,
					   MPI_STATUSES_IGNORE)) &&
	       flag;
}

/* One that has been sent, or a new one, for so many ranks; NULL: there is no
 * memory. */
static struct mpi_sent_note *take_note(struct mpi *x, unsigned rank_count)
{
	struct mpi_sent_note *sent = x->notes;

	while (sent && (sent->requests_max < rank_count || !is_sent(x, sent)))
		sent = sent->next;
	if (!sent) {
		sent = malloc(sizeof(*sent) +
			      rank_count * sizeof(sent->requests[0]));
		if (!sent)
			return NULL;
		sent->requests_max = rank_count;
		sent->next = x->notes;
		x->notes = sent;
	}
	sent->request_count = 0;
	return sent;
}

static struct mpi_sent_note *make_note(struct mpi *x, unsigned rank_count,
				       enum mpi_note_kind kind, uint64_t number,
				       const void *text, size_t text_bytes)
{
	struct mpi_sent_note *sent = take_note(x, rank_count);

	if (!sent) {
		exchange_note_failure(&x->base, mpi_own(x), EXIT_RESOURCES,
				      "memory");
		return NULL;
	}
	sent->note.head = (struct mpi_note_head){
		.kind = kind,
		.phase = x->phase_wanted,
		.epoch = x->epoch,
		.delay_ms = x->delay_ms,
		.number = number,
		.text_bytes = text_bytes,
	};
	if (text_bytes > 0)
		memcpy(sent->note.text, text, text_bytes);
	return sent;
}

static void send_to(struct mpi *x, struct mpi_sent_note *sent, unsigned node)
{
	size_t bytes = sizeof(sent->note.head) + sent->note.head.text_bytes;

	if (mpi_succeeds(x, MPI_Isend(&sent->note, (int)bytes, MPI_BYTE,
				      (int)node, TAG_NOTE, MPI_COMM_WORLD,
				      &sent->requests[sent->request_count])))
		sent->request_count++;
}

void mpi_notes_send(struct mpi *x, unsigned node, enum mpi_note_kind kind,
		    uint64_t number, const void *text, size_t text_bytes)
{
	struct mpi_sent_note *sent =
		make_note(x, 1, kind, number, text, text_bytes);

	if (sent)
		send_to(x, sent, node);
}

/* The next rank first: all ranks do this at about the same time. */
void mpi_notes_send_all(struct mpi *x, enum mpi_note_kind kind, uint64_t number,
			const void *text, size_t text_bytes)
{
	unsigned count = mpi_node_count(x);
	struct mpi_sent_note *sent =
		make_note(x, count, kind, number, text, text_bytes);

	for (unsigned i = 1; sent && i < count; i++)
		send_to(x, sent, (mpi_own(x) + i) % count);
}

bool mpi_notes_are_sent(struct mpi *x)
{
	bool all = true;

	for (struct mpi_sent_note *sent = x->notes; sent; sent = sent->next)
		all &= is_sent(x, sent);
	return all;
}

/* --- hearing ----------------------------------------------------------------
 */

static void copy_text(const struct mpi_note *note, uint8_t *target,
		      size_t *byte_count)
{
	*byte_count = note->head.text_bytes;
	memcpy(target, note->text, note->head.text_bytes);
}

static void hear_hello(struct mpi *x, unsigned node,
		       const struct mpi_note *note)
{
	struct mpi_peer *peer = &x->peers[node];
	struct failure failure;

	copy_text(note, peer->hello, &peer->hello_bytes);
	peer->is_here = true;
	if (note->head.number != x->chunk_bytes)
		exchange_blame(&x->base, node, &failure,
			       "sends chunks of %llu bytes, rank %u of %zu",
			       (unsigned long long)note->head.number,
			       mpi_own(x), x->chunk_bytes);
}

static void hear_lengths(struct mpi *x, unsigned node,
			 const struct mpi_note *note)
{
	struct mpi_announced *announced =
		&x->peers[node].announced[note->head.epoch % MPI_ANNOUNCED];

	announced->epoch = note->head.epoch;
	announced->byte_count = note->head.number;
	announced->has_all = note->head.text_bytes > 0;
	if (!announced->has_all)
		return;
	memcpy(announced->bytes, note->text, note->head.text_bytes);
	announced->byte_count = announced->bytes[mpi_own(x)];
}

static void hear_failure(struct mpi *x, unsigned node,
			 const struct mpi_note *note)
{
	unsigned failed = (unsigned)(note->head.number >> 32);
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why), "%.*s", (int)note->head.text_bytes,
		 (const char *)note->text);
	exchange_note_failure(&x->base,
			      failed < mpi_node_count(x) ? failed : node,
			      EXIT_PEER, why);
	/* The rank that has sent it tells all ranks. */
	x->has_told_failure = true;
}

/* The most bytes of text that a note may have; LENGTHS has this number exactly,
 * or none. */
static size_t text_bytes_max(const struct mpi *x, uint32_t kind)
{
	switch (kind) {
	case MPI_NOTE_HELLO:
		return EXCHANGE_HELLO_BYTES_MAX;
	case MPI_NOTE_LENGTHS:
		return mpi_node_count(x) <= EXCHANGE_KNOWN_MAX
			       ? mpi_node_count(x) * sizeof(uint64_t)
			       : 0;
	case MPI_NOTE_PHASE:
	case MPI_NOTE_TOLD:
		return EXCHANGE_APPLICATION_BYTES_MAX;
	case MPI_NOTE_FAILED:
		return FAILURE_WHY_BYTES;
	default:
		return 0;
	}
}

/* Of our epoch or one that a rank may be ahead, and told once: what follows
 * from the first ones may be under way. */
static bool lengths_are_good(const struct mpi *x, unsigned node,
			     const struct mpi_note_head *head)
{
	const struct mpi_announced *announced = x->peers[node].announced;

	return (head->text_bytes == 0 ||
		head->text_bytes == text_bytes_max(x, head->kind)) &&
	       head->epoch >= MAX(1, x->epoch) &&
	       head->epoch <= x->epoch + EXCHANGE_LEAD_MAX &&
	       announced[head->epoch % MPI_ANNOUNCED].epoch != head->epoch;
}

static bool is_good(const struct mpi *x, unsigned node,
		    const struct mpi_note *note, size_t byte_count)
{
	const struct mpi_note_head *head = &note->head;

	if (byte_count < sizeof(*head) ||
	    byte_count - sizeof(*head) != head->text_bytes ||
	    head->text_bytes > text_bytes_max(x, head->kind) ||
	    head->delay_ms > EXCHANGE_DELAY_MS_MAX)
		return false;
	return head->kind != MPI_NOTE_LENGTHS ||
	       lengths_are_good(x, node, head);
}

static void hear(struct mpi *x, unsigned node, size_t byte_count)
{
	const struct mpi_note *note = &x->heard;
	struct mpi_peer *peer = &x->peers[node];
	struct failure failure;

	if (!is_good(x, node, note, byte_count)) {
		exchange_blame(&x->base, node, &failure,
			       "sends a message that cannot be");
		return;
	}
	peer->heard_ns = clock_now_ns();
	peer->quiet_until_ns =
		peer->heard_ns + note->head.delay_ms * (uint64_t)1000000;
	switch (note->head.kind) {
	case MPI_NOTE_HELLO:
		hear_hello(x, node, note);
		break;
	case MPI_NOTE_LENGTHS:
		hear_lengths(x, node, note);
		break;
	case MPI_NOTE_PHASE:
		peer->phase = note->head.phase;
		copy_text(note, peer->application, &peer->application_bytes);
		break;
	case MPI_NOTE_TOLD:
		copy_text(note, peer->application, &peer->application_bytes);
		break;
	case MPI_NOTE_FAILED:
		hear_failure(x, node, note);
		break;
	default:
		break;
	}
}

static bool listen_on(struct mpi *x)
{
	return mpi_succeeds(x, MPI_Irecv(&x->heard, sizeof(x->heard), MPI_BYTE,
					 MPI_ANY_SOURCE, TAG_NOTE,
					 MPI_COMM_WORLD, &x->hearing));
}

bool mpi_notes_receive(struct mpi *x)
{
	bool any = false;

	for (;;) {
		MPI_Status status;
		int flag = 0, byte_count = 0;

		if (x->hearing == MPI_REQUEST_NULL && !listen_on(x))
			return any;
		if (!mpi_succeeds(x, MPI_Test(&x->hearing, &flag, &status)) ||
		    !flag)
			return any;
		MPI_Get_count(&status, MPI_BYTE, &byte_count);
		hear(x, (unsigned)status.MPI_SOURCE, (size_t)byte_count);
		any = true;
	}
}

/* --- closing ----------------------------------------------------------------
 */

bool mpi_notes_close(struct mpi *x)
{
	const struct timespec pause = { .tv_nsec = CANCEL_PAUSE_NS };
	uint64_t end_ns = clock_now_ns() + CANCEL_NS;
	int flag = x->hearing == MPI_REQUEST_NULL;

	if (!flag)
		MPI_Cancel(&x->hearing);
	while (!flag || !mpi_notes_are_sent(x)) {
		if (!flag && MPI_Test(&x->hearing, &flag, MPI_STATUS_IGNORE) !=
				     MPI_SUCCESS)
			return false;
		if (clock_now_ns() > end_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	while (x->notes) {
		struct mpi_sent_note *next = x->notes->next;

		free(x->notes);
		x->notes = next;
	}
	return true;
}
