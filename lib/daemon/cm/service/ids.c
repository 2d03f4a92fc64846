/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Identifiers as such: creation, states (ids.def), device, Q_Key. Runs in the CM thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "ids.h"
#include "numbers.h"

#define MACHINE	      ucm_id_machine
#define MACHINE_NAME  "Identifier"
#define MACHINE_ID(s) UCM_##s
#define MACHINE_DEF   "service/ids.def"
#include "pipeline/machine_define.h"

const char *ucm_state_name(unsigned int state)
{
	static const char *const names[] = {
#define STATE(id, text) #id,
#include "ids.def"
	};

	return names[state];
}

void ucm_id_step(struct ucm_id *id, enum ucm_state next)
{
	MACHINE_STEP(ucm_id_machine, id->state, next);
	id->state = (uint8_t)next;
}

struct cm_device *ucm_device(const struct ucm_id *id)
{
	ASSERT(id->at.chosen);
	return &id->channel->service->devices[id->at.device];
}

bool ucm_may_use(const struct ucm_channel *ch, unsigned int device)
{
	const struct cm_device *d = &ch->service->devices[device];

	return !d->removed && cm_channel_uses(&ch->hcas, d->name);
}

void ucm_id_choose(struct ucm_id *id, const struct ucm_choice *choice)
{
	id->at = *choice;
	id->at.chosen = true;
}

struct ucm_id *ucm_id_new(struct ucm_channel *ch, uint16_t space, uint8_t qp_type)
{
	struct ucm_id *id;

	if (share_take(&ch->shares, SHARE_cm_ids, 1))
		return NULL;
	id = calloc(1, sizeof(*id));
	if (!id) {
		share_give(&ch->shares, SHARE_cm_ids, 1);
		return NULL;
	}
	id->channel = ch;
	id->number = UCM_NO_NUMBER;
	id->state = UCM_IDLE;
	id->space = space;
	id->qp_type = qp_type;
	id->psn = ucm_random() & 0xffffff;
	TAILQ_INIT(&id->events);
	LIST_INIT(&id->memberships);
	LIST_INSERT_HEAD(&ch->ids, id, of_channel);
	return id;
}

int ucm_id_find(struct ucm_channel *ch, uint32_t number, struct ucm_id **id)
{
	*id = ucm_number_find(&ch->service->ids, number);
	if (!*id)
		return -ENOENT;
	return (*id)->channel == ch ? 0 : -EINVAL;
}

int ucm_id_find_on_device(struct ucm_channel *ch, uint32_t number, struct ucm_id **id)
{
	int ret = ucm_id_find(ch, number, id);

	if (ret)
		return ret;
	return (*id)->at.chosen ? 0 : -EINVAL;
}

int ucm_set_qkey(struct ucm_id *id, uint32_t qkey)
{
	if (id->qkey)
		return qkey && qkey != id->qkey ? -EINVAL : 0;
	id->qkey = qkey ? qkey : UCM_QKEY;
	return 0;
}
