/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of queue pairs: every (from, to, service) with what it requires, with each
 * attribute missing and with each foreign one added, against a table written here independently,
 * from ibv_modify_qp()'s description.
 */
#include "command_fixture.h"

#define S 7
/* Letters: one for each attribute bit, in the order of the bits of QP_ATTR_*. */
static const struct {
	char letter;
	uint32_t bit;
} letters[] = {
	{'c', QP_ATTR_CUR_STATE},
	{'e', QP_ATTR_EN_SQD_ASYNC_NOTIFY},
	{'a', QP_ATTR_ACCESS},
	{'k', QP_ATTR_PKEY_INDEX},
	{'p', QP_ATTR_PORT},
	{'q', QP_ATTR_QKEY},
	{'v', QP_ATTR_AV},
	{'m', QP_ATTR_PATH_MTU},
	{'t', QP_ATTR_TIMEOUT},
	{'r', QP_ATTR_RETRY_CNT},
	{'n', QP_ATTR_RNR_RETRY},
	{'R', QP_ATTR_RQ_PSN},
	{'x', QP_ATTR_MAX_RD_ATOMIC},
	{'i', QP_ATTR_MIN_RNR_TIMER},
	{'S', QP_ATTR_SQ_PSN},
	{'X', QP_ATTR_MAX_DEST_RD_ATOMIC},
	{'d', QP_ATTR_DEST_QPN},
};
#define LETTERS (sizeof(letters) / sizeof(letters[0]))

struct expected {
	enum qp_state from, to;
	const char *required[3], *optional[3]; /* by service; NULL: no such transition */
};
static const struct expected expected[] = {
	{QP_RST, QP_INIT, {"kpa", "kpa", "kpq"}, {"", "", ""}},
	{QP_INIT, QP_INIT, {"", "", ""}, {"kpa", "kpa", "kpq"}},
	{QP_INIT, QP_RTR, {"vmdRXi", "vmdR", ""}, {"ak", "ak", "kq"}},
	{QP_RTR, QP_RTS, {"Strnx", "S", "S"}, {"cai", "ca", "cq"}},
	{QP_RTS, QP_RTS, {"", "", ""}, {"cai", "ca", "cq"}},
	{QP_SQE, QP_RTS, {NULL, "", ""}, {NULL, "ca", "cq"}},
	{QP_RTS, QP_SQD, {"", "", ""}, {"e", "e", "e"}},
	{QP_SQD, QP_SQD, {"", "", ""}, {"pvtrnxXaki", "vak", "kq"}},
	{QP_SQD, QP_RTS, {"", "", ""}, {"cai", "ca", "cq"}},
};

static uint32_t mask_of(const char *s)
{
	uint32_t mask = 0;

	for (; *s; s++)
		for (unsigned int i = 0; i < LETTERS; i++)
			if (letters[i].letter == *s)
				mask |= letters[i].bit;
	return mask;
}

/* True if the transition exists; to RST and ERR no attributes belong. */
static bool expect(enum qp_state from, enum qp_state to, int service, uint32_t *required,
		   uint32_t *optional)
{
	*required = *optional = 0;
	if (to == QP_RST || to == QP_ERR)
		return !(from == QP_RST && to == QP_ERR);
	for (unsigned int i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct expected *e = &expected[i];

		if (e->from != from || e->to != to || !e->required[service])
			continue;
		*required = mask_of(e->required[service]);
		*optional = mask_of(e->optional[service]);
		return true;
	}
	return false;
}

static struct command_fixture f;

/* Puts the QP into a state by force, then tries. */
static enum ceu_status attempt(enum qp_state from, enum qp_state to, int service, uint32_t mask)
{
	struct ceu_modify modify = command_attributes();
	int op = ceu_modify_op(from, to);
	struct qp *q;
	enum ceu_status status;

	if (op == CEU_BAD_TRANSITION)
		return CEU_BAD_SYS_STATE;
	command_make_qp(&f, QPN, (enum qp_service)service);
	q = qp_find(&f.qps, QPN);
	q->state = (uint8_t)from;
	modify.attr.mask = mask;
	modify.attr.cur_state = from;
	status = ceu_exec(f.ceu, (uint8_t)op, QPN, &modify, sizeof(modify), NULL, 0);
	assert_int_equal(q->state, status == CEU_OK ? to : from);
	command_free_qp(&f, QPN);
	return status;
}

TEST(modify__every_transition_and_mask)
{
	unsigned int rows = 0, tries = 0;

	for (int from = 0; from < S; from++)
		for (int to = 0; to < S; to++)
			for (int service = 0; service < 3; service++) {
				uint32_t required, optional;
				bool exists = expect((enum qp_state)from, (enum qp_state)to,
						     service, &required, &optional);
				bool ok = attempt((enum qp_state)from, (enum qp_state)to, service,
						  required) == CEU_OK;

				if (ok != exists)
					fail_msg("%d to %d of service %d: %s", from, to, service,
						 ok ? "allowed" : "refused");
				rows += exists;
				if (!exists)
					continue;
				for (unsigned int i = 0; i < LETTERS; i++) {
					uint32_t bit = letters[i].bit;
					bool want = !(required & bit) && (optional & bit);
					uint32_t mask = required ^ bit;

					if (!(required & bit) && !want)
						mask = required | bit;
					ok = attempt((enum qp_state)from, (enum qp_state)to,
						     service, mask) == CEU_OK;
					if (ok != want)
						fail_msg("%d to %d of service %d with '%c' "
							 "changed: %s",
							 from, to, service, letters[i].letter,
							 ok ? "allowed" : "refused");
					tries++;
				}
				assert_int_equal(attempt((enum qp_state)from, (enum qp_state)to,
							 service,
							 required | optional | QP_ATTR_STATE),
						 CEU_OK);
			}
	print_message("%u transitions, %u masks\n", rows, tries);
	assert_true(rows > 60);
}

TEST(modify__wrong_current_state_is_refused)
{
	struct ceu_modify modify = command_attributes();

	command_make_qp(&f, QPN, SERVICE_UC);
	qp_find(&f.qps, QPN)->state = QP_RTS;
	modify.attr.mask = QP_ATTR_CUR_STATE;
	modify.attr.cur_state = QP_SQD;
	assert_int_equal(TELL(CEU_RTS2RTS, QPN, modify), CEU_BAD_PARAM);
	command_free_qp(&f, QPN);
}

/* A command that belongs to another transition than the QP's state allows. */
TEST(modify__each_opcode_from_each_state)
{
	static const uint8_t ops[] = {CEU_RST2INIT, CEU_INIT2INIT, CEU_INIT2RTR, CEU_RTR2RTS,
				      CEU_RTS2RTS,  CEU_SQERR2RTS, CEU_2ERR,	 CEU_RTS2SQD,
				      CEU_SQD2RTS,  CEU_2RST,	   CEU_SQD2SQD};
	struct ceu_modify modify = {0};
	unsigned int accepted = 0;

	for (unsigned int i = 0; i < sizeof(ops); i++)
		for (int from = 0; from < S; from++) {
			command_make_qp(&f, QPN, SERVICE_UD);
			qp_find(&f.qps, QPN)->state = (uint8_t)from;
			accepted += TELL(ops[i], QPN, modify) == CEU_OK;
			command_free_qp(&f, QPN);
		}
	/* 7 to RST, 6 to ERR, and those that require nothing: INIT2INIT, INIT2RTR, RTS2RTS,
	 * SQERR2RTS, RTS2SQD, SQD2RTS, SQD2SQD */
	assert_int_equal(accepted, 7 + 6 + 7);
}

TEST(ranges__boundaries)
{
	static const struct {
		uint32_t bit;
		size_t offset, bytes;
		uint32_t good, bad;
	} cases[] = {
#define FIELD(bit, field, good, bad)                                                               \
	{bit, offsetof(struct control_qp_attr, field),                                             \
	 sizeof(((struct control_qp_attr *)0)->field), good, bad}
		FIELD(QP_ATTR_ACCESS, access, 0x30f, 0x10),
		FIELD(QP_ATTR_ACCESS, access, 0, 0x80000000),
		FIELD(QP_ATTR_PATH_MTU, path_mtu, 5, 6),
		FIELD(QP_ATTR_PATH_MTU, path_mtu, 1, 0),
		FIELD(QP_ATTR_DEST_QPN, dest_qpn, 0xffffff, 0x1000000),
		FIELD(QP_ATTR_RQ_PSN, rq_psn, 0xffffff, 0x1000000),
		FIELD(QP_ATTR_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, READS_MAX, READS_MAX + 1),
		FIELD(QP_ATTR_MIN_RNR_TIMER, min_rnr_timer, 31, 32),
		FIELD(QP_ATTR_PKEY_INDEX, pkey_index, 0, 1),
		FIELD(QP_ATTR_AV, av.flow_label, 0xfffff, 0x100000),
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int good = 0; good < 2; good++) {
			struct ceu_modify modify = command_attributes();
			uint32_t value = good ? cases[i].good : cases[i].bad;

			memcpy((uint8_t *)&modify.attr + cases[i].offset, &value, cases[i].bytes);
			modify.attr.mask = mask_of("vmdRXi") | (cases[i].bit & mask_of("ak"));
			command_make_qp(&f, QPN, SERVICE_RC);
			qp_find(&f.qps, QPN)->state = QP_INIT;
			assert_int_equal(TELL(CEU_INIT2RTR, QPN, modify),
					 good ? CEU_OK : CEU_BAD_PARAM);
			command_free_qp(&f, QPN);
		}
}

TEST(ranges__address_of_another_family)
{
	struct ceu_modify modify = command_attributes();

	modify.attr.mask = mask_of("vmdRXi");
	memset(modify.attr.av.dgid, 0x20, 16);
	command_make_qp(&f, QPN, SERVICE_RC);
	qp_find(&f.qps, QPN)->state = QP_INIT;
	assert_int_equal(TELL(CEU_INIT2RTR, QPN, modify), CEU_BAD_PARAM);
	memset(modify.attr.av.dgid, 0, 16);
	assert_int_equal(TELL(CEU_INIT2RTR, QPN, modify), CEU_BAD_PARAM);
	command_free_qp(&f, QPN);
}

static int setup(void **state)
{
	command_fixture_make(&f);
	return 0;
}

static int teardown(void **state)
{
	command_fixture_free(&f);
	return 0;
}

TEST_GROUP(.setup = setup, .teardown = teardown);
