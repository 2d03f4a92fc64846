/* SPDX-License-Identifier: BSD-3-Clause */
/* Enumerations as words, rates as numbers. */
#include <dlfcn.h>

#include "test.h"
#include <infiniband/verbs.h>

/* The machine's own libibverbs, beside the drop-in that this program is linked with. */
static void *installed;

static int open_installed(void **state)
{
	installed = dlopen(INSTALLED_VERBS, RTLD_NOW | RTLD_LOCAL);
	return 0;
}

static int close_installed(void **state)
{
	return installed ? dlclose(installed) : 0;
}

typedef const char *(*words)(int);

static void same_words(const char *function, words ours, int last)
{
	words theirs = (words)dlsym(installed, function);

	assert_non_null(theirs);
	assert_ptr_not_equal(theirs, ours);
	for (int i = -1; i <= last + 2; i++)
		assert_string_equal(ours(i), theirs(i));
}
#define SAME_WORDS(function, last) same_words(#function, (words)function, last)

TEST_WITH(words__are_those_of_the_installed_library, open_installed, close_installed)
{
	if (!installed) {
		print_message("%s\n", dlerror());
		skip();
	}
	SAME_WORDS(ibv_node_type_str, IBV_NODE_UNSPECIFIED);
	SAME_WORDS(ibv_port_state_str, IBV_PORT_ACTIVE_DEFER);
	SAME_WORDS(ibv_event_type_str, IBV_EVENT_WQ_FATAL);
	SAME_WORDS(ibv_wc_status_str, IBV_WC_TM_RNDV_INCOMPLETE);
}

static const enum ibv_rate rates[] = {
	IBV_RATE_2_5_GBPS, IBV_RATE_5_GBPS,   IBV_RATE_10_GBPS,	  IBV_RATE_20_GBPS,
	IBV_RATE_30_GBPS,  IBV_RATE_40_GBPS,  IBV_RATE_60_GBPS,	  IBV_RATE_80_GBPS,
	IBV_RATE_120_GBPS, IBV_RATE_14_GBPS,  IBV_RATE_56_GBPS,	  IBV_RATE_112_GBPS,
	IBV_RATE_168_GBPS, IBV_RATE_25_GBPS,  IBV_RATE_100_GBPS,  IBV_RATE_200_GBPS,
	IBV_RATE_300_GBPS, IBV_RATE_28_GBPS,  IBV_RATE_50_GBPS,	  IBV_RATE_400_GBPS,
	IBV_RATE_600_GBPS, IBV_RATE_800_GBPS, IBV_RATE_1200_GBPS,
};

TEST(rates__there_and_back)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		assert_true(ibv_rate_to_mult(rates[i]) > 0);
		assert_int_equal(mult_to_ibv_rate(ibv_rate_to_mult(rates[i])), rates[i]);
		assert_true(ibv_rate_to_mbps(rates[i]) > 0);
		assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps(rates[i])), rates[i]);
	}
}

/* The examples of the man pages, and codes that are none. */
TEST(rates__known_values)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_5_GBPS), 2);
	assert_int_equal(mult_to_ibv_rate(2), IBV_RATE_5_GBPS);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_5_GBPS), 5000);
	assert_int_equal(mbps_to_ibv_rate(5000), IBV_RATE_5_GBPS);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
	for (int code = -1; code <= 100; code = code == -1 ? 1 : code + 99) {
		assert_int_equal(ibv_rate_to_mult(code), -1);
		assert_int_equal(ibv_rate_to_mbps(code), -1);
	}
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(mult_to_ibv_rate(3), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}
