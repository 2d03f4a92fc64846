/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules that stand over the control socket: who may, which, and until when. */
#include "hca_test.h"
#include "pipeline/stepping.h"
#include "raw_client.h"

static struct control_change_reply out;

static int ask_for(int fd, enum control_type type, const struct control_pause *in)
{
	int rc = raw_ask(fd, type, in, &out);

	return rc ? rc : out.error;
}

static const struct control_pause ee = {.version = CONTROL_VERSION, .steps = 1, .name = "ee"};

static bool stands(enum module_id id)
{
	const struct engine *e = f.hca->engines;
	bool set = __atomic_load_n(&e->stepping->standing, __ATOMIC_ACQUIRE) & 1u << id;
	uint32_t watched = __atomic_load_n(&e->watched, __ATOMIC_ACQUIRE);

	assert_int_equal(!!(watched & WATCH_STEPPED), set);
	assert_int_equal(!!(watched & WATCH_TIME_STANDS), set);
	return set;
}

static int start_debug(void **state)
{
	int rc = start(state);

	__atomic_store_n(&f.may_stop, true, __ATOMIC_RELAXED);
	return rc;
}

TEST_STATE(pause__lasts_as_long_as_its_connection, start_debug, stop, NULL)
{
	int fd = raw_connect(f.path), other = raw_connect(f.path);

	assert_int_equal(ask_for(other, CONTROL_STEP, &ee), -EINVAL); /* it runs */
	assert_int_equal(ask_for(fd, CONTROL_PAUSE, &ee), 0);
	assert_string_equal(out.text, "hca0: ee paused");
	assert_true(stands(MODULE_EE));
	assert_int_equal(ask_for(other, CONTROL_PAUSE, &ee), -EBUSY);
	close(fd);
	assert_true(fixture_wait_clients(&f, 1));
	assert_false(stands(MODULE_EE));
	close(other);
}

TEST_STATE(pause__is_kept_or_resumed_by_others, start_debug, stop, NULL)
{
	struct control_pause keep = ee;
	int fd = raw_connect(f.path), other = raw_connect(f.path);

	assert_int_equal(ask_for(fd, CONTROL_PAUSE, &ee), 0);
	assert_int_equal(ask_for(other, CONTROL_RESUME, &ee), 0);
	assert_string_equal(out.text, "hca0: ee resumed");
	assert_false(stands(MODULE_EE));
	assert_true(fixture_wait_clients(&f, 1)); /* the first one has nothing left */
	keep.keep = 1;
	assert_int_equal(ask_for(other, CONTROL_PAUSE, &keep), 0);
	close(other);
	assert_true(fixture_wait_clients(&f, 0));
	assert_true(stands(MODULE_EE));
	close(fd);
}

TEST_STATE(pause__is_taken_over, start_debug, stop, NULL)
{
	struct control_pause keep = ee;
	int fd = raw_connect(f.path), other = raw_connect(f.path);

	keep.keep = 1;
	assert_int_equal(ask_for(fd, CONTROL_PAUSE, &ee), 0);
	assert_int_equal(ask_for(other, CONTROL_PAUSE, &keep), 0);
	assert_true(fixture_wait_clients(&f, 1)); /* the first one waits for nothing any more */
	assert_true(stands(MODULE_EE));
	close(fd);
	close(other);
}

TEST_STATE(pause__refused, start_debug, stop, NULL)
{
	static const struct {
		const char *why;
		enum control_type type;
		int answer;
		struct control_pause in;
	} rows[] = {
		{"version", CONTROL_PAUSE, -EPROTO, {CONTROL_VERSION + 1, .name = "ee"}},
		{"no such HCA", CONTROL_PAUSE, -ENODEV, {CONTROL_VERSION, .device = "hca1"}},
		{"no such module", CONTROL_PAUSE, -EINVAL, {CONTROL_VERSION, .name = "eee"}},
		{"one that is called", CONTROL_PAUSE, -EINVAL, {CONTROL_VERSION, .name = "sem"}},
		{"no steps", CONTROL_STEP, -EINVAL, {CONTROL_VERSION, .name = "ee"}},
		{"too many steps",
		 CONTROL_STEP,
		 -EINVAL,
		 {CONTROL_VERSION, .steps = CONTROL_STEPS_MAX + 1}},
	};
	struct control_pause endless = ee;
	int fd = raw_connect(f.path);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (ask_for(fd, rows[i].type, &rows[i].in) != rows[i].answer)
			fail_msg("%s", rows[i].why);
	memset(endless.name, 'e', sizeof(endless.name));
	assert_int_equal(ask_for(fd, CONTROL_PAUSE, &endless), -EINVAL);
	assert_false(stands(MODULE_EE));
	close(fd);
}

TEST(pause__where_it_is_allowed)
{
	int fd = raw_connect(f.path);

	assert_int_equal(ask_for(fd, CONTROL_PAUSE, &ee), -EACCES);
	assert_int_equal(ask_for(fd, CONTROL_RESUME, &ee), 0);
	close(fd);
}
