/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONFIG_PLACE_H
#define CONFIG_PLACE_H
/* Parsers of addresses, CPUs and placements. All: 0; -EINVAL with *why. */
#include "config/config.h"
#include "words.h"

int parse_addresses(const char *value, struct port_addresses *to, struct reason *why);
int parse_gateways(const char *value, struct port_gateways *g, struct reason *why);
int parse_peers(const char *value, struct peer_list *peers, struct reason *why);
int parse_mac(const char *value, uint8_t mac[6], struct reason *why);
/* `words`: of the setting cc, in the order of its values. */
int parse_cc_rules(const char *value, const char *words, struct cc_rules *rules,
		   struct reason *why);

int parse_cpus(const char *value, struct config_cpus *cpus, struct reason *why);
int parse_stages(const char *value, int16_t *cpu, struct reason *why);
int parse_placement(const char *key, const char *value, struct hca_section *hca,
		    struct reason *why);

#endif
