/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_ENGINE_H
#define PIPELINE_ENGINE_H
/*
 * One engine: one instance of the whole pipeline (five stages, their modules and channels) and
 * pointers to the tables that serve it. A module gets the engine and nothing else: it has no
 * globals.
 *
 * Threads: each stage of an engine runs on one lcore at a time; any number of stages may share an
 * lcore. A module's own state is touched by its stage alone.
 */
#include <stdint.h>
#include <rte_malloc.h>
#include "base/counters.h"
#include "base/limits.h"
#include "congestion/delay.h"
#include "pipeline/channel.h"
#include "pipeline/icrc.h"
#include "pipeline/wake_list.h"

struct dbp;
struct execution_engine;
struct hp;
struct multi_queue;
struct multicast_table;
struct peer_list;
struct resp_pkt_gen;
struct rpg;
struct rrc;
struct rtc;
struct tc;
struct txa;
struct wp;
struct ws;
struct qp_table;
struct v2p;
struct v2p_port;
struct completion;
struct link_port;
struct wire_path;
struct rte_mempool;
struct stepping;

/* Which QPs slow down when the network is congested, and at what signal. */
enum congestion_control {
	CC_NONE = 0,  /* none */
	CC_DCQCN = 1, /* connected QPs: they are ECN-capable, and obey CNPs */
	CC_DELAY = 2, /* reliable ones, when round trips grow */
	CC_AUTO = CC_DCQCN | CC_DELAY,
};

/* What becomes of packets that arrive ahead of missing ones. */
enum loss_recovery {
	LOSS_RECOVERY_STANDARD, /* dropped: the sender goes back N */
	LOSS_RECOVERY_KEEP,	/* kept until those have come (context/early.h) */
};

/* May packets refer to their payload (virt-to-phys/payload_ref.h)? */
enum payload_refs {
	REFS_NONE,
	REFS_IN_TRAINS, /* and form trains (train.h): a ring port */
	REFS_SINGLY,	/* their port's driver reads it before they are acknowledged */
};

struct engine_settings {
	uint32_t ack_interval;	 /* packets of a message between two AckReq bits */
	uint32_t quantum_bytes;	 /* payload one QP may send before the next has its turn */
	uint32_t swpb_elements;	 /* Send/Write packet buffer, packets */
	uint32_t rpb_elements;	 /* Read packet buffer, requests */
	uint32_t reb_elements;	 /* Read entry buffer, scatter entries */
	uint32_t pipeline_depth; /* requests of one QP between WQEScheduler and
				    RequesterTransControl */
	uint32_t timer_tick_ns, timer_slots;
	uint32_t nt_copy_bytes;	 /* written this far ahead, payload bypasses the caches; 0: never */
	uint32_t loss_recovery;	 /* enum loss_recovery */
	uint32_t first_probe_us; /* of a QP that knows no round trip; 0: none */
	uint32_t cc;		 /* enum congestion_control */
	struct dcqcn_params dcqcn;
	struct delay_params delay;
	uint32_t min_time_between_cnps; /* to the same peer's QP, µs */
	uint32_t cnp_dscp, cnp_802p_prio;
	uint32_t traffic_class, priority; /* for programs that ask for none */
	uint32_t path_spread;		  /* UDP source ports (context/path_class.h) */
	bool priority_tag;		  /* tag packets with VLAN 0 if there is no VLAN */
	bool e2e_credits;		  /* generate end-to-end credits; false: 11111b */
	enum icrc_mode icrc;
	uint32_t payload_refs; /* enum payload_refs */
};

/* A setting that may change while lcores run: read once where it is used. */
#define engine_setting(e, name) __atomic_load_n(&(e)->settings.name, __ATOMIC_RELAXED)

#define engine_trains(e) (engine_setting(e, payload_refs) == REFS_IN_TRAINS)

/* Counters and state of a stage instance. One writer: the lcore that runs it. */
struct stage {
	const struct pacer
		*pacer; /* QPs of it that wait for their time (context/pacing.h); NULL: none */
	struct counters counters;
	uint64_t polls, busy_polls; /* polls, and those that found work */
	uint64_t calls[CALL_COUNT]; /* commands from a module of this stage to another one */
} __rte_cache_aligned;

/* What a module has done while it was measured (module_run.h). One writer: the lcore of its stage;
 * read by telemetry. */
struct module_run {
	uint64_t polls, busy_polls; /* polls, and those that found work */
	uint64_t elements;	    /* handled in these */
	uint64_t cycles;	    /* of these, by the time stamp counter */
	uint64_t idle_cycles;	    /* of the others */
} __rte_cache_aligned;

struct engine {
	unsigned index, count; /* of `count` engines of this HCA */
	int socket;	       /* NUMA node of its memory, or SOCKET_ID_ANY */
	/* Written by the lcore loop before each poll; virtual in tests. */
	uint64_t now_ns;     /* time of this round */
	uint64_t slept_ns;   /* total time asleep for lack of work; atomic. In any other gap
			       between two polls another thread had the CPU */
	uint64_t heard_ns;   /* HeaderParser: it has handed on all that had arrived by this time;
			       atomic. UINT64_MAX until it looks for the first time */
	uint64_t missed_ns;  /* TimerControl: total time without a poll for arrivals; atomic */
	uint32_t relinked;   /* copy of the port's (link_port.h); header_parse; atomic */
	uint32_t sent_later; /* the same; header_parse */
	bool transmitted;    /* in the last poll of header_parse; its own */
	uint64_t stood_ns; /* total time for which it stood (stepping.h); atomic; the lcore loop */
	struct engine
		*peers; /* all engines of the HCA, `count` of them (HeaderParser hands over) */
	struct engine_settings settings;
	bool one_lcore;	      /* polls all of its stages */
	bool frames_are_ours; /* no other lcore or thread holds references to its frames */
	uint32_t
		source_burst; /* doorbells and frames taken in a poll: BURST; 1 in a step; atomic */

	struct qp_table *qps;
	struct v2p *v2p;
	struct v2p_port *v2p_port[STAGE_COUNT]; /* each stage's way to it */
	struct completion *completion;
	struct link_port *link;
	const struct wire_path *gids; /* the port's addresses by GID index: source MAC and IP, VLAN;
					 gid_count of them */
	unsigned gid_count;
	const struct peer_list *admitted; /* who may send datagrams; atomic, hca_admit() */
	const struct multicast_table *multicast;
	struct rte_mempool *clones;	 /* for references to frames; may be `packets` */
	struct rte_mempool *packets;	 /* data room PACKET_ROOM_BYTES */
	struct rte_mempool *descriptors; /* data room DESCRIPTOR_ROOM_BYTES */
	struct rte_mempool *events;	 /* no data room; more than the timer channels can hold */
	uint32_t descriptor_share;	 /* descriptors that this engine may hold */
	uint32_t held_total;		 /* descriptors in use; atomic */
	uint32_t held[CLIENTS_MAX];	 /* the same by client; atomic */

	/* The modules' own state: <module>_create() makes it, no other module looks inside. */
	struct dbp *dbp;
	struct ws *ws;
	struct wp *wp;
	struct rtc *rtc;
	struct rpg *rpg;
	struct rrc *rrc;
	struct tc *tc;
	struct execution_engine *ee;
	struct resp_pkt_gen *respg;
	struct hp *hp;
	struct txa *txa;
	struct multi_queue *mq; /* RequesterTransControl produces, RequesterRecvControl consumes */
	struct channel channel[CHANNEL_COUNT];
	struct wake_list wake[WAKE_COUNT];
	struct stage stage[STAGE_COUNT];
	uint32_t watched;   /* atomic: enum watched_for; 0: nobody looks */
	uint32_t releasing; /* atomic: queue pairs are leaving; control thread */
	struct stepping *stepping;
	struct module_run run[MODULE_COUNT];
};

enum watched_for {
	WATCH_TIMED = 1,       /* modules are measured: telemetry, control thread */
	WATCH_STEPPED = 2,     /* some stand, are traced or captured: control thread */
	WATCH_TIME_STANDS = 4, /* time does: control thread */
};

static inline void engine_watch(struct engine *e, enum watched_for what, bool on)
{
	if (on)
		__atomic_fetch_or(&e->watched, (uint32_t)what, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&e->watched, ~(uint32_t)what, __ATOMIC_RELEASE);
}

/* Does somebody step, trace or capture modules (stepping.h)? Then no trains form. */
static inline bool engine_is_watched(const struct engine *e)
{
	return __atomic_load_n(&e->watched, __ATOMIC_RELAXED) & WATCH_STEPPED;
}

/* The time of this round. Another lcore with stages of the engine may advance it at any time. */
static inline uint64_t engine_now(const struct engine *e)
{
	return __atomic_load_n(&e->now_ns, __ATOMIC_RELAXED);
}

/* Does the engine's time stand (stepping.h)? This may change at any time, too. */
static inline bool engine_time_stands(const struct engine *e)
{
	return __atomic_load_n(&e->watched, __ATOMIC_RELAXED) & WATCH_TIME_STANDS;
}

/* The most that a module takes from outside in a poll, at most BURST. */
static inline unsigned source_burst(const struct engine *e)
{
	return __atomic_load_n(&e->source_burst, __ATOMIC_RELAXED);
}

/* Should payload of a message that long, so far ahead (context/walk.h), bypass the caches? */
static inline bool bypasses_caches(const struct engine *e, uint64_t message_bytes,
				   uint64_t ahead_bytes)
{
	uint32_t limit = engine_setting(e, nt_copy_bytes);

	return limit && RTE_MAX(message_bytes, ahead_bytes) >= limit;
}

/* Total time so far in which arrivals were not polled because other threads had the CPU. Any
 * stage. */
static inline uint64_t engine_missed(const struct engine *e)
{
	return __atomic_load_n(&e->missed_ns, __ATOMIC_RELAXED);
}

/* Zeroed memory of a module, on the engine's node; freed by rte_free(). NULL: there is none.
 * Control thread. */
static inline void *engine_alloc(const struct engine *e, const char *what, size_t bytes)
{
	return rte_zmalloc_socket(what, bytes, RTE_CACHE_LINE_SIZE, e->socket);
}

/* Counts n commands from modules of the stage. The lcore that runs it. */
static inline void call_note(struct stage *s, enum call_id which, unsigned n)
{
	__atomic_store_n(&s->calls[which], s->calls[which] + n, __ATOMIC_RELAXED);
}

static inline struct counters *stage_counters(struct engine *e, enum stage_id s)
{
	return &e->stage[s].counters;
}

#endif
