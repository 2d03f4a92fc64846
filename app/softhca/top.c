/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca top`: the terminal, the keys and the clock. Signals arrive through a descriptor, so that
 * every way out passes the place that restores the terminal.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include "top.h"

/* The daemon measures modules for a while after each question. */
#define ASK_EVERY_S 2.0
#define FIRST_S	    0.5

#define SCREEN_ON  "\033[?1049h\033[?25l"
#define SCREEN_OFF "\033[?25h\033[?1049l"
#define HOME	   "\033[H"
#define LINE_END   "\033[K\r\n"
#define REST_OFF   "\033[J"

enum { ROWS_USUAL = 24, COLUMNS_USUAL = 80, FILTER_BYTES = 40, KEYS_MAX = 16, LAST_BYTES = 160 };
enum { KEY_ESCAPE = 27, KEY_ERASE = 127, KEY_CTRL_U = 'U' & 31 };

struct top {
	struct connection *c;
	const struct request *r;
	struct look then, now;
	struct top_choice choice;
	char filter[FILTER_BYTES];
	struct termios before;
	int signals; /* signalfd */
	bool on, paused, over;
	bool typing; /* a filter */
	bool stale;  /* it was paused, and nothing was measured: look anew */
};

/* ---- the terminal ---- */

static void write_text(const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(STDOUT_FILENO, text, bytes);

		if (n <= 0)
			return;
		text += n;
		bytes -= n;
	}
}

static void screen_on(struct top *t)
{
	struct termios raw = t->before;

	raw.c_lflag &= ~(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	write_text(SCREEN_ON, strlen(SCREEN_ON));
	t->on = true;
}

static void screen_off(struct top *t)
{
	if (!t->on)
		return;
	write_text(SCREEN_OFF, strlen(SCREEN_OFF));
	tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
	t->on = false;
}

/* Writes the lines, cut to the width of the terminal, and clears what is left of the old ones. */
static void top_show(const char *text, unsigned columns, const char *last)
{
	write_text(HOME, strlen(HOME));
	for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
		size_t length = end - text;

		write_text(text, length < columns ? length : columns);
		write_text(LINE_END, strlen(LINE_END));
	}
	write_text(last, strlen(last) < columns ? strlen(last) : columns);
	write_text(REST_OFF, strlen(REST_OFF));
}

/* The last line: what is typed, or the keys. */
static const char *last_line(const struct top *t, char text[LAST_BYTES])
{
	if (t->typing)
		snprintf(text, LAST_BYTES,
			 "queue pairs with: %s_   (a process, QPN, state; Enter: show, Esc: all)",
			 t->filter);
	else
		snprintf(text, LAST_BYTES, "%sspace: %s  s: sort  f: filter%s%s%s  q: quit",
			 t->paused ? "PAUSED  " : "", t->paused ? "go on" : "pause",
			 t->filter[0] ? " '" : "", t->filter, t->filter[0] ? "'" : "");
	return text;
}

static void top_draw(struct top *t)
{
	struct winsize size = {.ws_row = 0};
	char last[LAST_BYTES];
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;

	if (t->r->batch) {
		top_print(stdout, &t->then, &t->now, &t->choice, 0);
		puts("");
		fflush(stdout);
		return;
	}
	out = open_memstream(&text, &bytes);
	if (!out)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){.ws_row = ROWS_USUAL, .ws_col = COLUMNS_USUAL};
	top_print(out, &t->then, &t->now, &t->choice, size.ws_row - 1);
	if (fclose(out) == 0)
		top_show(text, size.ws_col, last_line(t, last));
	free(text);
}

/* ---- keys and signals ---- */

/* Leaves the terminal to the shell until we are continued. */
static void suspend(struct top *t)
{
	screen_off(t);
	raise(SIGSTOP);
	screen_on(t);
}

static void take_signal(struct top *t)
{
	struct signalfd_siginfo info;

	if (read(t->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGTSTP)
		suspend(t);
	else if (info.ssi_signo != SIGWINCH)
		t->over = true;
	if (!t->over && t->then.status)
		top_draw(t);
}

/* A key while a filter is typed; it applies at once. */
static void type_key(struct top *t, char key)
{
	size_t length = strlen(t->filter);

	if (key == '\n' || key == '\r') {
		t->typing = false;
	} else if (key == KEY_ESCAPE || key == KEY_CTRL_U) {
		t->typing = key != KEY_ESCAPE;
		t->filter[0] = '\0';
	} else if ((key == KEY_ERASE || key == '\b') && length) {
		t->filter[length - 1] = '\0';
	} else if (key >= ' ' && key < KEY_ERASE && length + 1 < sizeof(t->filter)) {
		t->filter[length] = key;
		t->filter[length + 1] = '\0';
	}
}

static void take_key(struct top *t, char key)
{
	if (t->typing)
		type_key(t, key);
	else if (key == 'q' || key == 'Q')
		t->over = true;
	else if (key == ' ')
		t->stale = !(t->paused = !t->paused);
	else if (key == 's')
		t->choice.sort = (t->choice.sort + 1) % SORT_COUNT;
	else if (key == 'f' || key == '/')
		t->typing = true;
}

/* Of an arrow or the like: its last byte. */
static ssize_t end_of_sequence(const char *keys, ssize_t at, ssize_t count)
{
	while (at < count && keys[at] >= ' ' && keys[at] < '@')
		at++;
	return at;
}

static void take_keys(struct top *t)
{
	char keys[KEYS_MAX];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n <= 0)
		t->over = true;
	for (ssize_t i = 0; i < n && !t->over; i++) {
		if (keys[i] == KEY_ESCAPE && i + 1 < n && keys[i + 1] == '[')
			i = end_of_sequence(keys, i + 2, n);
		else
			take_key(t, keys[i]);
	}
	if (!t->over && t->then.status)
		top_draw(t);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Serves keys and signals for that time. */
static void top_pass(struct top *t, double seconds)
{
	double end = now_s() + seconds, left;

	while (!t->over && ((left = end - now_s()) > 0 || t->paused)) {
		struct pollfd fds[2] = {{.fd = t->signals, .events = POLLIN},
					{.fd = t->r->batch ? -1 : STDIN_FILENO, .events = POLLIN}};
		double wait = left < ASK_EVERY_S ? left : ASK_EVERY_S;

		if (poll(fds, 2, t->paused ? -1 : (int)(wait * 1000) + 1) == 0 && left > wait)
			engines_ask_again(t->c, t->now.runtime, "runtime");
		if (fds[0].revents)
			take_signal(t);
		if (fds[1].revents && !t->over)
			take_keys(t);
	}
}

/* ---- all ---- */

/* Takes one look after another until told to end. False: the daemon is gone. */
static bool watch(struct top *t)
{
	double first = t->r->batch || t->r->interval_s < FIRST_S ? t->r->interval_s : FIRST_S;

	if (!look_take(&t->now, t->c, t->r))
		return false;
	for (unsigned i = 0; !t->over && (!t->r->count || i < t->r->count); i++) {
		top_pass(t, i ? t->r->interval_s : first);
		if (t->over)
			break;
		look_free(&t->then);
		if (t->stale) {
			look_free(&t->now);
			i--;
		}
		t->then = t->now;
		if (!look_take(&t->now, t->c, t->r))
			return false;
		if (!t->stale)
			top_draw(t);
		t->stale = false;
	}
	return true;
}

static int open_signals(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
	sigset_t set;

	sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int find_sort(const char *name, enum top_sort *sort)
{
	for (*sort = 0; name && *sort < SORT_COUNT; (*sort)++) {
		if (strcmp(name, top_sorts[*sort]) == 0)
			return EXIT_CODE_OK;
	}
	if (!name)
		return EXIT_CODE_OK;
	fprintf(stderr, "softhca: no key to sort by: %s (messages, qpn, pid, state)\n", name);
	return EXIT_CODE_USAGE;
}

int view_top(struct connection *c, const struct request *r)
{
	struct top t = {.c = c, .r = r, .choice = {.pid = r->pid, .state = r->state}};
	int code = find_sort(r->sort, &t.choice.sort);
	bool answered;

	if (!code)
		code = check_state(r);
	if (code)
		return code;
	t.choice.filter = t.filter;
	if (!r->batch && (tcgetattr(STDIN_FILENO, &t.before) || !isatty(STDOUT_FILENO))) {
		fputs("softhca: top wants a terminal; --batch does without\n", stderr);
		return EXIT_CODE_USAGE;
	}
	t.signals = open_signals();
	if (!r->batch)
		screen_on(&t);
	answered = watch(&t);
	screen_off(&t);
	look_free(&t.then);
	look_free(&t.now);
	close(t.signals);
	if (answered)
		return EXIT_CODE_OK;
	fputs(r->hca ? "softhca: the daemon does not answer, or has no such HCA\n"
		     : "softhca: the daemon does not answer any more\n",
	      stderr);
	return EXIT_CODE_FAILURE;
}
