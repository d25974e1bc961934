# demo_lib.sh - what demo.sh and demo_cluster.sh both print
# shellcheck shell=bash

# Empty where standard output is not a terminal.
bold='' dim='' plain=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
	# shellcheck disable=SC2034 # the demos use dim
	bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi

checksum_of()
{
	sed -n 's/^Checksum: //p' "$1"
}

# bars: prints lines "label ms" as a table with bars; the longest one is 40 wide
bars()
{
	awk -v bold="$bold" -v plain="$plain" '
	{ label[NR] = $1; ms[NR] = $2; if ($2 > most) most = $2 }
	END {
		for (i = 1; i <= NR; i++) {
			bar = ""
			for (n = int(40 * ms[i] / most + 0.5); n > 0; n--)
				bar = bar "#"
			line = sprintf("    %-10s %8.2f ms  %s", label[i], ms[i],
				bar ? bold bar plain : "")
			sub(/ +$/, "", line)
			print line
		}
	}'
}
