# json.sh - strings as JSON
#
#   json_string TEXT   JSON: TEXT in quotes; bytes that are not UTF-8 become
#                      U+FFFD
#   json_known TEXT    the same, but null for no text

json_string()
{
	local text=$1

	if [[ $text == *[\"\\[:cntrl:]]* ]]; then
		text=${text//\\/\\\\}
		text=${text//\"/\\\"}
		text=${text//$'\t'/\\t}
		text=${text//$'\n'/\\n}
		[[ $text != *[[:cntrl:]]* ]] || json_control "$text"
	fi
	[[ $text != *[$'\x80'-$'\xff']* ]] || json_unicode "$text"
	JSON=\"$text\"
}

# json_control TEXT: sets the caller's text.
json_control()
{
	local rest=$1 i byte escape

	text=''
	for ((i = 0; i < ${#rest}; i++)); do
		byte=${rest:i:1}
		if [[ $byte == [[:cntrl:]] ]]; then
			printf -v byte '\\u%04x' "'$byte"
		fi
		text+=$byte
	done
}

# Sequences of two to four bytes; neither surrogates nor what is too long.
readonly JSON_UTF8=$'^([\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|'$'[\xe1-\xec\xee\xef][\x80-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]|'$'\xf0[\x90-\xbf][\x80-\xbf][\x80-\xbf]|'$'[\xf1-\xf3][\x80-\xbf][\x80-\xbf][\x80-\xbf]|'$'\xf4[\x80-\x8f][\x80-\xbf][\x80-\xbf])'

# json_unicode TEXT: sets the caller's text.
json_unicode()
{
	local rest=$1 plain

	text=''
	while [[ $rest ]]; do
		plain=${rest%%[$'\x80'-$'\xff']*}
		text+=$plain
		rest=${rest#"$plain"}
		[[ $rest ]] || break
		if [[ $rest =~ $JSON_UTF8 ]]; then
			text+=${BASH_REMATCH[1]}
			rest=${rest#"${BASH_REMATCH[1]}"}
		else
			text+='\ufffd'
			rest=${rest:1}
		fi
	done
}

json_known()
{
	if [[ $1 ]]; then
		json_string "$1"
	else
		JSON=null
	fi
}
