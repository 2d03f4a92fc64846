/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of librpma's examples in one program: the server offers a page for everything, the
 * client writes to it, flushes, writes 8 bytes atomically, reads all of it back.
 *
 * usage: rpma server|client ADDRESS PORT. Exit code 0: the data came back, the connection was
 * closed by the client. On an error: the step on stderr, exit code 1.
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 4096 };

static const char atomic_text[8] = "atomic!";

static void must(const char *step, int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s\n", step, rpma_err_2str(rc));
	exit(1);
}

static struct rpma_peer *peer_of(const char *address, enum rpma_util_ibv_context_type where)
{
	struct ibv_context *context;
	struct rpma_peer *peer;

	must("device", rpma_utils_get_ibv_context(address, where, &context));
	must("peer", rpma_peer_new(context, &peer));
	return peer;
}

static struct rpma_mr_local *region(struct rpma_peer *peer, char *at)
{
	struct rpma_mr_local *mr;

	must("region",
	     rpma_mr_reg(peer, at, BYTES,
			 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
				 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			 &mr));
	return mr;
}

static void event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event got;

	must("event", rpma_conn_next_event(conn, &got));
	if (got == wanted)
		return;
	fprintf(stderr, "event: %s\n", rpma_utils_conn_event_2str(got));
	exit(1);
}

/* The last one that was posted has completed, and well. */
static void completion(struct rpma_conn *conn)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	must("queue", rpma_conn_get_cq(conn, &cq));
	must("wait", rpma_cq_wait(cq));
	must("completion", rpma_cq_get_wc(cq, 1, &wc, NULL));
	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
	exit(1);
}

static void end(struct rpma_conn *conn, struct rpma_mr_local *mr, struct rpma_peer *peer)
{
	must("end of the connection", rpma_conn_delete(&conn));
	must("end of the region", rpma_mr_dereg(&mr));
	must("end of the peer", rpma_peer_delete(&peer));
}

static int serve(const char *address, const char *port, char *at)
{
	struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr = region(peer, at);
	char descriptor[256];
	struct rpma_conn_private_data data = {.ptr = descriptor};
	struct rpma_conn_req *request;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	size_t bytes;

	must("listen", rpma_ep_listen(peer, address, port, &ep));
	must("descriptor's size", rpma_mr_get_descriptor_size(mr, &bytes));
	must("descriptor", rpma_mr_get_descriptor(mr, descriptor));
	data.len = (uint8_t)bytes;
	must("request", rpma_ep_next_conn_req(ep, NULL, &request));
	must("accept", rpma_conn_req_connect(&request, &data, &conn));
	event(conn, RPMA_CONN_ESTABLISHED);
	event(conn, RPMA_CONN_CLOSED);
	must("disconnect", rpma_conn_disconnect(conn));
	must("end of listening", rpma_ep_shutdown(&ep));
	end(conn, mr, peer);
	return memcmp(at + BYTES - 8, atomic_text, 8) != 0;
}

static struct rpma_mr_remote *offered(struct rpma_conn *conn)
{
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;

	must("private data", rpma_conn_get_private_data(conn, &data));
	must("offer", rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote));
	return remote;
}

/* Fills the peer's page, and gets it back into a cleared one. */
static int exchange(struct rpma_conn *conn, struct rpma_mr_local *mr, char *at)
{
	struct rpma_mr_remote *remote = offered(conn);

	memset(at, 'x', BYTES);
	must("write", rpma_write(conn, remote, 0, mr, 0, BYTES, RPMA_F_COMPLETION_ON_ERROR, NULL));
	must("atomic write", rpma_atomic_write(conn, remote, BYTES - 8, atomic_text,
					       RPMA_F_COMPLETION_ON_ERROR, NULL));
	must("flush", rpma_flush(conn, remote, 0, BYTES, RPMA_FLUSH_TYPE_VISIBILITY,
				 RPMA_F_COMPLETION_ALWAYS, NULL));
	completion(conn);
	memset(at, 0, BYTES);
	must("read", rpma_read(conn, mr, 0, remote, 0, BYTES, RPMA_F_COMPLETION_ALWAYS, NULL));
	completion(conn);
	must("end of the offer", rpma_mr_remote_delete(&remote));
	return at[0] != 'x' || at[BYTES - 9] != 'x' || memcmp(at + BYTES - 8, atomic_text, 8) != 0;
}

static int connect_to(const char *address, const char *port, char *at)
{
	struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_mr_local *mr = region(peer, at);
	struct rpma_conn_req *request;
	struct rpma_conn *conn;
	int wrong;

	must("request", rpma_conn_req_new(peer, address, port, NULL, &request));
	must("connect", rpma_conn_req_connect(&request, NULL, &conn));
	event(conn, RPMA_CONN_ESTABLISHED);
	wrong = exchange(conn, mr, at);
	must("disconnect", rpma_conn_disconnect(conn));
	event(conn, RPMA_CONN_CLOSED);
	end(conn, mr, peer);
	return wrong;
}

int main(int argc, char **argv)
{
	char *page = aligned_alloc(BYTES, BYTES);

	if (argc != 4 || !page)
		return 2;
	memset(page, 0, BYTES);
	return strcmp(argv[1], "server") == 0 ? serve(argv[2], argv[3], page)
					      : connect_to(argv[2], argv[3], page);
}
