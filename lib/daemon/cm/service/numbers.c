/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of identifiers and memberships: a growing array, lowest free number first, as programs
 * are used to from kernels. Runs in the CM thread.
 */
#include <stdlib.h>
#include <sys/random.h>
#include "numbers.h"

static bool numbers_grow(struct ucm_numbers *n)
{
	uint32_t room = n->room ? 2 * n->room : 64;
	void **at;

	if (n->room >= UCM_NUMBERS)
		return false;
	at = realloc(n->at, room * sizeof(*at));
	if (!at)
		return false;
	memset(at + n->room, 0, (room - n->room) * sizeof(*at));
	n->at = at;
	n->room = room;
	return true;
}

uint32_t ucm_number_take(struct ucm_numbers *n, void *who)
{
	uint32_t number = n->low;

	while (number < n->room && n->at[number])
		number++;
	n->low = number;
	if (number == n->room && !numbers_grow(n))
		return UCM_NO_NUMBER;
	n->at[number] = who;
	n->low = number + 1;
	return number;
}

void ucm_number_free(struct ucm_numbers *n, uint32_t number)
{
	ASSERT(number < n->room && n->at[number]);
	n->at[number] = NULL;
	if (number < n->low)
		n->low = number;
}

void *ucm_number_find(const struct ucm_numbers *n, uint32_t number)
{
	return number < n->room ? n->at[number] : NULL;
}

uint32_t ucm_random(void)
{
	uint32_t word = 0;

	/* Without entropy there are no secrets, but the numbers differ. */
	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		word = (uint32_t)rand();
	return word;
}
