/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers memory through libfabric in each of its three ways and with every set of rights, as
 * fi_mr_test of its fabtests does, which Debian does not package.
 *
 * usage: fabric PROVIDER TYPE DOMAIN, as 'verbs;ofi_rxm' rdm hca0. Exit code 0: all was registered,
 * under keys of its own. On an error: the step on stderr, exit code 1.
 */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { BYTES = 1 << 20 };

static const uint64_t rights[] = {FI_SEND,  FI_RECV,	    FI_READ,
				  FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
enum { RIGHTS = sizeof(rights) / sizeof(rights[0]) };

static void must(const char *step, int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", step, fi_strerror(-rc));
	exit(1);
}

static struct fid_domain *domain_of(char *provider, const char *type, char *domain)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *d;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->name = strdup(domain);
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->ep_attr->type = strcmp(type, "rdm") == 0 ? FI_EP_RDM : FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &d, NULL));
	fi_freeinfo(hints);
	return d;
}

/* Registers the memory in that way. Returns the MR. */
static struct fid_mr *reg(struct fid_domain *d, int way, const struct iovec *memory,
			  uint64_t access)
{
	const struct fi_mr_attr attr = {.mr_iov = memory, .iov_count = 1, .access = access};
	struct fid_mr *mr = NULL;

	if (way == 0)
		must("fi_mr_reg",
		     fi_mr_reg(d, memory->iov_base, memory->iov_len, access, 0, 0, 0, &mr, NULL));
	else if (way == 1)
		must("fi_mr_regv", fi_mr_regv(d, memory, 1, access, 0, 0, 0, &mr, NULL));
	else
		must("fi_mr_regattr", fi_mr_regattr(d, &attr, 0, &mr));
	return mr;
}

static void each_way(struct fid_domain *d, const struct iovec *memory, uint64_t access)
{
	struct fid_mr *mr[3];

	for (int way = 0; way < 3; way++)
		mr[way] = reg(d, way, memory, access);
	if (fi_mr_key(mr[0]) == fi_mr_key(mr[1]) || fi_mr_key(mr[1]) == fi_mr_key(mr[2]))
		must("keys", -FI_ENOKEY);
	for (int way = 0; way < 3; way++)
		must("fi_close", fi_close(&mr[way]->fid));
}

int main(int argc, char **argv)
{
	struct iovec memory = {.iov_base = malloc(BYTES)};
	struct fid_domain *d;

	if (argc != 4 || !memory.iov_base)
		return 2;
	setenv("FI_MR_CACHE_MAX_COUNT", "0", 1); /* else the provider registers it once for all */
	d = domain_of(argv[1], argv[2], argv[3]);
	for (memory.iov_len = 1; memory.iov_len <= BYTES; memory.iov_len *= 32)
		for (unsigned int set = 1; set < 1 << RIGHTS; set++) {
			uint64_t access = 0;

			for (int i = 0; i < RIGHTS; i++)
				access |= set & 1u << i ? rights[i] : 0;
			each_way(d, &memory, access);
		}
	return 0;
}
