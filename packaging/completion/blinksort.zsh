#compdef @PROGRAMS@
# blinksort.zsh - completion of all programs of blinksort, for zsh

local line word
local -a ends end_texts open open_texts

for line in "${(@f)$(@OURS@/completion/candidates \
	${(Q)words[1]} "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")}"; do
	word=${line%%$'\t'*}
	case $line in
	/files | /folders)
		[[ $PREFIX != --*=* ]] || compset -P 1 '*='
		if [[ $line = /files ]]; then _files; else _files -/; fi ;;
	/commands) _command_names ;;
	*[=:,]$'\t'* | *[=:,]) open+=("$word") open_texts+=("${line/$'\t'/  -- }") ;;
	?*) ends+=("$word") end_texts+=("${line/$'\t'/  -- }") ;;
	esac
done
compadd -l -d end_texts -a ends
compadd -l -S '' -d open_texts -a open
