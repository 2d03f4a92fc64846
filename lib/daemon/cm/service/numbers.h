/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_NUMBERS_H
#define CM_SERVICE_NUMBERS_H
/* Numbers of identifiers and memberships, and random ones. The CM thread's alone. */
#include "ucm.h"

/* UCM_NO_NUMBER: none left, or no memory. */
uint32_t ucm_number_take(struct ucm_numbers *n, void *who);
void ucm_number_free(struct ucm_numbers *n, uint32_t number);
/* NULL: not in use. */
void *ucm_number_find(const struct ucm_numbers *n, uint32_t number);
uint32_t ucm_random(void);

#endif
