/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_TIMER_H
#define STAGE_TIMER_H
/* Measures a tick of TimerControl, with few and with many timers armed. */

/* EAL is up. Prints ns per tick with 0, 2^10 and 2^14 queue pairs whose two timers are armed for a
 * time far ahead, as a ratio to none, measured for about `ms` in all. 0; 1: the cost is not flat,
 * or the HCA could not be made. */
int timer_main(unsigned ms);

#endif
