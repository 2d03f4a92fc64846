/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca capture`: copies frames of a port, or elements of a channel, from the ring that the
 * daemon fills (host-abi/capture_ring.h) to a pcapng file, through a queue (spool.h), or prints
 * them as lines. The daemon ends the capture when this process ends, for whatever reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "commands.h"
#include "base/pcapng.h"
#include "element_line.h"
#include "filter.h"
#include "frame_line.h"
#include "host-abi/capture_ring.h"
#include "host-abi/control.h"
#include "pipeline/topology.h"
#include "spool.h"
#include "target.h"

enum { PAGE_BYTES = 4096, POLL_MS = 5, RING_BYTES_MAX = 64 << 20 };
#define BUFFER_BYTES_MAX (64ull << 30)

struct capture {
	const struct request *r;
	struct capture_head *ring;
	int daemon;			   /* the connection: the capture lasts as long as it */
	struct control_capture_channel in; /* what is asked for; no channel: a port's frames */
	char name[PCAPNG_NAME_BYTES];
	struct spool *spool; /* of the file; NULL: lines */
	FILE *out;
	bool ended, daemon_gone;
	bool emptied;			    /* the ring, when it was looked at last */
	bool ending;			    /* told to end: ... */
	uint64_t end[CAPTURE_QUEUES_MAX];   /* ... take nothing past these positions */
	uint64_t frames, dropped;	    /* in all */
	uint64_t file_frames, file_dropped; /* of this file; dropped before it began */
};

static volatile sig_atomic_t told_to_end;

/* The first signal ends the capture, which may then still wait for a disk or for the reader of a
 * pipe. One that comes two seconds later ends the process; an earlier one may be the same signal,
 * sent to both the process and its group. */
static void capture_on_signal(int number)
{
	static time_t first;
	const time_t now = time(NULL);

	if (!told_to_end)
		first = now;
	told_to_end = 1;
	if (now < first + 2)
		return;
	signal(number, SIG_DFL);
	raise(number);
}

static void handle_signals(void)
{
	const struct sigaction end = {.sa_handler = capture_on_signal};

	signal(SIGPIPE, SIG_IGN); /* writing fails instead */
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
}

/* ---- the daemon ---- */

/* Sealed memory that is present. A descriptor; -errno. */
static int make_ring(struct capture_head **ring, uint64_t bytes)
{
	int fd = memfd_create("softhca-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING), error;
	void *at = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at != MAP_FAILED) {
		*ring = at;
		return fd;
	}
	error = -errno;
	close(fd);
	return error;
}

static const char *capture_refusal_text(int error)
{
	switch (error) {
	case -EPERM:
		return ONLY_ADMINS_MAY("capture");
	case -EBUSY:
		return "busy: it is captured as often as it may be at once";
	case -EACCES:
		return "its setting debug is off";
	case -ENODEV:
		return "there is no such HCA";
	case -EPROTO:
		return "the daemon is of another version";
	default:
		return strerror(-error);
	}
}

/* "HCA" or "[HCA.]CHANNEL". Exit code. */
static int capture_read_operand(struct capture *c)
{
	const char *word = c->r->object ? c->r->object : "", *dot = strrchr(word, '.');
	const char *last = dot ? dot + 1 : word, *hca = c->r->hca ? c->r->hca : "";
	int length = (int)strlen(hca);

	if (channel_named(last) != CHANNEL_COUNT) {
		strcpy(c->in.channel, last);
		if (dot) {
			hca = word;
			length = (int)(dot - word);
		}
	} else if (word[0]) {
		hca = word;
		length = (int)strlen(word);
	}
	if (length >= (int)sizeof(c->in.capture.device))
		return failed(word, capture_refusal_text(-ENODEV));
	memcpy(c->in.capture.device, hca, (size_t)length);
	return EXIT_CODE_OK;
}

/* Passes the ring. 0 or -errno. */
static int ask_capture(struct capture *c, int fd)
{
	struct control_capture_reply reply = {0};
	bool channel = c->in.channel[0];
	int error = channel ? ask(c->daemon, CONTROL_CAPTURE_CHANNEL, &c->in, sizeof(c->in), &reply,
				  sizeof(reply), fd, NULL)
			    : ask(c->daemon, CONTROL_CAPTURE, &c->in.capture, sizeof(c->in.capture),
				  &reply, sizeof(reply), fd, NULL);

	snprintf(c->name, sizeof(c->name), "%.31s%s%.15s", reply.device, channel ? "." : "",
		 c->in.channel);
	return error;
}

/* The part of the buffer that the daemon writes into; the rest is the spool's. */
static uint64_t ring_bytes(const struct request *r)
{
	return r->buffer_bytes < RING_BYTES_MAX ? r->buffer_bytes : RING_BYTES_MAX;
}

/* Exit code. */
static int open_capture(struct capture *c)
{
	const char *hca = c->in.capture.device;
	const char *dot = c->r->object ? strrchr(c->r->object, '.') : NULL;
	const uint64_t bytes =
		CAPTURE_HEAD_BYTES + ((ring_bytes(c->r) + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES);
	int fd = make_ring(&c->ring, bytes), error;

	if (fd < 0)
		return failed("memory for the capture", strerror(-fd));
	c->in.capture.version = CONTROL_VERSION;
	c->in.capture.snap = c->r->snaplen;
	c->in.capture.bytes = bytes;
	error = ask_capture(c, fd);
	close(fd);
	if (error == -ENODEV && c->r->object && !c->in.channel[0])
		return refuse_channel(dot ? dot + 1 : c->r->object);
	return error ? failed(hca[0] ? hca : "capture", capture_refusal_text(error)) : EXIT_CODE_OK;
}

static int connect_daemon(struct capture *c)
{
	c->daemon = ask_connect(c->r->socket);
	return c->daemon < 0 ? target_missing(c->r, c->daemon) : EXIT_CODE_OK;
}

/* ---- the file ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The next file, or the lines. 0 or -errno. */
static int open_stream(struct capture *c)
{
	c->out = c->spool ? spool_stream(c->spool) : stdout;
	if (!c->out)
		return -errno;
	c->file_frames = 0;
	c->file_dropped = c->dropped;
	if (!c->spool)
		return 0;
	return pcapng_begin(c->out, c->name, c->in.channel[0] ? PCAPNG_UPPER_PDU : PCAPNG_ETHERNET,
			    c->r->snaplen);
}

static int close_stream(struct capture *c)
{
	int error = 0;

	if (c->spool)
		error = pcapng_end(c->out, now_ns(), c->file_frames, c->dropped - c->file_dropped);
	if (fclose(c->out) && !error)
		error = -errno;
	c->out = NULL;
	return error;
}

/* The spool is for a file, and for a pipe that may stall. 0 or -errno. */
static int open_output(struct capture *c)
{
	const char *path = c->r->file;

	if (path) {
		c->spool = spool_begin(strcmp(path, "-") == 0 ? NULL : path,
				       c->r->buffer_bytes - ring_bytes(c->r));
		if (!c->spool)
			return -errno;
	}
	return open_stream(c);
}

/* 0 or -errno: all has been written now. */
static int close_output(struct capture *c)
{
	int error = c->out ? close_stream(c) : 0, last = c->spool ? spool_end(c->spool) : 0;

	return last ? last : error;
}

static int rotate(struct capture *c)
{
	int error = close_stream(c);

	spool_turn(c->spool);
	return error ? error : open_stream(c);
}

static bool passes(const struct capture *c, const struct pcapng_frame *frame)
{
	struct pcapng_frame inner;

	if (!c->in.channel[0])
		return filter_passes(frame);
	return !c->r->filter || (element_frame(frame, &inner) && filter_passes(&inner));
}

static void put_line(struct capture *c, const struct pcapng_frame *frame)
{
	if (c->in.channel[0])
		element_line(c->out, frame);
	else
		frame_line(c->out, frame);
}

static int put_frame(struct capture *c, const struct capture_record *r)
{
	struct pcapng_frame frame = capture_frame(c->ring, r);
	int error = 0;

	if (c->in.channel[0])
		frame.direction = 0;
	if (!passes(c, &frame))
		return 0;
	if (c->r->file)
		error = pcapng_frame(c->out, &frame);
	else
		put_line(c, &frame);
	if (error)
		return error;
	c->frames++;
	c->file_frames++;
	c->ended |= c->frames == c->r->frames;
	return c->r->rotate_bytes && (uint64_t)ftello(c->out) >= c->r->rotate_bytes ? rotate(c) : 0;
}

/* ---- reading ---- */

static bool is_over(const struct capture *c, unsigned queue)
{
	return c->ending && c->ring->queue[queue].tail >= c->end[queue];
}

/* The earliest frame of all queues, and its queue in *queue. NULL: there is none. */
static const struct capture_record *earliest(struct capture *c, unsigned *queue)
{
	const struct capture_record *first = NULL;

	for (unsigned i = 0; i < c->ring->queues; i++) {
		const struct capture_record *r = is_over(c, i) ? NULL : capture_next(c->ring, i);

		if (r && (!first || r->tsc < first->tsc)) {
			first = r;
			*queue = i;
		}
	}
	return first;
}

/* The earliest frame, if the output has room for it. */
static const struct capture_record *next_frame(struct capture *c, unsigned *queue)
{
	const struct capture_record *r = earliest(c, queue);

	c->emptied = !r;
	return c->spool && !spool_has_room(c->spool) ? NULL : r;
}

/* A file still gets the frames in the ring at the signal; lines, which somebody reads, end at
 * once. */
static void note_end(struct capture *c)
{
	c->ending = true;
	c->ended |= !c->spool;
	c->dropped = capture_dropped(c->ring);
	for (unsigned i = 0; i < c->ring->queues; i++)
		c->end[i] = __atomic_load_n(&c->ring->queue[i].head, __ATOMIC_ACQUIRE);
}

/* Writes out the frames in the ring. 0 or -errno of a write. */
static int capture_drain(struct capture *c)
{
	const struct capture_record *r;
	unsigned queue = 0;
	int error = c->spool ? spool_error(c->spool) : 0;

	if (told_to_end && !c->ending)
		note_end(c);
	while (!error && !c->ended && (c->ending || !told_to_end) && (r = next_frame(c, &queue))) {
		error = put_frame(c, r);
		capture_pass(c->ring, queue, r);
	}
	if (!c->ending)
		c->dropped = capture_dropped(c->ring);
	if (!error && (fflush(c->out) || ferror(c->out)))
		error = errno ? -errno : -EIO;
	return error;
}

/* Waits a little, and looks whether the daemon or the reader of a pipe has gone. */
static void wait_more(struct capture *c)
{
	const bool own_file = c->r->file && strcmp(c->r->file, "-") != 0;
	struct pollfd fds[2] = {{.fd = c->daemon_gone ? -1 : c->daemon, .events = POLLIN},
				{.fd = own_file ? -1 : STDOUT_FILENO}};

	if (poll(fds, 2, POLL_MS) <= 0)
		return;
	if (fds[0].revents) {
		fputs("softhca: the daemon has ended the capture\n", stderr);
		c->daemon_gone = true;
	}
	c->ended |= (fds[1].revents & POLLERR) != 0;
}

/* 0 or -errno of a write. */
static int read_frames(struct capture *c)
{
	int error = capture_drain(c);

	while (!error && !c->ended && !(c->emptied && (c->daemon_gone || c->ending))) {
		wait_more(c);
		error = capture_drain(c);
	}
	return error;
}

static int capture(struct capture *c)
{
	int error = open_output(c), last;

	fprintf(stderr, "softhca: capturing %s\n", c->name);
	if (!error)
		error = read_frames(c);
	last = close_output(c);
	error = error ? error : last;
	fprintf(stderr, "%llu %s captured, %llu dropped\n", (unsigned long long)c->frames,
		c->in.channel[0] ? "elements" : "frames", (unsigned long long)c->dropped);
	if (!error || error == -EPIPE) /* the reader has closed the pipe */
		return EXIT_CODE_OK;
	return failed(c->r->file ? c->r->file : "standard output", strerror(-error));
}

static int refuse_options(const struct request *r)
{
	const char *why = NULL;

	if (r->json)
		why = "frames are not printed as JSON";
	else if (r->rotate_bytes && (!r->file || strcmp(r->file, "-") == 0))
		why = "--rotate needs a file";
	else if (r->buffer_bytes > BUFFER_BYTES_MAX)
		why = "--buffer: more than 64G";
	else if (r->file && strcmp(r->file, "-") == 0 && isatty(STDOUT_FILENO))
		why = "-w - is for a pipe or a file, not for a terminal";
	if (!why)
		return EXIT_CODE_OK;
	fprintf(stderr, "softhca: %s\n", why);
	return EXIT_CODE_USAGE;
}

int view_capture(struct connection *unused, const struct request *r)
{
	struct capture c = {.r = r};
	int code = refuse_options(r);

	(void)unused;
	if (!code && !filter_set(r->filter))
		code = EXIT_CODE_USAGE;
	if (!code)
		code = capture_read_operand(&c);
	if (!code)
		code = connect_daemon(&c);
	if (!code)
		code = open_capture(&c);
	if (code)
		return code;
	handle_signals();
	return capture(&c);
}
