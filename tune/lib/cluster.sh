# cluster.sh - a verb on many nodes, by blinksh
#
# apply works in two phases.  First it asks all nodes whether they could apply the
# profile (prepare); then it applies it on all nodes.  If one node fails, all nodes
# revert, since a setting that only some nodes have, such as the MTU, is worse than
# none.  Other verbs simply run on all nodes, but for hold (cluster_hold).
#
# blinktune must have the same path on the nodes as here.  blinkd must allow it and
# run as a user with the right to change these settings.  %h and %r in --root and
# --state stand for the node's name and rank.
#
#   cluster_run VERB ARGUMENT...   NODE_HOST NODE_STATUS NODE_STATE NODE_OUT
#                                  NODE_ERR, an element for each node
#   cluster_words VERB ARGUMENT... WORDS: the command that cluster_run runs, and
#                                  OPTIONS, those of the nodes' blinktune

cluster_find_blinksh()
{
	local folder=${BASH_SOURCE[-1]%/*}

	BLINKSH=$folder/blinksh
	[[ ! -x $BLINKSH ]] || return 0
	BLINKSH=$TUNE/../bin/blinksh
	[[ ! -x $BLINKSH ]] || return 0
	BLINKSH=$(type -P blinksh) || die '-w: there is no blinksh'
}

cluster_words()
{
	OPTIONS=(--yes)
	[[ ! $STATE ]] || OPTIONS+=(--state "$STATE")
	[[ ! $ROOT ]] || OPTIONS+=(--root "$ROOT")
	[[ ! $JSON_WANTED ]] || OPTIONS+=(--json)
	[[ ! $QUIET ]] || OPTIONS+=(-q)
	[[ ! $VERBOSE ]] || OPTIONS+=(-v)
	WORDS=("$BLINKSH" -w "$HOSTS" --json --keep-going --
		"$TUNE/blinktune" "${OPTIONS[@]}" "$@")
}

cluster_run()
{
	local out

	cluster_words "$@"
	# The status of blinksh is the worst of the nodes'; its document has each.
	out=$("${WORDS[@]}") || true
	cluster_parse <<<"$out"
}

# cluster_parse: the document on standard input
cluster_parse()
{
	local line

	NODE_HOST=() NODE_STATUS=() NODE_STATE=() NODE_OUT=() NODE_ERR=()
	while IFS= read -r line; do
		cluster_parse_node "$line"
	done
	[[ ${#NODE_HOST[@]} != 0 ]] || exit "$STATUS_NODE"
}

# cluster_parse_node LINE: blinksh's document has a node on each line.
cluster_parse_node()
{
	local pattern='^ *\{"host": "(([^"\\]|\\.)*)", "rank": [0-9]+, '
	pattern+='"state": "([^"]*)", "status": ([0-9]+),'

	[[ $1 =~ $pattern ]] || return 0
	NODE_HOST+=("${BASH_REMATCH[1]}") NODE_STATE+=("${BASH_REMATCH[3]}")
	NODE_STATUS+=("${BASH_REMATCH[4]}")
	cluster_string "$1" stdout
	NODE_OUT+=("$STRING")
	cluster_string "$1" stderr
	NODE_ERR+=("$STRING")
}

# cluster_string LINE NAME: STRING, that member's text
cluster_string()
{
	local pattern="\"$2\": \"(([^\"\\\\]|\\\\.)*)\""

	STRING=
	[[ $1 =~ $pattern ]] || return 0
	STRING=${BASH_REMATCH[1]//\\\"/\"}
	STRING=${STRING//\\u00/\\x}
	printf -v STRING '%b' "$STRING"
}

cluster_failed()
{
	local status

	for status in "${NODE_STATUS[@]}"; do
		[[ $status == 0 ]] || return 0
	done
	return 1
}

# --- output ------------------------------------------------------------------

# Prints the output of the nodes under their names; equal outputs once.
cluster_print()
{
	local i key order=()
	local -A hosts=()

	for i in "${!NODE_HOST[@]}"; do
		key=${NODE_STATUS[i]}$'\x1f'${NODE_OUT[i]}$'\x1f'${NODE_ERR[i]}
		[[ ${hosts[$key]+there} ]] || order+=("$i")
		hosts[$key]+=" ${NODE_HOST[i]}"
	done
	for i in "${order[@]}"; do
		key=${NODE_STATUS[i]}$'\x1f'${NODE_OUT[i]}$'\x1f'${NODE_ERR[i]}
		# shellcheck disable=SC2086 # words are meant
		name_ranges ${hosts[$key]}
		cluster_print_node "$NAME_RANGES" "$i"
	done
}

# cluster_print_node HOSTS I
cluster_print_node()
{
	local how=${NODE_STATE[$2]}

	[[ $how != exited ]] || how="status ${NODE_STATUS[$2]}"
	[[ ! ${NODE_ERR[$2]} ]] || printf '%s' "${NODE_ERR[$2]}" >&2 ||
		:
	print '%s\n' "$1: $how"
	[[ ! ${NODE_OUT[$2]} ]] || print '%s\n' "${NODE_OUT[$2]%$'\n'}"
}

# cluster_report STATUS
cluster_report()
{
	local i text='' comma=''

	if [[ ! $JSON_WANTED ]]; then
		cluster_print
		return
	fi
	report_json_head nodes "$1"
	print '{%s, "nodes": [' "$HEAD"
	for i in "${!NODE_HOST[@]}"; do
		report_fields host "${NODE_HOST[i]}" state "${NODE_STATE[i]}"
		text+=", \"status\": ${NODE_STATUS[i]}"
		report_fields stderr "${NODE_ERR[i]}"
		# The node's own document stands as it is.
		[[ ${NODE_OUT[i]} == '{'* ]] || NODE_OUT[i]=null
		text+=", \"document\": ${NODE_OUT[i]%$'\n'}"
		report_item
	done
	print '\n]}\n'
}

# --- verbs -------------------------------------------------------------------

# cluster_worst: sets WORST, the status that all failed nodes have in common, or
# else 6
cluster_worst()
{
	local status

	WORST=0
	for status in "${NODE_STATUS[@]}"; do
		if [[ $status == 0 || $status == "$WORST" ]]; then
			continue
		elif [[ $WORST == 0 ]] && ((status <= STATUS_INCOMPLETE)); then
			WORST=$status
		else
			WORST=$STATUS_NODE
			return
		fi
	done
}

cluster_apply()
{
	local profile

	for profile in "$@"; do
		[[ $profile == -* ]] || break
	done
	[[ $profile ]] || misuse 'apply: takes one PROFILE; see blinktune list'
	cluster_run prepare "$profile"
	if cluster_failed; then
		say 'not all nodes can: nothing is changed anywhere'
		cluster_report "$STATUS_NODE"
		return "$STATUS_NODE"
	fi
	cluster_run apply "$@"
	if ! cluster_failed; then
		cluster_report 0
		return 0
	fi
	cluster_report "$STATUS_NODE"
	say 'not all nodes have: all are set back'
	cluster_revert
	return "$STATUS_NODE"
}

# Reverts on all nodes after an apply, and names those on which that failed.
cluster_revert()
{
	local i

	cluster_run revert
	for i in "${!NODE_HOST[@]}"; do
		[[ ${NODE_STATUS[i]} == 0 ]] || complain "${NODE_HOST[i]}:" \
			"not set back: ${NODE_STATE[i]}, status ${NODE_STATUS[i]}"
	done
}

# --- hold --------------------------------------------------------------------
#
# One job, "run PROFILE -- blinktune held TOKEN" on each node, holds the profile.  Its
# lease is ours: if we are killed, or a node hears no more of us, the daemons end
# it, and it reverts.  The job await tells when all nodes hold, and release lets
# them revert in their own time.

cluster_hold()
{
	local token=$$-${EPOCHREALTIME/./} job='' said file ended='' probe

	one_profile hold "$@"
	probe=$(PATH=${BLINKSH%/*}:$TUNE/../bin:$PATH type -P blinkprobe) ||
		die '-w: there is no blinkprobe'
	[[ ! $JSON_WANTED ]] || misuse '-w: hold prints no JSON'
	cluster_run prepare "$1"
	if cluster_failed; then
		cluster_report "$STATUS_NODE" >&2
		return "$STATUS_NODE"
	fi
	file=$(mktemp)
	exec {said}<>"$file"
	rm "$file"
	trap 'SIGNALLED=129' HUP
	trap 'SIGNALLED=130' INT
	trap 'SIGNALLED=143' TERM
	SIGNALLED=''
	cluster_begin_job "$1"
	cluster_words await "$token"
	cluster_wait_beside "${WORDS[@]}" >/dev/null
	if [[ ! $ended && ! $SIGNALLED ]]; then
		print 'held\n'
		# A reader that got no "held" would wait for it without end.
		[[ $PRINT_WHY ]] || cluster_wait_beside cat >/dev/null
	fi
	cluster_end_job
}

# cluster_begin_job PROFILE: the caller's job
cluster_begin_job()
{
	cluster_words held "$token"
	cluster_words run "$1" -- "${WORDS[@]:6}"
	WORDS[4]=--kill-on-fail
	# blinkprobe ends it when we are gone.
	"$probe" run --parent=$$ --stdout="/proc/$$/fd/$said" -- \
		"${WORDS[@]}" </dev/null >/dev/null &
	job=$!
}

# cluster_wait_beside COMMAND...: until it has ended, or a signal comes, or the
# job ends, and then sets the caller's ended.  A command that fails ends the job.
cluster_wait_beside()
{
	local child first='' status=0

	"$@" <&0 &
	child=$!
	wait -n -p first "$child" "$job" || status=$?
	kill "$child" 2>/dev/null || true
	if [[ ${first-} == "$job" ]]; then
		ended=1
	elif [[ ${first-} == "$child" && $status != 0 ]]; then
		ended=1
		kill "$job" 2>/dev/null || true
	fi
}

cluster_end_job()
{
	[[ $ended ]] || cluster_run release "$token"
	while kill -0 "$job" 2>/dev/null; do
		wait "$job" || true
	done
	cluster_parse <"/proc/$$/fd/$said"
	cluster_worst
	[[ ! $ended || $WORST != 0 ]] || WORST=$STATUS_NODE
	[[ $WORST == 0 ]] || cluster_report "$WORST" >&2
	[[ $WORST != 0 || ! $SIGNALLED ]] || return "$SIGNALLED"
	return "$WORST"
}

cluster_main()
{
	# A path must name the same file on the nodes, so it is made absolute; the words
	# after it belong to the verb.
	if [[ ${1:-} == */* && $1 != /* && $1 != *=* ]]; then
		set -- "$PWD/$1" "${@:2}"
	fi
	cluster_find_blinksh
	case $VERB in
	apply)
		cluster_apply "$@"
		;;
	hold) cluster_hold "$@" ;;
	plan | verify | status | revert | confirm | run | prepare)
		cluster_run "$VERB" "$@"
		cluster_worst
		cluster_report "$WORST"
		return "$WORST"
		;;
	*) misuse "-w: $VERB is not for many nodes" ;;
	esac
}
