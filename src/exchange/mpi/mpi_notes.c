/*
 * mpi_notes.c - tell where this rank stands, and hear where the others are
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/mpi/mpi_state.h"

#define TAG_NOTE 1

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

static void put_text(struct mpi_note *note, const void *text, size_t byte_count)
{
	note->head.text_bytes = byte_count;
	memcpy(note->text, text, byte_count);
}

static void put_lengths(const struct mpi *x, struct mpi_note *note,
			unsigned node)
{
	if (x->base.tells_all)
		put_text(note, x->base.lengths,
			 mpi_node_count(x) * sizeof(*x->base.lengths));
	else
		note->head.number = x->base.lengths[node];
}

static void put_failure(const struct mpi *x, struct mpi_note *note)
{
	const struct exchange_failed *failed = &x->base.failed;

	note->head.number =
		(uint64_t)failed->node << 32 | (uint32_t)failed->failure.status;
	put_text(note, failed->failure.why, strlen(failed->failure.why));
}

static void fill(const struct mpi *x, struct mpi_note *note, unsigned node,
		 enum exchange_news news)
{
	size_t bytes;
	const void *text;

	note->head = (struct mpi_note_head){
		.kind = news,
		.phase = x->base.phase,
		.epoch = x->base.epoch,
		.delay_ms = x->base.delay_ms,
	};
	if (news == EXCHANGE_HELLO) {
		note->head.number = x->chunk_bytes;
		text = exchange_hello(&x->base, mpi_own(x), &bytes);
		put_text(note, text, bytes);
	} else if (news == EXCHANGE_LENGTHS) {
		put_lengths(x, note, node);
	} else if (news == EXCHANGE_FAILED) {
		put_failure(x, note);
	} else if (news != EXCHANGE_ALIVE && node == 0) {
		text = exchange_application_payload(&x->base, mpi_own(x),
						    &bytes);
		put_text(note, text, bytes);
	}
}

static void send_to(struct mpi *x, struct mpi_sent_note *sent, unsigned node)
{
	size_t bytes = sizeof(sent->note.head) + sent->note.head.text_bytes;

	if (mpi_succeeds(x, MPI_Isend(&sent->note, (int)bytes, MPI_BYTE,
				      (int)node, TAG_NOTE, MPI_COMM_WORLD,
				      &sent->requests[sent->request_count])))
		sent->request_count++;
}

void mpi_notes_init(struct mpi *x)
{
	x->hearing = MPI_REQUEST_NULL;
}

void mpi_notes_tell(struct mpi *x, unsigned node, enum exchange_news news)
{
	unsigned count = mpi_node_count(x);
	struct mpi_sent_note *sent =
		take_note(x, node == EXCHANGE_ALL ? count : 1);

	x->has_told_failure |= news == EXCHANGE_FAILED;
	if (!sent) {
		exchange_note_failure(&x->base, mpi_own(x), EXIT_RESOURCES,
				      "memory");
		return;
	}
	fill(x, &sent->note, node, news);
	if (node != EXCHANGE_ALL)
		send_to(x, sent, node);
	/* The next rank is first: all ranks do this at about the same time. */
	for (unsigned i = 1; node == EXCHANGE_ALL && i < count; i++)
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

static void hear_hello(struct mpi *x, unsigned node,
		       const struct mpi_note *note)
{
	struct failure failure;

	exchange_hear_hello(&x->base, node, note->text, note->head.text_bytes);
	if (note->head.number != x->chunk_bytes)
		exchange_blame(&x->base, node, &failure,
			       "sends chunks of %llu bytes, but rank %u of %zu",
			       (unsigned long long)note->head.number,
			       mpi_own(x), x->chunk_bytes);
}

/* The rank that has sent it tells all ranks. */
static void hear_failure(struct mpi *x, unsigned node,
			 const struct mpi_note *note)
{
	exchange_hear_failure(&x->base, node,
			      (unsigned)(note->head.number >> 32), note->text,
			      note->head.text_bytes);
	x->has_told_failure = true;
}

/* The most bytes of text that a note may have; LENGTHS has this number exactly,
 * or none. */
static size_t text_bytes_max(const struct mpi *x, uint32_t kind)
{
	switch (kind) {
	case EXCHANGE_HELLO:
		return EXCHANGE_HELLO_BYTES_MAX;
	case EXCHANGE_LENGTHS:
		return mpi_node_count(x) <= EXCHANGE_KNOWN_MAX
			       ? mpi_node_count(x) * sizeof(uint64_t)
			       : 0;
	case EXCHANGE_PHASE:
	case EXCHANGE_TOLD:
		return EXCHANGE_APPLICATION_BYTES_MAX;
	case EXCHANGE_FAILED:
		return FAILURE_WHY_BYTES;
	default:
		return 0;
	}
}

static bool is_good(const struct mpi *x, const struct mpi_note_head *head,
		    size_t byte_count)
{
	return byte_count >= sizeof(*head) &&
	       byte_count - sizeof(*head) == head->text_bytes &&
	       head->text_bytes <= text_bytes_max(x, head->kind) &&
	       head->delay_ms <= EXCHANGE_DELAY_MS_MAX;
}

/* False: there are others than the node may tell now. */
static bool hear_lengths(struct mpi *x, unsigned node,
			 const struct mpi_note *note)
{
	const struct mpi_note_head *head = &note->head;

	if (head->text_bytes == 0)
		return exchange_hear_lengths(&x->base, node, head->epoch,
					     (const uint8_t *)&head->number, 1);
	return head->text_bytes == text_bytes_max(x, head->kind) &&
	       exchange_hear_lengths(&x->base, node, head->epoch, note->text,
				     mpi_node_count(x));
}

/* False: it cannot be. */
static bool take_note_from(struct mpi *x, unsigned node, size_t byte_count)
{
	const struct mpi_note *note = &x->heard;

	if (!is_good(x, &note->head, byte_count))
		return false;
	exchange_hear(&x->base, node, note->head.delay_ms, clock_now_ns());
	switch (note->head.kind) {
	case EXCHANGE_HELLO:
		hear_hello(x, node, note);
		break;
	case EXCHANGE_LENGTHS:
		return hear_lengths(x, node, note);
	case EXCHANGE_PHASE:
		exchange_hear_phase(&x->base, node, note->head.phase);
		/* fall through */
	case EXCHANGE_TOLD:
		exchange_hear_payload(&x->base, node, note->text,
				      note->head.text_bytes);
		break;
	case EXCHANGE_FAILED:
		hear_failure(x, node, note);
		break;
	default:
		break;
	}
	return true;
}

static void hear(struct mpi *x, unsigned node, size_t byte_count)
{
	struct failure failure;

	if (!take_note_from(x, node, byte_count))
		exchange_blame(&x->base, node, &failure,
			       "sent an impossible message: " EXCHANGE_FAULTY);
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
	uint64_t end_ns = clock_now_ns() + MPI_CANCEL_NS;
	bool ended;

	if (x->hearing != MPI_REQUEST_NULL)
		MPI_Cancel(&x->hearing);
	mpi_await(1, &x->hearing, end_ns, &ended);
	for (struct mpi_sent_note *sent = x->notes; ended && sent;
	     sent = sent->next)
		mpi_await((int)sent->request_count, sent->requests, end_ns,
			  &ended);
	if (!ended)
		return false;
	while (x->notes) {
		struct mpi_sent_note *next = x->notes->next;

		free(x->notes);
		x->notes = next;
	}
	return true;
}
