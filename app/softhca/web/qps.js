// SPDX-License-Identifier: BSD-3-Clause
// The table of queue pairs, and the life of the one that was clicked, as far as this page has seen it.
import { byId, digits, el, Table } from "./dom.js";
import { Plot } from "./plot.js";

const ROWS_MAX = 200, EVENTS_MAX = 50, PSN_MASK = 0xffffff;
const COLUMNS = [["HCA"], ["QPN", 1], ["service"], ["state"], ["process"], ["peer QPN", 1], ["next PSN", 1], ["unacked PSN", 1],
	["outstanding", 1], ["sent/s", 1], ["received/s", 1], ["round trip µs", 1]];
// Of the daemon's answer on one queue pair: [key, what is said when it rises].
const HAPPENINGS = [["refused_packets", "packets refused"], ["refused_requests", "requests refused"],
	["requests_ahead", "requests ahead of the expected PSN"], ["ghosts", "responses outside the outstanding PSNs"]];

let table = null, chosen = null;
const states = new Map(), events = new Map(); // by "HCA QPN"

const keyOf = (hca, qp) => `${hca} ${qp.qpn}`;

export const outstanding = (qp) =>
	(qp.next_psn === undefined ? null : (qp.next_psn - qp.unacked_psn) & PSN_MASK);

// How many messages passed; the daemon's number wraps.
const passed = (then, now, wraps) => (then === undefined ? null : (now - then + wraps) % wraps);

function note(key, what) {
	const list = events.get(key) ?? [];
	list.push({ at: new Date(), what });
	events.set(key, list.slice(-EVENTS_MAX));
}

function noteState(key, qp) {
	const before = states.get(key);
	if (before !== qp.state)
		note(key, before ? `${before} → ${qp.state}` : `first seen: ${qp.state}`);
	states.set(key, qp.state);
}

function forget(seen) {
	for (const key of states.keys())
		if (!seen.has(key)) {
			states.delete(key);
			if (key === chosen?.key)
				note(key, "destroyed");
			else
				events.delete(key);
		}
}

function processes(now) {
	const names = new Map();
	for (const client of now.clients)
		names.set(`${client.hca} ${client.index}`, `${client.command || "?"} (${client.pid})`);
	return names;
}

function rowsOf(then, now, seconds) {
	const names = processes(now), rows = [];
	for (const [hca, { qps }] of Object.entries(now.hcas)) {
		const before = new Map(then?.hcas[hca]?.qps.map((qp) => [qp.qpn, qp]));
		for (const qp of qps) {
			const old = before.get(qp.qpn), sent = passed(old?.sent, qp.sent, 2 ** 32);
			const received = passed(old?.received, qp.received, 2 ** 24);
			rows.push({ key: keyOf(hca, qp), hca, qp, rate: (sent ?? 0) + (received ?? 0), process: names.get(`${hca} ${qp.client}`) ?? "",
				kind: qp.state === "ERR" || qp.state === "SQE" ? "bad" : "",
				sent: sent === null ? null : sent / seconds, received: received === null ? null : received / seconds });
		}
	}
	return rows;
}

const secret = (value) => value ?? "–";

function cellsOf({ hca, qp, process, sent, received }) {
	return [hca, qp.qpn, qp.service, qp.state, process, secret(qp.dest_qpn), secret(qp.next_psn), secret(qp.unacked_psn),
		secret(outstanding(qp)), digits(sent), digits(received), qp.round_trip_ns ? digits(qp.round_trip_ns / 1000) : "–"];
}

// then: the document before, or null
export function showQps(then, now, seconds) {
	table ??= new Table(byId("list"), COLUMNS, (key) => choose(...key.split(" ")));
	const all = rowsOf(then, now, seconds), wanted = byId("filter").value.trim().toLowerCase();
	for (const { key, qp } of all)
		noteState(key, qp);
	forget(new Set(all.map(({ key }) => key)));
	for (const row of all)
		row.cells = cellsOf(row);
	const found = all.filter(({ cells }) => cells.slice(0, 5).join(" ").toLowerCase().includes(wanted));
	found.sort((a, b) => a.hca.localeCompare(b.hca) || a.qp.qpn - b.qp.qpn);
	for (const row of found)
		if (row.key === chosen?.key)
			row.kind += " chosen";
	table.update(found.slice(0, ROWS_MAX));
	byId("rest").textContent = found.length > ROWS_MAX ? `${found.length - ROWS_MAX} more; a filter finds them`
		: all.length === 0 ? "none" : found.length === 0 ? "none passes the filter" : "";
	if (chosen)
		chosen.row = all.find(({ key }) => key === chosen.key);
}

// ---- one queue pair ----

// Remembers it in the address, too.
function remember(...names) {
	const [key] = location.hash.split("/");
	history.replaceState(null, "", [key, ...names.map(encodeURIComponent)].join("/"));
}

export function choose(hca, qpn) {
	remember(hca, qpn);
	chosen = { key: `${hca} ${qpn}`, hca, qpn, last: null,
		messages: new Plot("Messages", "/s", ["sent", "received"]),
		outstanding: new Plot("In flight", "packets", ["outstanding", "window"]),
		rate: new Plot("Rate limit", "Gbit/s", ["requests", "READ responses"]),
		trip: new Plot("Round trip", "µs", ["smoothed"]),
		retries: new Plot("Retries", "used", ["loss", "RNR"]),
		title: el("h2"), summary: el("p"), events: el("ol"), fields: el("dl") };
	const close = el("button", { type: "button" }, "Close");
	close.onclick = () => {
		chosen = null;
		remember();
		byId("life").hidden = true;
	};
	byId("life").replaceChildren(el("header", {}, chosen.title, close), chosen.summary,
		el("div", { class: "plots" }, ...[chosen.messages, chosen.outstanding, chosen.rate, chosen.trip, chosen.retries].map((plot) => plot.element),
			el("div", {}, el("h3", {}, "What happened"), chosen.events)),
		el("details", {}, el("summary", {}, "All fields"), chosen.fields));
	byId("life").hidden = false;
	byId("life").scrollIntoView({ block: "nearest" });
	showTitle();
	listEvents();
}

// Which queue pair the page wants to know all about: {hca, qpn}; null: none.
export const wanted = () => (chosen && states.has(chosen.key) ? { hca: chosen.hca, qpn: chosen.qpn } : null);

function listEvents() {
	chosen.events.replaceChildren(...(events.get(chosen.key) ?? []).toReversed().map(({ at, what }) =>
		el("li", {}, el("time", {}, at.toLocaleTimeString("en-GB")), " ", what)));
}

function noteHappenings(then, now) {
	for (const [field, words] of HAPPENINGS)
		if (then && now[field] > then[field])
			note(chosen.key, `${now[field] - then[field]} ${words}`);
	if (then && now.retry_left < then.retry_left)
		note(chosen.key, `retry: ${now.retry_left} of ${now.retry_cnt} left`);
	if (then && now.rnr_left < then.rnr_left)
		note(chosen.key, `receiver not ready: ${now.rnr_left} retries left`);
	if (then && now.recovering && !then.recovering)
		note(chosen.key, "a loss; recovery begins");
}

function showTitle() {
	chosen.title.textContent = `Queue pair ${chosen.qpn} of ${chosen.hca}`;
	chosen.summary.textContent = chosen.row ? `${chosen.row.qp.service} · ${chosen.row.qp.state} · ${chosen.row.process}` : "";
}

function listFields(answer) {
	const flat = { ...answer.qp, ...answer };
	delete flat.qp;
	chosen.fields.replaceChildren(...Object.entries(flat).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
}

// 0: there is none, without congestion control
const limit = (mbps) => (mbps ? mbps / 1000 : null);

// answer: the daemon's on that queue pair; null: there is none
export function showLife(answer) {
	if (!chosen)
		return;
	listEvents();
	if (!answer || answer.hca !== chosen.hca || String(answer.qp.qpn) !== chosen.qpn) {
		if (!chosen.row)
			chosen.summary.textContent = "There is no such queue pair any more.";
		chosen.last = null;
		return;
	}
	const { qp } = answer, { row } = chosen;
	noteHappenings(chosen.last, answer);
	showTitle();
	chosen.summary.textContent += ` · to ${secret(answer.peer_ip).replace("::ffff:", "")} QPN ${secret(qp.dest_qpn)} · waits for: ${answer.waits_for}`;
	chosen.messages.add(row?.sent ?? null, row?.received ?? null);
	chosen.outstanding.add(outstanding(qp), answer.window_sixteenths / 16);
	chosen.rate.add(limit(answer.rate_mbps), limit(answer.read_rate_mbps));
	chosen.trip.add(qp.round_trip_ns ? qp.round_trip_ns / 1000 : null);
	chosen.retries.add(answer.retry_cnt - answer.retry_left, answer.rnr_retry - answer.rnr_left);
	listFields(answer);
	chosen.last = answer;
}
