/* job_progress.c - the line on a terminal by which a job tells how far it is */
#include "shell/job_progress.h"

/* Returns where the line begins that ends before this place. */
static size_t line_begin(const uint8_t *bytes, size_t end)
{
	while (end > 0 && bytes[end - 1] != '\r' && bytes[end - 1] != '\n')
		end--;
	return end;
}

bool job_progress_find(const uint8_t *bytes, size_t byte_count, char *text,
		       size_t text_bytes)
{
	size_t begin, length = 0;

	text[0] = '\0';
	if (byte_count == 0 || bytes[byte_count - 1] != '\r')
		return false;
	begin = line_begin(bytes, byte_count - 1);
	/* The job may be another user's program: no terminal is to obey it. */
	for (; begin < byte_count - 1 && length + 1 < text_bytes; begin++)
		text[length++] = bytes[begin] >= ' ' && bytes[begin] <= '~'
					 ? (char)bytes[begin]
					 : '?';
	text[length] = '\0';
	return true;
}

size_t job_progress_drop(uint8_t *bytes, size_t byte_count)
{
	size_t kept = 0, line = 0;

	for (size_t i = 0; i < byte_count; i++) {
		bool is_newline = i + 1 < byte_count && bytes[i + 1] == '\n';

		if (bytes[i] == '\r' && !is_newline) {
			kept = line;
			continue;
		}
		bytes[kept++] = bytes[i];
		if (bytes[i] == '\n')
			line = kept;
	}
	return kept;
}
