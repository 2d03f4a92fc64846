/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of programs and MADs of peers, to two connection managers that talk to each other (the
 * fixture of the unit tests), in virtual time.
 *
 * Input: steps, each a byte that chooses a row of `steps`, then what the row reads.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/close_later.h"
#include "fuzz.h"
#include "service_fixture.h"
#include "wrap.h"

enum { STEPS = 40, CHANNELS = 3, IDS = 8 };
#define FORGOTTEN_NS (3600ull * 1000 * MS)

static struct channel channels[CHANNELS];
static uint32_t ids[IDS]; /* of all channels, the last ones */
static unsigned int id_count;

static void keep_id(uint32_t id)
{
	ids[id_count++ % IDS] = id;
}

static struct channel *some_channel(struct fuzz_bytes *b)
{
	return &channels[fuzz_u8(b) % CHANNELS];
}

static uint32_t some_id(struct fuzz_bytes *b)
{
	uint8_t i = fuzz_u8(b);

	return i < 0xf8 ? ids[i % IDS] : i;
}

static const char *some_address(struct fuzz_bytes *b)
{
	static const char *const addresses[] = {"10.0.0.1", "10.0.0.2", "0.0.0.0",   "10.1.0.2",
						"fd00::2",  "::",	"224.1.1.1", "127.0.0.1",
						"10.0.0.9", "fd00:1::1"};

	return addresses[fuzz_u8(b) % (sizeof(addresses) / sizeof(*addresses))];
}

static uint16_t some_port(struct fuzz_bytes *b)
{
	return (uint16_t)(7174 + fuzz_u8(b) % 4 - 1);
}

/* ---- steps ---- */

static void create(struct fuzz_bytes *b)
{
	static const uint16_t spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB, 0};
	struct channel *ch = some_channel(b);
	uint32_t id;
	uint8_t how = fuzz_u8(b);

	if (create_id(ch, fuzz_u8(b), spaces[how % 5], how & 0x80 ? how & 7 : 2, &id) == 0)
		keep_id(id);
}

static void destroy(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t events;

	destroy_id(ch, some_id(b), &events);
}

static void bind_to(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t id = some_id(b);
	const char *address = some_address(b);

	bind_ip(ch, id, address, some_port(b));
}

static void resolve(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t id = some_id(b);
	const char *to = some_address(b);
	uint16_t port = some_port(b);

	if (resolve_ip(ch, id, NULL, to, port, 1000) == 0) {
		settle();
		resolve_route(ch, id);
	}
}

static void listen_there(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t id = some_id(b);

	listen_id(ch, id, fuzz_u8(b));
}

static void connect_there(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t id = some_id(b);

	connect_id(ch, id, fuzz_u16(b), "hello");
}

static void accept_it(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t id = some_id(b);

	accept_id(ch, id, 9, fuzz_u16(b), "yes");
}

static void answer(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t id = some_id(b);
	uint8_t how = fuzz_u8(b);

	if (how & 1)
		reject_id(ch, id, how, "no");
	else if (how & 2)
		disconnect_id(ch, id);
	else
		confirm_id(ch, id);
}

static void take_event(struct fuzz_bytes *b)
{
	struct rdma_ucm_event_resp e;

	if (get_event(some_channel(b), &e) == 0)
		keep_id(e.event == UCM_EVENT_CONNECT_REQUEST ? e.id : ids[0]);
}

/* Any command, its body of the input's bytes, except that one names an identifier. */
static void any_command(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);
	uint32_t number = fuzz_u8(b) % 26, id = some_id(b);
	uint8_t body[CM_CHANNEL_BYTES_MAX] = {0}, response[CM_CHANNEL_BYTES_MAX];
	size_t in = fuzz_u16(b) % 400, out = fuzz_u16(b) % 500, at = fuzz_u8(b);
	size_t bytes = fuzz_u8(b);

	fuzz_copy(b, body, bytes);
	if (at < in && in - at >= sizeof(id))
		memcpy(body + at, &id, sizeof(id));
	if (number == 25)
		number = CM_COMMAND_RELEASE_ID;
	if (!(command(ch, number, body, in, response, out)) && ch->bytes >= sizeof(id)) {
		memcpy(&id, response, sizeof(id));
		keep_id(id);
	}
}

static void carry(struct fuzz_bytes *b)
{
	settle();
}

static void wait_for(struct fuzz_bytes *b)
{
	pass((uint64_t)fuzz_u8(b) * fuzz_u8(b) * MS);
}

static void come_and_go(struct fuzz_bytes *b)
{
	struct channel *ch = some_channel(b);

	close_channel(ch);
	*ch = open_channel(fuzz_u8(b) & 1);
}

/* An altered message of the other side, or random bytes. */
static void forge(struct fuzz_bytes *b)
{
	unsigned int to = fuzz_u8(b) & 1, at = fuzz_u8(b) % CM_MAD_BYTES;
	uint8_t mad[CM_MAD_BYTES], n = fuzz_u8(b);
	struct cm_path path = {.hop_limit = 64};
	size_t size = n & 0x80 ? n : CM_MAD_BYTES;

	memcpy(mad, node[n & 1].last, sizeof(mad));
	for (unsigned int i = 0; i < (n & 0x3f) && b->left; i++)
		mad[(at + i) % CM_MAD_BYTES] ^= fuzz_u8(b);
	gid_of(to + 1, 0, GID_V4, path.sgid);
	gid_of(2 - to, 0, GID_V4, path.dgid);
	cm_service_receive(node[to].s, now, &path, mad, size);
}

static void (*const steps[])(struct fuzz_bytes *b) = {
	create, destroy,    bind_to,	 resolve, listen_there, connect_there, accept_it,
	answer, take_event, any_command, carry,	  wait_for,	come_and_go,   forge,
};

/* At once: waking the threads that close would take as long as all the rest, and `control` has them. */
WRAP(void, close_later_socket, int fd, struct share_client *from)
{
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

WRAP(void, close_later, int fd, struct share_client *from)
{
	close(fd);
}

static void stop(void)
{
	for (unsigned int i = 0; i < 2; i++)
		cm_service_destroy(node[i].s);
}

static void start(void)
{
	/* Little, so that inputs fill it. */
	static const struct cm_service_limits limits = {
		.protocol = {.connections = 64, .unanswered = 16}};

	if (now)
		return;
	now = 1000;
	services_start(&limits);
	services_total(SHARE_cm_ids, 64);
	services_total(SHARE_cm_events, 64);
	atexit(stop);
}

/* Nothing is left of an input when its programs have ended and every timer has expired. */
static void end(void)
{
	for (unsigned int i = 0; i < CHANNELS; i++)
		close_channel(&channels[i]);
	pass(FORGOTTEN_NS);
	for (unsigned int i = 0; i < 2; i++) {
		REQUIRE(cm_service_ids(node[i].s, NULL, 0) == 0);
		REQUIRE(services_used(&node[i], SHARE_cm_channels) == 0);
		REQUIRE(node[i].next == UINT64_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	start();
	id_count = 0;
	memset(ids, 0, sizeof(ids));
	for (unsigned int i = 0; i < CHANNELS; i++)
		channels[i] = open_channel(i & 1);
	for (unsigned int i = 0; b.left && i < STEPS; i++)
		steps[fuzz_u8(&b) % (sizeof(steps) / sizeof(*steps))](&b);
	end();
	return 0;
}
