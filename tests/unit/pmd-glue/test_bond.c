/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of two devices carry traffic, as their links come and go. */
#include "test.h"
#include "bond.h"

TEST(bond__follows_the_links)
{
	enum { LEFT = BOND_LEFT, JOINED = BOND_JOINED, BOTH = BOND_LEFT | BOND_JOINED };
	static const struct {
		uint64_t at_ms; /* 0: a new bond */
		enum port_bond_mode mode;
		unsigned up, used, changes;
	} rows[] = {
		/* at the start no link has to prove itself */
		{0, BOND_ACTIVE_BACKUP, 3, 1, 0},     {10, BOND_ACTIVE_BACKUP, 2, 2, BOTH},
		{20, BOND_ACTIVE_BACKUP, 3, 2, 0},    /* it stays */
		{30, BOND_ACTIVE_BACKUP, 1, 1, BOTH}, /* not settled, but there is no other */
		{40, BOND_ACTIVE_BACKUP, 0, 1, 0},    {50, BOND_ACTIVE_BACKUP, 2, 2, BOTH},
		{0, BOND_ACTIVE_BACKUP, 2, 2, BOTH},  {0, BOND_BALANCE_XOR, 3, 3, 0},
		{10, BOND_BALANCE_XOR, 1, 1, LEFT},   {20, BOND_BALANCE_XOR, 3, 1, 0},
		{119, BOND_BALANCE_XOR, 3, 1, 0},     {120, BOND_BALANCE_XOR, 3, 3, JOINED},
		{130, BOND_BALANCE_XOR, 2, 2, LEFT},  {140, BOND_BALANCE_XOR, 3, 2, 0}, /* flaps: */
		{200, BOND_BALANCE_XOR, 2, 2, 0},     {210, BOND_BALANCE_XOR, 3, 2, 0},
		{300, BOND_BALANCE_XOR, 3, 2, 0},     {310, BOND_BALANCE_XOR, 3, 3, JOINED},
		{320, BOND_BALANCE_XOR, 0, 3, 0}, /* neither is better */
		{330, BOND_BALANCE_XOR, 1, 1, LEFT},  {0, BOND_BALANCE_XOR, 2, 2, LEFT},
	};
	struct port_config c = {.updelay = 100};
	struct bond b;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned changes;

		c.bond_mode = rows[i].mode;
		if (rows[i].at_ms == 0)
			bond_begin(&b, &c);
		changes = bond_update(&b, &c, rows[i].up, rows[i].at_ms);
		if (changes != rows[i].changes || b.used != rows[i].used)
			fail_msg("row %u: changes %u, used %u", i, changes, b.used);
	}
}

TEST(ways__neighbours_alternate)
{
	for (unsigned port = 0xc000; port < 0xffff; port++)
		assert_int_equal(bond_device(port) + bond_device(port + 1), 1);
}
