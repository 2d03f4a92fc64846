#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The exporter: its answers are as Prometheus wants them, and grow with the traffic; it outlives the daemon.
. "$(dirname "$0")/lib.sh"

need_command curl
ring_config 'loss = 0.02' >"$SCRATCH/ring.conf"
daemon ring -c "$SCRATCH/ring.conf"
export SOFTHCA_SOCKET=$SCRATCH/ring.sock
served=$started

http_server exporter
exporter=$started

# scrape FILE [ARGUMENTS]: what the exporter answers, and its HTTP status.
scrape() { curl -s -o "$SCRATCH/$1" -w '%{http_code}' "${@:2}" "$url"; }
status_is() { [ "$(scrape answer "${@:2}")" = "$1" ]; }
up_is() { status_is 200 && grep -qx "softhca_up $1" "$SCRATCH/answer"; }

check 'it answers' status_is 200
cp "$SCRATCH/answer" "$SCRATCH/before"
check 'HEAD' status_is 200 -I
check 'GET only' status_is 405 -X POST
url=${url%metrics}nonsense check 'there is only /metrics' status_is 404
pair ring write_bw -s 4096 -n 1000
pair ring read_bw -s 4096 -n 100
check 'it answers again' status_is 200
check 'the format, and what grows' "$(dirname "$0")/metrics/check.py" "$SCRATCH/before" "$SCRATCH/answer" \
	4096000 'node_infiniband_port_data_transmitted_bytes_total{device="left",port="1"}' \
	1000 'node_infiniband_port_packets_received_total{device="right",port="1"}' \
	1000 'rdma_sent_pkts_total{device="left",port="1"}' \
	1 'rdma_out_of_sequence_total{device="right",port="1"}' \
	1 'softhca_retransmitted_packets_total{hca="left"}' \
	1 'softhca_port_impaired_lost_total{hca="left"}' \
	1000 'softhca_fifo_put_total{hca="left",engine="0",fifo="dp_rtc"}'
# no_panel_empty DASHBOARD: every metric that it asks for is there.
no_panel_empty() {
	local metric
	for metric in $(grep -oE '\b(softhca|rdma|node_infiniband)_[a-z0-9_]+' "$1" | sort -u); do
		grep -q "^$metric[{ ]" "$SCRATCH/answer" || { echo "no $metric" && return 1; }
	done
}
check "the dashboard's metrics" no_panel_empty "$(dirname "$0")/../../config/grafana.json"
given promtool check 'promtool' promtool check metrics <"$SCRATCH/answer"
check 'the same without HTTP' grep -qx 'softhca_up 1' <("$TOOL" metrics)

# Removed while it asks: only that HCA is missing.
without_left() {
	rm -f "$SCRATCH/between.sock"
	"$(dirname "$0")/metrics/gone.py" "$SCRATCH/between.sock" "$SOFTHCA_SOCKET" left \
		"$TOOL" --socket "$SCRATCH/between.sock" "$@" >"$SCRATCH/answer"
}
shows_right() { grep -q "$1" "$SCRATCH/answer"; }
check 'an HCA that goes leaves the others' eval "without_left metrics && shows_right 'retransmitted_packets_total{hca=\"right\"}' && shows_right 'softhca_up 1'"
check 'in one document, too' eval "without_left --json all && shows_right '\"hcas\":{\"right\"'"

check 'the daemon ends cleanly' stop "$served"
check 'the exporter says that it is gone' up_is 0
daemon ring -c "$SCRATCH/ring.conf"
check 'and that it is back' wait_for 10 up_is 1
check 'SIGTERM ends it' stop "$exporter"
finish
