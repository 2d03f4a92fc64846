// SPDX-License-Identifier: BSD-3-Clause
// A card for each HCA: what it carries, what it loses, how long it takes.
import { byId, el } from "./dom.js";
import { Plot } from "./plot.js";

const NAKS_SENT = /^nak_\w+_sent$/, NAKS_RECEIVED = /^nak_\w+_received$/, DROPS = /^drop_/;

const cards = new Map();

function makeCard(name) {
	const card = {
		port: el("span", { class: "faint" }),
		bytes: new Plot("Throughput", "Gbit/s", ["out", "in"]),
		messages: new Plot("Messages", "Mmsg/s", ["out", "in"]),
		repeats: new Plot("Retransmissions", "/s", ["packets", "timeouts"]),
		naks: new Plot("NAKs", "/s", ["sent", "received"]),
		drops: new Plot("Drops", "/s", ["HCA", "port"]),
		trip: new Plot("Round trip", "µs", ["mean", "longest"]),
	};
	card.element = el("article", {}, el("h2", {}, name, " ", card.port), el("div", { class: "plots" },
		...[card.bytes, card.messages, card.repeats, card.naks, card.drops, card.trip].map((plot) => plot.element)));
	byId("hcas").append(card.element);
	return card;
}

// How fast the counters rose whose names match, together.
function rate(then, now, name, seconds) {
	let sum = 0;
	for (const key in now)
		if (typeof name === "string" ? key === name : name.test(key))
			sum += now[key] - (then[key] ?? 0);
	return sum / seconds;
}

// In µs, of the queue pairs that have sent something since: what idle ones measured last is long ago.
function roundTrips(then, now) {
	const before = new Map(then.qps.map((qp) => [qp.qpn, qp.sent]));
	return now.qps.filter((qp) => qp.round_trip_ns && before.has(qp.qpn) && before.get(qp.qpn) !== qp.sent)
		.map((qp) => qp.round_trip_ns / 1000);
}

function addTo(card, then, now, seconds) {
	const a = then.counters, b = now.counters;
	const of = (name, scale = 1) => rate(a, b, name, seconds) * scale;
	const trips = roundTrips(then, now);

	card.bytes.add(of("tx_bytes", 8e-9), of("rx_bytes", 8e-9));
	card.messages.add(of("requests", 1e-6), of("executed", 1e-6));
	card.repeats.add(of("retransmitted_packets"), of("loss_timeouts"));
	card.naks.add(of(NAKS_SENT), of(NAKS_RECEIVED));
	card.drops.add(of(DROPS), rate(then.port_counters, now.port_counters, DROPS, seconds));
	card.trip.add(trips.length ? trips.reduce((x, y) => x + y) / trips.length : null,
		trips.length ? Math.max(...trips) : null);
}

function describe(port) {
	return [port.type, port.device, port.peer && `to ${port.peer}`, `link ${port.link}`,
		port.speed_mbps && `${port.speed_mbps / 1000} Gbit/s`, `MTU ${port.path_mtu}`, ...port.addresses]
		.filter(Boolean).join(" · ");
}

// then: the document before, or null
export function showHcas(then, now, seconds) {
	for (const [name, card] of cards)
		if (!now.hcas[name]) {
			card.element.remove();
			cards.delete(name);
		}
	for (const [name, hca] of Object.entries(now.hcas)) {
		if (!cards.has(name))
			cards.set(name, makeCard(name));
		cards.get(name).port.textContent = describe(hca.port);
		if (then?.hcas[name])
			addTo(cards.get(name), then.hcas[name], hca, seconds);
	}
}

// Nothing is known of that time.
export function skipHcas() {
	for (const card of cards.values())
		for (const plot of Object.values(card))
			if (plot instanceof Plot)
				plot.add(null, null);
}
