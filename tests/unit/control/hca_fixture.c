/* SPDX-License-Identifier: BSD-3-Clause */
/* See hca_fixture.h. The threads are the test's own; the link copies each frame, as a wire does. */
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include "../descriptors.h"
#include "base/close_later.h"
#include "world_eal.h"
#include "hca_fixture.h"
#include "link/link_port.h"
#include "pipeline/message.h"

#define DIE_IF(x)                                                                                  \
	do {                                                                                       \
		if (x) {                                                                           \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { WIRE_DEPTH = 1024, POLL_SPINS_IDLE = 64 };
static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};

static struct wire {
	struct link_port port;
	struct rte_mempool *pool;
	struct rte_mbuf *frame[WIRE_DEPTH];
	unsigned int head, tail;
} wire;

static struct rte_mempool *packets, *descriptors;
static pthread_t poller, server;
static bool polling, serving;			      /* atomic */
static uint64_t polls;				      /* atomic */
static uint64_t cheapest_turn_ns = UINT64_MAX, turns; /* atomic */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static unsigned int clients_now; /* atomic: as the serving thread saw it last */
static unsigned int engines;	 /* ended so far */
static bool has_poller, has_server;
int (*fixture_cm_adopt)(void *ctx, int fd);
int fixture_node = SOCKET_ID_ANY;
unsigned int fixture_engines = 1;
unsigned int fixture_hello_ms;

static uint16_t wire_rx(struct link_port *port, uint16_t queue, struct rte_mbuf **frames,
			uint16_t n)
{
	uint16_t got = 0;

	while (got < n && wire.head != wire.tail)
		frames[got++] = wire.frame[wire.head++ % WIRE_DEPTH];
	return got;
}

static uint16_t wire_tx(struct link_port *port, uint16_t queue, struct rte_mbuf **frames,
			uint16_t n)
{
	uint16_t done = 0;

	while (done < n && wire.tail - wire.head < WIRE_DEPTH) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(frames[done], wire.pool, 0, UINT32_MAX);

		if (!copy)
			break;
		wire.frame[wire.tail++ % WIRE_DEPTH] = copy;
		rte_pktmbuf_free(frames[done++]);
	}
	return done;
}

static void fixture_eal(void)
{
	DIE_IF(world_eal(NULL));
	packets = rte_pktmbuf_pool_create("packets", 4095, 0, MESSAGE_PRIV_BYTES, PACKET_ROOM_BYTES,
					  SOCKET_ID_ANY);
	descriptors = rte_pktmbuf_pool_create("descriptors", 4095, 0, MESSAGE_PRIV_BYTES,
					      DESCRIPTOR_ROOM_BYTES, SOCKET_ID_ANY);
	wire.pool = rte_pktmbuf_pool_create("wire", 2047, 0, MESSAGE_PRIV_BYTES, PACKET_ROOM_BYTES,
					    SOCKET_ID_ANY);
	DIE_IF(!packets || !descriptors || !wire.pool);
}

static int fixture_group(void **state)
{
	fixture_eal();
	return 0;
}

TEST_GROUP(.setup = fixture_group);

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *poll_loop(void *arg)
{
	struct hca *h = arg;

	while (__atomic_load_n(&polling, __ATOMIC_ACQUIRE)) {
		if (hca_poll(h, clock_ns(CLOCK_MONOTONIC)) == 0)
			sched_yield();
		__atomic_add_fetch(&polls, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void quiesce(void *ctx)
{
	uint64_t seen = __atomic_load_n(&polls, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&polling, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&polls, __ATOMIC_SEQ_CST) < seen + 2)
		sched_yield();
}

/* The device that a client wants removed; -1: none, or it has been. "slow" takes 0.7 s. */
static int leaving = -1;
unsigned int fixture_devices = 1;
int fixture_busy;

static int remove_hca(void *ctx, const struct control_changer *who, const char *hca, bool again,
		      char *text, unsigned int bytes)
{
	static unsigned int asked;

	if (leaving >= 0 || (strcmp(hca, "slow") == 0 && ++asked < 16))
		return -EAGAIN;
	snprintf(text, bytes, "%s by %d", hca, (int)who->pid);
	if (again)
		return 0;
	if (strcmp(hca, "hca0") != 0)
		return -ENODEV;
	leaving = 0;
	return -EAGAIN;
}

static void remove_leaving(struct control *c)
{
	if (leaving >= 0)
		control_remove_device(c, (unsigned int)leaving);
	leaving = -1;
}

/* In the place of the one that was removed; done when asked again. */
static struct control_device first_device;
static struct control *its_control;
static int add_hca(void *ctx, const struct control_changer *who, const char *hca,
		   const char *settings, uint32_t *ticket, char *text, unsigned int bytes)
{
	snprintf(text, bytes, "%s: %s", hca, settings);
	if (*ticket)
		return 0;
	if (strcmp(hca, "hca0") != 0)
		return -EINVAL;
	*ticket = 1;
	return control_add_device(its_control, 0, &first_device) ? -ENOMEM : -EAGAIN;
}

static int reload(void *ctx, const struct control_changer *who, uint32_t *ticket, char *text,
		  unsigned int bytes)
{
	snprintf(text, bytes, "asked %u times", ++*ticket);
	return *ticket < 3 ? -EAGAIN : -ENOENT;
}

static void *serve_loop(void *arg)
{
	struct fixture *f = arg;

	while (__atomic_load_n(&serving, __ATOMIC_ACQUIRE)) {
		uint64_t begun, spent;
		int served;

		control_wait(f->control, 2, true);
		pthread_mutex_lock(&turn);
		begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		served = control_poll(f->control);
		pthread_mutex_unlock(&turn);
		spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
		__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
		if (served > 0 && spent < __atomic_load_n(&cheapest_turn_ns, __ATOMIC_RELAXED))
			__atomic_store_n(&cheapest_turn_ns, spent, __ATOMIC_RELAXED);
		remove_leaving(f->control);
		__atomic_store_n(&clients_now, control_clients(f->control, NULL, 0),
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static void port_reply(void *ctx, struct control_port_reply *out)
{
	*out = (struct control_port_reply){
		.state = 4, .max_mtu = 5, .active_mtu = 5, .speed_mbps = 10000, .pkey_count = 1};
	memcpy(out->mac, mac, 6);
}

static int port_gid(void *ctx, uint32_t index, uint8_t gid[16])
{
	if (index > 1)
		return -ENOENT;
	memcpy(gid, ip, 16);
	gid[15] = (uint8_t)(gid[15] + index);
	return 0;
}

static int port_resolve_(void *ctx, const uint8_t dgid[16], uint8_t out[6])
{
	struct fixture *f = ctx;

	if (__atomic_load_n(&f->resolve_again, __ATOMIC_RELAXED) > 0) {
		__atomic_sub_fetch(&f->resolve_again, 1, __ATOMIC_RELAXED);
		return -EAGAIN;
	}
	memcpy(out, mac, 6);
	return f->resolve_result;
}

static bool port_would_ask_(void *ctx, const uint8_t dgid[16])
{
	const struct fixture *f = ctx;

	(void)dgid;
	return __atomic_load_n(&f->would_ask, __ATOMIC_RELAXED);
}

static int port_join_(void *ctx, const uint8_t mgid[16])
{
	struct fixture *f = ctx;
	int rc = __atomic_load_n(&f->join_result, __ATOMIC_RELAXED);

	if (!rc)
		__atomic_add_fetch(&f->joined, 1, __ATOMIC_RELAXED);
	return rc;
}

static void port_leave_(void *ctx, const uint8_t mgid[16])
{
	struct fixture *f = ctx;

	__atomic_sub_fetch(&f->joined, 1, __ATOMIC_RELAXED);
}

static bool may_stop(void *ctx)
{
	const struct fixture *f = ctx;

	return __atomic_load_n(&f->may_stop, __ATOMIC_RELAXED);
}

static int port_capture(void *ctx, void *memory, uint64_t bytes, uint32_t snap)
{
	struct fixture *f = ctx;

	if (f->capture_result)
		return f->capture_result;
	memset(memory, (int)snap, bytes);
	__atomic_store_n(&f->captured, memory, __ATOMIC_RELEASE);
	return 0;
}

static void port_capture_end_(void *ctx, const void *memory)
{
	struct fixture *f = ctx;

	DIE_IF(f->captured != memory);
	memset(f->captured, 0, 1); /* still there */
	__atomic_store_n(&f->captured, NULL, __ATOMIC_RELEASE);
}

static int port_attribute(void *ctx, const char *name, char *text, unsigned int bytes)
{
	return strcmp(name, "answer") ? -ENOENT : snprintf(text, bytes, "42\n");
}

static void start_hca(struct fixture *f, bool poll_pipeline)
{
	struct hca_config config;
	struct ceu_config ceu = {.engine_count = fixture_engines};

	hca_config_defaults(&config);
	config.engines = fixture_engines;
	config.qps = 1024;
	config.cqs = 1024;
	config.srqs = 64;
	config.mpts = 1024;
	config.mtts = 1 << 16; /* pages for 512 fast registrations */
	config.place[0] = (struct engine_place){fixture_node, packets, descriptors, NULL};
	config.packets = packets;
	config.descriptors = descriptors;
	wire.port = (struct link_port){.rx_burst = wire_rx, .tx_burst = wire_tx};
	config.link = &wire.port;
	config.gid_count = 1;
	memcpy(config.gids[0].src_mac, mac, 6);
	memcpy(config.gids[0].src_ip, ip, 16);
	config.gids[0].ttl = 64;
	DIE_IF(hca_create(&config, &f->hca));
	ceu.qps = &f->hca->qps;
	ceu.srqs = &f->hca->srqs;
	ceu.multicast = &f->hca->multicast;
	ceu.v2p = &f->hca->v2p;
	ceu.completion = &f->hca->completion;
	ceu.engines = f->hca->engines;
	ceu.counters = &f->hca->counters;
	ceu.hooks = (struct ceu_hooks){.quiesce = poll_pipeline ? quiesce : NULL};
	DIE_IF(ceu_create(&ceu, &f->ceu));
	DIE_IF(ceu_start(f->ceu));
}

static int read_setting(void *ctx, uint32_t index, struct control_setting *out)
{
	strcpy(out->key, "answer");
	return index ? -ENOENT : 0;
}

static int change_setting(void *ctx, const struct control_changer *who, const char *assignment,
			  char *text, unsigned int bytes)
{
	snprintf(text, bytes, "%s by %d", assignment, (int)who->pid);
	if (strcmp(assignment, "busy") == 0) {
		__atomic_store_n(&fixture_busy, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&fixture_busy, __ATOMIC_ACQUIRE))
			usleep(1000);
	}
	return strcmp(assignment, "hca0.answer=42") == 0 ? 0 : -EBUSY;
}

/* Has to be asked twice. "who": by whom. */
static int view(void *ctx, const struct control_viewer *who, const char *name,
		const char *parameters, char *text, unsigned int room)
{
	static bool asked;

	if (strcmp(name, "who") == 0)
		return snprintf(text, room, "%-7u%c", (unsigned int)who->uid,
				who->may_change ? '+' : '-');
	if (strcmp(name, "answer") != 0)
		return -ENOENT;
	asked = !asked;
	return asked ? -EAGAIN : snprintf(text, room, "{\"%s\":42}", parameters);
}

void fixture_start(struct fixture *f, const struct fixture_total *totals, bool poll_pipeline)
{
	struct control_device device = {.name = "hca0", .guid = 0x1234, .kick_eventfd = -1};
	struct control_device devices[2];
	struct control_config config = {
		.device_count = fixture_devices,
		.devices = devices,
		.cm_adopt = fixture_cm_adopt,
		.cm_ctx = f,
		.settings = {read_setting, change_setting, remove_hca, add_hca, reload},
		.view = view};
	static int runs;

	*f = (struct fixture){0};
	start_hca(f, poll_pipeline);
	snprintf(f->path, sizeof(f->path), "/tmp/softhca-test-%d-%d", (int)getpid(), runs++);
	config.socket_path = f->path;
	config.hello_timeout_ms = fixture_hello_ms;
	f->shares = config.shares = shares_create(geteuid());
	DIE_IF(!f->shares);
	device.kicks = f->kicks = epoll_create1(EPOLL_CLOEXEC);
	device.hca = f->hca;
	device.ceu = f->ceu;
	device.ctx = f;
	device.ops = (struct control_port_ops){.port = port_reply,
					       .gid = port_gid,
					       .resolve = port_resolve_,
					       .would_ask = port_would_ask_,
					       .join = port_join_,
					       .leave = port_leave_,
					       .capture = port_capture,
					       .capture_end = port_capture_end_,
					       .may_stop = may_stop,
					       .attribute = port_attribute};
	devices[0] = devices[1] = device;
	strcpy(devices[1].name, "hca1");
	DIE_IF(control_create(&config, &f->control));
	first_device = device;
	its_control = f->control;
	for (; totals && totals->total; totals++)
		shares_set_total(f->shares, totals->row, 0, totals->total);
	polling = poll_pipeline;
	serving = true;
	has_poller = poll_pipeline;
	if (poll_pipeline)
		DIE_IF(pthread_create(&poller, NULL, poll_loop, f->hca));
	DIE_IF(pthread_create(&server, NULL, serve_loop, f));
	has_server = true;
}

void fixture_kill_control(struct fixture *f)
{
	if (has_server) {
		__atomic_store_n(&serving, false, __ATOMIC_RELEASE);
		pthread_join(server, NULL);
	}
	has_server = false;
	if (!f->control)
		return;
	control_destroy(f->control);
	f->control = NULL;
	close_later_finish();
	/* Nothing that clients took is missing, except for what time brings back. */
	for (int i = 0; i < 100000 && shares_holders(f->shares, NULL, 0); i++) {
		share_refill(f->shares, SHARE_control_us);
		share_refill(f->shares, SHARE_log_lines);
		share_refill(f->shares, SHARE_neighbours);
		share_refill(f->shares, SHARE_held_up_ms);
		share_refill(f->shares, SHARE_waited_ms);
	}
	DIE_IF(shares_holders(f->shares, NULL, 0));
	shares_destroy(f->shares);
	f->shares = NULL;
	close(f->kicks);
}

void fixture_stop(struct fixture *f)
{
	fixture_kill_control(f);
	if (has_poller) {
		__atomic_store_n(&polling, false, __ATOMIC_RELEASE);
		pthread_join(poller, NULL);
	}
	while (wire.head != wire.tail)
		rte_pktmbuf_free(wire.frame[wire.head++ % WIRE_DEPTH]);
	ceu_destroy(f->ceu);
	engines += f->hca->config.engines;
	hca_destroy(f->hca);
	/* Whatever clients did, no buffer is lost; WQEParse of each engine may have kept one in
	 * hand. */
	DIE_IF(!rte_mempool_full(packets));
	DIE_IF(!rte_mempool_full(wire.pool));
	DIE_IF(rte_mempool_in_use_count(descriptors) > engines);
}

bool fixture_wait_clients(struct fixture *f, unsigned int n)
{
	for (int i = 0; i < 2000; i++) {
		if (__atomic_load_n(&clients_now, __ATOMIC_ACQUIRE) == n)
			return true;
		usleep(1000);
	}
	return false;
}

unsigned int fixture_descriptors(void)
{
	close_later_finish();
	return open_descriptors();
}

uint64_t fixture_cheapest_turn_ns(void)
{
	return __atomic_exchange_n(&cheapest_turn_ns, UINT64_MAX, __ATOMIC_RELAXED);
}

void fixture_hold(void)
{
	pthread_mutex_lock(&turn);
}

void fixture_resume(void)
{
	pthread_mutex_unlock(&turn);
}

uint64_t fixture_turns(void)
{
	return __atomic_load_n(&turns, __ATOMIC_RELAXED);
}

uint64_t fixture_counter(struct fixture *f, enum counter which)
{
	return hca_counter(f->hca, which);
}
