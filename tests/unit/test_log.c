#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "base/format.h"
#include "base/log.h"

/* stderr goes to a datagram socket: one read gives what one write wrote, so
 * that a test sees how many there were. */
static int ends[2];
static int real_stderr;
static char captured[32 * 1024];

static void capture_begin(void)
{
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
	real_stderr = dup(STDERR_FILENO);
	assert_true(real_stderr >= 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_init("prog");
}

static void restore_stderr(void)
{
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
}

/* Nothing was written. */
static void capture_nothing(void)
{
	char more;

	restore_stderr();
	assert_int_equal(read(ends[0], &more, 1), -1);
	close(ends[0]);
	close(ends[1]);
}

/* What was written, in captured: one line, by one write. */
static void capture_end(void)
{
	ssize_t length;
	char more;

	restore_stderr();
	length = read(ends[0], captured, sizeof(captured) - 1);
	assert_true(length > 0);
	captured[length] = '\0';
	assert_ptr_equal(strchr(captured, '\n'), captured + length - 1);
	assert_int_equal(read(ends[0], &more, 1), -1);
	close(ends[0]);
	close(ends[1]);
}

static void log_warnx__plain(void **state)
{
	(void)state;
	capture_begin();
	log_warnx("%s is %d", "x", 7);
	capture_end();
	assert_string_equal(captured, "prog: x is 7\n");
}

static void log_warnx__controls_are_escaped(void **state)
{
	(void)state;
	capture_begin();
	log_warnx("%s", "a\nb\x1b[2J\r\t\x1f\x7f");
	capture_end();
	assert_string_equal(captured,
			    "prog: a\\x0ab\\x1b[2J\\x0d\\x09\\x1f\\x7f\n");
}

static void log_warnx__utf8_passes(void **state)
{
	(void)state;
	capture_begin();
	log_warnx("%s", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
	capture_end();
	assert_string_equal(captured,
			    "prog: \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\n");
}

static void log_warnx__malformed_utf8_is_escaped(void **state)
{
	(void)state;
	capture_begin();
	log_warnx("%s", "\xff \xc3 \xc0\xaf \xed\xa0\x80");
	capture_end();
	assert_string_equal(captured, "prog: \\xff \\xc3 \\xc0\\xaf "
				      "\\xed\\xa0\\x80\n");
}

/* Well-formed, but a terminal may obey them: C1 (U+009B is CSI), line
 * separators, and the ones that turn the text around. */
static void log_warnx__unicode_controls_are_escaped(void **state)
{
	(void)state;
	capture_begin();
	log_warnx("%s", "\xc2\x9b\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa7");
	capture_end();
	assert_string_equal(captured, "prog: \\xc2\\x9b\\xe2\\x80\\xa8"
				      "\\xe2\\x80\\xae\\xe2\\x81\\xa7\n");
}

static void log_warn__adds_reason_and_keeps_errno(void **state)
{
	char want[200];

	(void)state;
	capture_begin();
	errno = ENOENT;
	log_warn("%s", "f");
	assert_int_equal(errno, ENOENT);
	capture_end();
	snprintf(want, sizeof(want), "prog: f: %s\n", strerror(ENOENT));
	assert_string_equal(captured, want);
}

/* stderr is closed, as after "2>&-": the write fails, in silence. */
static void log_warnx__failed_write_keeps_errno(void **state)
{
	struct failure failure = { .why = "f" };

	(void)state;
	real_stderr = dup(STDERR_FILENO);
	close(STDERR_FILENO);
	errno = ENOENT;
	log_warnx("f");
	assert_int_equal(errno, ENOENT);
	log_warn("f");
	assert_int_equal(errno, ENOENT);
	log_failure(&failure);
	assert_int_equal(errno, ENOENT);
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
}

/* Every byte four times as long: still one line, with the reason at its end,
 * and written at once. */
static void log_warn__longest_is_cut_before_the_reason(void **state)
{
	char path[3 * PATH_MAX], want[200];
	ssize_t got;

	(void)state;
	memset(path, 1, sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	capture_begin();
	errno = ENAMETOOLONG;
	log_warn("%s", path);
	capture_end();
	snprintf(want, sizeof(want), "\\x01: %s\n", strerror(ENAMETOOLONG));
	got = (ssize_t)strlen(captured) - (ssize_t)strlen(want);
	assert_true(got > PATH_MAX);
	assert_string_equal(captured + got, want);
}

static void log_failure__what_and_why(void **state)
{
	struct failure failure = { 0 };

	(void)state;
	failure_set(&failure, EXIT_FILE, "in\n.dat", 0, "%d bytes over", 3);
	capture_begin();
	assert_int_equal(log_failure(&failure), 3);
	capture_end();
	assert_string_equal(captured, "prog: in\\x0a.dat: 3 bytes over\n");
}

static void log_failure__long_name_leaves_the_reason(void **state)
{
	char path[100 * 1000];
	struct failure failure = { 0 };

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "abc", 3);
	memcpy(path + sizeof(path) - 4, "xyz", 3);
	failure_set(&failure, EXIT_FILE, path, ENAMETOOLONG, "");
	capture_begin();
	assert_int_equal(log_failure(&failure), 3);
	capture_end();
	assert_true(strlen(captured) < 300);
	assert_memory_equal(captured, "prog: abcp", 10);
	assert_non_null(strstr(captured, "p...p"));
	assert_non_null(strstr(captured, "pxyz: "));
	assert_non_null(strstr(captured, strerror(ENAMETOOLONG)));
}

static void log_failure__why_alone(void **state)
{
	struct failure failure = { 0 };

	(void)state;
	failure_set(&failure, EXIT_RESOURCES, NULL, 0, "no room");
	capture_begin();
	assert_int_equal(log_failure(&failure), 5);
	capture_end();
	assert_string_equal(captured, "prog: no room\n");
}

static void log_failure__nothing(void **state)
{
	struct failure failure = { .what = "the one before", .why = "too" };

	(void)state;
	assert_int_equal(failure_set_silent(&failure, EXIT_FILE, EPIPE),
			 -EPIPE);
	capture_begin();
	assert_int_equal(log_failure(&failure), 3);
	capture_nothing();
}

static void failure_set__returns_minus_errno(void **state)
{
	struct failure failure = { 0 };

	(void)state;
	assert_int_equal(failure_set(&failure, EXIT_FILE, "p", EACCES, ""),
			 -EACCES);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, "p");
	assert_string_equal(failure.why, strerror(EACCES));
}

static void failure_set__without_errno(void **state)
{
	struct failure failure = { 0 };

	(void)state;
	assert_int_equal(
		failure_set(&failure, EXIT_USAGE, "p", 0, "bad %c", 'x'),
		-EINVAL);
	assert_string_equal(failure.why, "bad x");
}

/* The status of a program that lacks descriptors is the same, whatever it
 * wanted one for. */
static void failure_set__out_of_resources(void **state)
{
	static const int errors[] = { EMFILE, ENFILE, ENOMEM };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct failure failure = { 0 };

		assert_int_equal(failure_set(&failure, EXIT_FILE, "p",
					     errors[i], "cannot open"),
				 -errors[i]);
		assert_int_equal(failure.status, EXIT_RESOURCES);
		failure_set(&failure, EXIT_PEER, NULL, errors[i], "");
		assert_int_equal(failure.status, EXIT_RESOURCES);
	}
}

static void failure_set__long_text_keeps_the_reason(void **state)
{
	struct failure failure = { 0 };
	char text[2 * FAILURE_WHY_BYTES], want[100];

	(void)state;
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	failure_set(&failure, EXIT_FILE, "p", EIO, "%s", text);
	assert_int_equal(strlen(failure.why), FAILURE_WHY_BYTES - 1);
	snprintf(want, sizeof(want), "y: %s", strerror(EIO));
	assert_string_equal(failure.why + strlen(failure.why) - strlen(want),
			    want);
}

/* Encode any code point, also where UTF-8 forbids it. */
static size_t encode(char *text, uint32_t code, size_t length)
{
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = length - 1; i > 0; i--) {
		text[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	text[0] = (char)(lead[length] | code);
	text[length] = '\0';
	return length;
}

/* All code points, and as overlong forms the shorter ones. */
static void format_utf8_length__every_code_point(void **state)
{
	char text[8];

	(void)state;
	for (uint32_t code = 1; code < 0x200000; code++) {
		size_t shortest = code < 0x80	   ? 1
				  : code < 0x800   ? 2
				  : code < 0x10000 ? 3
						   : 4;
		size_t valid =
			code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)
				? 0
				: shortest;

		encode(text, code, shortest);
		if (format_utf8_length(text) != valid)
			fail_msg("U+%04X", code);
		for (size_t length = shortest + 1; length <= 4; length++) {
			encode(text, code, length);
			if (format_utf8_length(text) != 0)
				fail_msg("overlong U+%04X", code);
		}
	}
}

static void format_utf8_length__cut_short(void **state)
{
	char text[8];

	(void)state;
	assert_int_equal(format_utf8_length(""), 0);
	for (size_t length = 2; length <= 4; length++) {
		static const uint32_t codes[] = { 0, 0, 0xe4, 0x20ac, 0x1f600 };

		encode(text, codes[length], length);
		for (size_t cut = 1; cut < length; cut++) {
			/* An allocation of its own, so that ASan sees a read
			 * behind the NUL. */
			char *part = strndup(text, cut);

			assert_non_null(part);
			assert_int_equal(format_utf8_length(part), 0);
			part[cut - 1] = 'a';
			free(part);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_warnx__plain),
		cmocka_unit_test(log_warnx__controls_are_escaped),
		cmocka_unit_test(log_warnx__utf8_passes),
		cmocka_unit_test(log_warnx__malformed_utf8_is_escaped),
		cmocka_unit_test(log_warnx__unicode_controls_are_escaped),
		cmocka_unit_test(log_warn__adds_reason_and_keeps_errno),
		cmocka_unit_test(log_warnx__failed_write_keeps_errno),
		cmocka_unit_test(log_warn__longest_is_cut_before_the_reason),
		cmocka_unit_test(log_failure__what_and_why),
		cmocka_unit_test(log_failure__long_name_leaves_the_reason),
		cmocka_unit_test(log_failure__why_alone),
		cmocka_unit_test(log_failure__nothing),
		cmocka_unit_test(failure_set__returns_minus_errno),
		cmocka_unit_test(failure_set__without_errno),
		cmocka_unit_test(failure_set__out_of_resources),
		cmocka_unit_test(failure_set__long_text_keeps_the_reason),
		cmocka_unit_test(format_utf8_length__every_code_point),
		cmocka_unit_test(format_utf8_length__cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
