/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that clients share and that is not there, or that they take away: the daemon brings in none
 * of it, and who keeps its threads waiting is_charged. */
#include <poll.h>
#include <sys/stat.h>
#include <rte_log.h>
#include "base/monotonic.h"
#include "control_priv.h"
#include "hca_test.h"
#include "raw_client.h"

enum { PAGE = 4096 };

static int add(const struct raw *r, int fd, uint64_t bytes, uint32_t *piece)
{
	const struct control_piece in = {.bytes = bytes};

	return raw_add_piece(r->fd, fd, &in, piece);
}

/* Files of HELD_BYTES are locked for so long by someone who punches a hole; atomic. */
static unsigned int locked_ms;
enum { HELD_BYTES = 3 * PAGE };

static void wait_for_lock(size_t bytes)
{
	if (bytes == HELD_BYTES)
		usleep(1000 * __atomic_load_n(&locked_ms, __ATOMIC_SEQ_CST));
}

int munmap(void *at, size_t bytes)
{
	wait_for_lock(bytes);
	return (int)syscall(SYS_munmap, at, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0)
		wait_for_lock(bytes);
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* Of pages that the client's file has. */
static uint64_t blocks_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Registering allocates no pages in the client's file: the daemon would be charged for them. */
TEST(memory__is_never_brought_in)
{
	const uint64_t bytes = 16 << 20;
	int fd = raw_memfd(bytes, 0);
	uint32_t piece;
	struct raw r = raw_client(f.path);

	assert_int_equal(fallocate(fd, 0, 0, 3 * PAGE), 0);
	assert_int_equal(add(&r, fd, bytes, &piece), 0);
	for (uint64_t part = PAGE; part <= bytes; part *= 16)
		assert_int_equal(raw_number(r.fd, CONTROL_DEREG_MR,
					    raw_mr(r.fd, r.pd, piece, part, RAW_IOVA)),
				 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
	assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), -ENOENT);
	assert_int_equal(blocks_of(fd), 3 * PAGE);
	close(r.fd);
	close(fd);
}

enum { SPARSE_BYTES = 2 << 20 };

/* Memory of that client none of whose pages is there, where the daemon has it. */
static uint8_t *sparse(const struct raw *r, int *fd)
{
	struct control_mr in = {
		.pd = r->pd, .access = 0xf, .count = 1, .run = {{.bytes = SPARSE_BYTES}}};
	struct v2p_port port = {.v2p = &f.hca->v2p, .counters = &f.hca->counters};
	uint32_t lkey;
	uint64_t run;
	uint8_t *at;

	*fd = raw_memfd(SPARSE_BYTES, 0);
	assert_int_equal(add(r, *fd, SPARSE_BYTES, &in.run[0].piece), 0);
	assert_int_equal(raw_reg_mr(r->fd, &in, &lkey), 0);
	assert_int_equal(v2p_request(&port, V2P_EE_DATA,
				     &(struct v2p_access){.pd = r->pd,
							  .key = lkey,
							  .length = SPARSE_BYTES,
							  .rights = ACCESS_LOCAL_WRITE},
				     &at, &run),
			 0);
	return at;
}

/* Nor does an access of the daemon's, whose client loses its connection instead; others keep theirs. */
TEST(memory__that_is_missing_stays_so)
{
	int fd[2], page = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct raw r = raw_client(f.path), bystander = raw_client(f.path);
	struct raw hasty = {.fd = raw_connect(f.path)};
	volatile uint8_t *at = sparse(&r, &fd[0]), *other = sparse(&bystander, &fd[1]);
	struct control_qp qp;

	raw_need_userfaultfd();
	assert_int_equal(memory_guard(), 0); /* cmocka has put its own there */
	assert_int_equal(pwrite(fd[1], "\1", 1, 0), 1);
	assert_int_equal(other[0], 1);
	at[PAGE] = 1;
	assert_int_equal(at[PAGE], 1);
	assert_int_equal(blocks_of(fd[0]), 0);
	assert_int_equal(raw_receive(r.fd, NULL, 0), RAW_GONE);
	/* the page of a client's doorbells is memory like any other */
	assert_int_equal(ftruncate(page, sizeof(struct client_page)), 0);
	assert_int_equal(fcntl(page, F_ADD_SEALS, RAW_SEALS), 0);
	assert_int_equal(raw_hello_with(hasty.fd, page, &hasty.hello), 0);
	qp = raw_prepare(&hasty);
	raw_create_qp(hasty.fd, &qp, NULL);
	assert_int_equal(raw_receive(hasty.fd, NULL, 0), RAW_GONE);
	assert_int_equal(blocks_of(page), 0);
	assert_int_equal(raw_number(bystander.fd, CONTROL_DESTROY_QP, bystander.qpn), 0);
	close(hasty.fd);
	close(page);
	close(r.fd);
	close(bystander.fd);
	close(fd[0]);
	close(fd[1]);
}

/* ---- waits ---- */

static bool answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 100) == 1;
}

static uint64_t waited_ms(void)
{
	struct share_info info;

	shares_info(f.shares, SHARE_waited_ms, 0, &info);
	return info.used;
}

/* Who keeps the control thread waiting as it maps his files, or unmaps them, loses no connection, but nothing of his is mapped or
 * unmapped until he has paid; others are served. */
TEST(waits__their_user_pays)
{
	enum { WAIT_MS = 200 };
	struct raw other = raw_client_as(f.path, 1000), r = raw_client_as(f.path, 1001);
	struct {
		struct control_header header;
		struct control_piece piece;
	} m = {{.type = CONTROL_ADD_PIECE, .length = sizeof(m.piece)}, {.bytes = HELD_BYTES}};
	int fd = raw_memfd(HELD_BYTES, 0);
	struct control_number out;
	uint32_t piece;

	for (int unmapping = 0; unmapping < 2; unmapping++) {
		__atomic_store_n(&locked_ms, WAIT_MS, __ATOMIC_SEQ_CST);
		if (unmapping)
			assert_int_equal(raw_number(r.fd, CONTROL_DROP_PIECE, piece), 0);
		else
			assert_int_equal(add(&r, fd, HELD_BYTES, &piece), 0);
		while (waited_ms() < WAIT_MS)
			usleep(1000);
		__atomic_store_n(&locked_ms, 0, __ATOMIC_SEQ_CST);
		raw_send(r.fd, &m, sizeof(m), &fd, 1);
		assert_false(answered(r.fd));
		assert_int_equal(add(&other, fd, HELD_BYTES, NULL), 0);
		while (waited_ms())
			share_refill_together(f.shares, SHARE_waited_ms);
		assert_int_equal(raw_receive(r.fd, &out, sizeof(out)), 0);
	}
	close(r.fd);
	close(other.fd);
	close(fd);
	assert_true(fixture_wait_clients(&f, 0));
}

/* ---- holes ---- */

/* A thread that accesses memory: its registers point there. */
struct accesses {
	const uint8_t *at[2];
	pid_t thread; /* atomic */
	bool done;    /* atomic */
};

static void *access_memory(void *arg)
{
	struct accesses *a = arg;
	const uint8_t *first = a->at[0], *second = a->at[1];

	__atomic_store_n(&a->thread, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&a->done, __ATOMIC_ACQUIRE))
		__asm__ volatile(".rept 4096\n\tnop\n\t.endr" : : "r"(first), "r"(second));
	return NULL;
}

/* A thread has waited there for so long. Returns when `loser` has lost its connection. */
static void hold_up(const uint8_t *first, const uint8_t *second, unsigned int ms, int loser)
{
	enum { ASKED_MAX = 1000, MS = 10 };
	const uint64_t before = memory_held_up_total();
	struct accesses a = {.at = {first, second}};
	unsigned int times = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, access_memory, &a), 0);
	while (!__atomic_load_n(&a.thread, __ATOMIC_ACQUIRE))
		sched_yield();
	/* Now and then its registers hold something else. */
	while (memory_held_up_total() == before && times++ < ASKED_MAX) {
		control_thread_waits(a.thread, monotonic_ns() - ms * 1000000ull);
		usleep(MS * 1000);
	}
	assert_true(memory_held_up_total() > before);
	assert_int_equal(raw_receive(loser, NULL, 0), RAW_GONE);
	__atomic_store_n(&a.done, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

static int ask_anything(int fd)
{
	struct control_port_reply port;

	return raw_call(fd, CONTROL_QUERY_PORT, NULL, 0, NULL, 0, &port, sizeof(port));
}

static int hello_as(uid_t uid)
{
	int page = raw_memfd(sizeof(struct client_page), RAW_SEALS), fd, rc;
	struct control_hello_reply hello;

	raw_be(uid);
	fd = raw_connect(f.path);
	rc = raw_hello_with(fd, page, &hello);
	raw_be(0);
	close(fd);
	close(page);
	return rc;
}

/* He is refused, and the log says why. */
static void refused_as(uid_t uid)
{
	char *text;
	size_t bytes;
	FILE *log = open_memstream(&text, &bytes);

	rte_openlog_stream(log);
	rte_log_set_global_level(RTE_LOG_WARNING);
	rte_log_set_level_pattern("softhca", RTE_LOG_WARNING);
	assert_int_equal(hello_as(uid), RAW_GONE);
	rte_log_set_global_level(RTE_LOG_ERR);
	rte_openlog_stream(NULL);
	fclose(log);
	assert_non_null(strstr(text, "holes"));
	free(text);
}

/* Who punches holes into memory while it is accessed loses his connection, in time all of them, and is kept out for as long as
 * the daemon has waited for him, many times over. Nobody else is blamed: not even whose memory begins where that ends. */
TEST(holes__their_user_pays)
{
	struct raw neighbour = raw_client_as(f.path, 1000), first = raw_client_as(f.path, 1001),
		   second = raw_client_as(f.path, 1001), third = raw_client_as(f.path, 1001),
		   quick = raw_client_as(f.path, 1002);
	int fd[4];
	const uint8_t *above = sparse(&neighbour, &fd[0]), *at = sparse(&first, &fd[1]),
		      *other = sparse(&second, &fd[2]), *back = sparse(&quick, &fd[3]);

	/* as a rule the neighbour's */
	hold_up(at + SPARSE_BYTES - 64, at + SPARSE_BYTES, 200, first.fd);
	assert_int_equal(ask_anything(neighbour.fd), 0);
	assert_int_equal(ask_anything(second.fd), 0);
	assert_int_equal(hello_as(1001), RAW_GONE);
	assert_int_equal(hello_as(1000), 0);
	assert_int_equal(pwrite(fd[0], "", 1, PAGE), 1); /* that page is there */
	hold_up(other, above + PAGE, 200, second.fd);
	assert_int_equal(raw_receive(third.fd, NULL, 0), RAW_GONE);
	assert_int_equal(ask_anything(neighbour.fd), 0);
	/* so is that one, by now: no other user's can be meant */
	assert_int_equal(pwrite(fd[3], "", 1, 0), 1);
	hold_up(back, back, 200, quick.fd);
	assert_int_equal(ask_anything(neighbour.fd), 0);
	assert_int_equal(fixture_counter(&f, COUNTER_client_held_up), 3);
	refused_as(1001);
	for (int i = 0; i < 1000; i++)
		share_refill(f.shares, SHARE_held_up_ms);
	assert_int_equal(hello_as(1001), 0);
	close(neighbour.fd);
	close(first.fd);
	close(second.fd);
	close(third.fd);
	close(quick.fd);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}
