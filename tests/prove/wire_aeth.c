/* SPDX-License-Identifier: BSD-3-Clause */
/* Contracts of wire/aeth.h, and of the tables in aeth.c, whose values the provers see. */
#include "facts.h"
#include "aeth.c"

/*@ assigns \nothing;
    ensures syndrome < 0x20 ==> \result == AETH_ACK;
    ensures 0x20 <= syndrome < 0x40 ==> \result == AETH_RNR;
    ensures 0x60 <= syndrome < 0x60 + AETH_NAK_CODES ==> \result == AETH_NAK;
    ensures 0x40 <= syndrome < 0x60 || 0x60 + AETH_NAK_CODES <= syndrome ==> \result == AETH_RESERVED; */
static inline enum aeth_kind aeth_kind(uint8_t syndrome);

/*@ assigns \nothing;
    ensures \result == (syndrome & 0x1f); */
static inline uint8_t aeth_value(uint8_t syndrome);

/*@ assigns \nothing;
    ensures \result == (credit_code & 0x1f); */
static inline uint8_t aeth_ack(uint8_t credit_code);

/*@ assigns \nothing;
    ensures \result == (0x20 | (timer_code & 0x1f)); */
static inline uint8_t aeth_rnr(uint8_t timer_code);

/*@ requires code < AETH_NAK_CODES;
    assigns \nothing;
    ensures \result == (0x60 | (code & 0x1f)); */
static inline uint8_t aeth_nak(enum aeth_nak code);

/*@ assigns \nothing;
    ensures \result == aeth_credit_table[credit_code & 0x1f]; */
static inline uint32_t aeth_credits(uint8_t credit_code);

/*@ assigns \nothing;
    ensures posted < 2 ==> \result == posted;
    ensures posted >= 32768 ==> \result == 30;
    ensures \result <= 30; */
static inline uint8_t aeth_credit_code(uint32_t posted);

/*@ assigns \nothing;
    ensures 10000 <= \result <= 655360000; */
static inline uint32_t aeth_rnr_ns(uint8_t timer_code);

/*@ assigns \nothing;
    ensures code == 1 ==> \result == 256;
    ensures code == 2 ==> \result == 512;
    ensures code == 3 ==> \result == 1024;
    ensures code == 4 ==> \result == 2048;
    ensures code == 5 ==> \result == 4096;
    ensures code < 1 || code > 5 ==> \result == 0; */
static inline uint32_t wire_mtu_bytes(unsigned int code);

/*@ assigns \nothing;
    ensures bytes == 256 ==> \result == 1;
    ensures bytes == 512 ==> \result == 2;
    ensures bytes == 1024 ==> \result == 3;
    ensures bytes == 2048 ==> \result == 4;
    ensures bytes == 4096 ==> \result == 5;
    ensures bytes < 256 || bytes > 4096 ==> \result == 0; */
static inline unsigned int wire_mtu_code(uint32_t bytes);

/*@ requires if_mtu_bytes <= 65535;
    assigns \nothing;
    ensures \result <= 5;
    ensures \result == 0 <==> if_mtu_bytes < 256 + 80;
    ensures \result == 1 <==> 256 + 80 <= if_mtu_bytes < 512 + 80;
    ensures \result == 2 <==> 512 + 80 <= if_mtu_bytes < 1024 + 80;
    ensures \result == 3 <==> 1024 + 80 <= if_mtu_bytes < 2048 + 80;
    ensures \result == 4 <==> 2048 + 80 <= if_mtu_bytes < 4096 + 80;
    ensures \result == 5 <==> 4096 + 80 <= if_mtu_bytes; */
static inline unsigned int wire_mtu_code_of_port(uint32_t if_mtu_bytes);

/*@ requires code < 32;
    assigns \nothing;
    ensures \result; */
static int round_trips(uint8_t code)
{
	return aeth_kind(aeth_ack(code)) == AETH_ACK && aeth_value(aeth_ack(code)) == code &&
	       aeth_kind(aeth_rnr(code)) == AETH_RNR && aeth_value(aeth_rnr(code)) == code;
}

/*@ requires code < AETH_NAK_CODES;
    assigns \nothing;
    ensures \result; */
static int nak_round_trips(uint8_t code)
{
	return aeth_kind(aeth_nak(code)) == AETH_NAK && aeth_value(aeth_nak(code)) == code;
}

/* More credits, longer waits with each code; but timer code 0 is the longest wait. */
static void tables(void)
{
	/*@ assert \forall integer i; 0 <= i < 31 ==> aeth_credit_table[i] < aeth_credit_table[i + 1]; */
	/*@ assert \forall integer i; 1 <= i < 31 ==> aeth_rnr_ns_table[i] < aeth_rnr_ns_table[i + 1]; */
	/*@ assert aeth_rnr_ns_table[31] < aeth_rnr_ns_table[0]; */
}
