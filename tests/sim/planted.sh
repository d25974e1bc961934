#!/bin/bash
# planted.sh - see that the search of simulated networks finds the faults that
# are put into the exchange
#
# usage: tests/sim/planted.sh [NAME...]     all faults, or these only
#
# Each fault changes one line of a copy of the source, which is built in
# build/planted/.  Prints "ok NAME: seed N: what the judge said", or "FAIL NAME"
# if SEEDS (1000) seeds did not show the fault, and ends with status 1 then.

set -u -o pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1

TREE=$PWD/build/planted
SEEDS=${SEEDS:-1000}
SEARCH=$TREE/build/dyn/tests/sim/search
failed=0

build()
{
	make --no-print-directory -C "$TREE" LIBC=glibc "${SEARCH#"$TREE"/}" \
		>"$TREE/log" 2>&1 || { tail "$TREE/log" >&2; exit 1; }
}

# plant FILE EXPRESSION: sed's, which must change one line
plant()
{
	sed -i "$2" "$TREE/$1"
	[ "$(diff "$1" "$TREE/$1" | grep -c '^>')" = 1 ] || {
		echo "planted.sh: $1: not one line is changed by $2" >&2
		exit 1
	}
}

# fault NAME FILE EXPRESSION
fault()
{
	local said

	[[ -z $wanted || " $wanted " == *" $1 "* ]] || return 0
	plant "$2" "$3"
	build
	"$SEARCH" "$SEEDS" 1 1 >"$TREE/said"
	said=$(grep -m 1 '^seed' "$TREE/said")
	if [ -n "$said" ]; then
		echo "ok $1: $said"
	else
		echo "FAIL $1: not found by $SEEDS seeds"
		failed=1
	fi
	cp "$2" "$TREE/$2"
}

wanted=$*
# What has not changed keeps its time, so that make does not build it again.
mkdir -p "$TREE"
(cd "$TREE" && find src shell -type f 2>/dev/null) | while read -r file; do
	[ -e "$file" ] || rm "$TREE/$file"
done
find Makefile NEWS src shell tests/sim -type f | while read -r file; do
	cmp -s "$file" "$TREE/$file" || cp --parents "$file" "$TREE"
done
build
UDP=src/exchange/udp

# A STATUS that is lost stays so, be it that all has come or any other.
fault no_queries $UDP/udp.c \
	's/udp_status_send(x, node, UDP_STATUS_QUERY);/(void)x;/'
# A STATUS that was asked for does not come.
fault no_answers $UDP/udp_status.c \
	's/^\t\tsend_status(x, status->source, 0, .*/\t\t(void)x;/'
# A rank that lacks an announcement is told of the next collective instead.
fault no_state_before $UDP/udp_status.c \
	's/^\treturn x->base.before.epoch > 0 &&/\treturn x == NULL \&\&/'
# The receiver keeps the last byte of a window to itself, ...
fault window_too_short $UDP/udp_receive.c \
	's/\(prefix_bytes(in) + x->window_bytes, in->byte_count\)/\1 - 1/'
# ... or grants one that the message does not have.
fault window_too_long $UDP/udp_receive.c \
	's/\(prefix_bytes(in) + x->window_bytes, in->byte_count\)/\1 + 1/'
# What a rank has acknowledged counts in the next collective, too.
fault old_acknowledgement $UDP/udp_status.c \
	's/^\t\theard->prefix_bytes = 0;/\t\t(void)heard;/'
# DATA acknowledges what has not all come.
fault early_acknowledgement $UDP/udp_send.c \
	's/arrivals_complete(&peer->in.arrivals) ? UDP_DATA_WHOLE/peer->in.open ? UDP_DATA_WHOLE/'
# DATA of an earlier collective is taken for that of this one.
fault old_data $UDP/udp_receive.c \
	's/data->epoch != (uint16_t)x->base.epoch/data->epoch == 0/'
# A query is sent once, and not again.
fault query_once src/exchange/liveness.c \
	's/last_query_ns = now_ns;/last_query_ns = now_ns + ((uint64_t)1 << 50);/'
# So is a list of gaps.
fault gaps_once $UDP/udp_receive.c \
	's/^#define GAPS_AGAIN_NS .*/#define GAPS_AGAIN_NS ((uint64_t)1 << 50)/'
# A thread goes to sleep though it has been woken while it was busy.
fault lost_wakeup $UDP/udp_mover.c \
	's/^\tif (mover->is_wanted)$/\tif (mover->is_wanted \&\& !mover->x)/'
# A thread that has lent the state asks once more whether it has; rank 0 has to
# tell of a barrier just then.
SEEDS=10000 fault asked_twice $UDP/udp_status.c \
	'/datagram_send(socket/,/retake/s/^\t\tif (lends)/\t\tif (!x->keeps_state)/'
exit $failed
