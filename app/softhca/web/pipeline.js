// SPDX-License-Identifier: BSD-3-Clause
// The pipeline of one engine, drawn from the daemon's topology: how busy each module is, how full each ring.
import { byId, digits, el, svg, Table } from "./dom.js";
import { layOut } from "./layout.js";

const WIDE = { margin: 168, gap: 72, height: 58, pitch: 15, lane: 15, title: 0 };
const NARROW = { margin: 4, gap: 14, height: 62, pitch: 11, lane: 7, title: 16 };
const NARROW_BELOW = 700, RING_WIDTH = 40, RING_HEIGHT = 7;
// What lies outside of the pipeline.
const OUTSIDE = { dbp: "⇐ doorbells", rxa: "⇐ port", txa: "⇒ port" };

let topology = null, drawn = null, engine = null, rings = null;

const text = (x, y, kind, words = "") => svg("text", { x, y, class: kind }, words);

// Where the gauge of a ring goes: the middle of its path's longest horizontal piece.
function gaugePlace(path) {
	let best = null;
	for (let i = 1; i < path.length; i++) {
		const [[x1, y1], [x2, y2]] = [path[i - 1], path[i]];
		if (y1 === y2 && (!best || Math.abs(x2 - x1) > best.length))
			best = { x: (x1 + x2) / 2, y: y1, length: Math.abs(x2 - x1) };
	}
	return best;
}

function drawModule(box, called) {
	const narrow = box.w < 120, small = narrow ? "number small" : "number";
	const parts = {
		load: svg("rect", { x: box.x, y: box.y + box.h - 4, width: 0, height: 4, class: "load" }),
		cost: text(box.x + 7, box.y + (narrow ? 32 : 47), small),
		busy: narrow ? text(box.x + 7, box.y + 46, small) : text(box.x + box.w - 7, box.y + 17, "number end"),
		hint: svg("title"),
	};
	parts.frame = svg("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 4, class: called ? "module called" : "module" });
	parts.element = svg("g", {}, parts.hint, parts.frame, parts.load, text(box.x + 7, box.y + 17, "name", box.name),
		parts.cost, parts.busy);
	if (!narrow)
		parts.element.append(text(box.x + 40, box.y + 17, "faint", OUTSIDE[box.name] ?? ""), text(box.x + 7, box.y + 32, "faint", box.module.module));
	return parts;
}

function drawEdge(edge) {
	const place = gaugePlace(edge.path), ring = edge.kind === "channel" && place.length >= RING_WIDTH + 14;
	const line = svg("path", { class: edge.kind, d: "M" + edge.path.map((point) => point.join(" ")).join("L"),
		"marker-end": "url(#head)", ...(edge.kind === "call" ? { "marker-start": "url(#head)" } : {}) });
	const parts = { line, hint: svg("title") };
	parts.element = svg("g", { class: "edge" }, parts.hint, svg("path", { class: "touch", d: line.getAttribute("d") }), line);
	if (ring) {
		const x = place.x - RING_WIDTH / 2, y = place.y - RING_HEIGHT / 2;
		parts.fill = svg("rect", { x, y, width: 0, height: RING_HEIGHT, class: "fill" });
		parts.high = svg("rect", { x, y: y - 1, width: 1.5, height: RING_HEIGHT + 2, class: "high" });
		parts.element.append(svg("rect", { x, y, width: RING_WIDTH, height: RING_HEIGHT, rx: 2, class: "ring" }), parts.fill, parts.high);
		parts.x = x;
	}
	return parts;
}

function drawFrame(frame, narrow) {
	const parts = { load: text(narrow ? frame.w - 6 : 12, frame.y + (narrow ? 15 : 40), narrow ? "number end" : "number"),
		where: text(12, frame.y + 57, "faint") };
	parts.element = svg("g", {}, svg("title", {}, topology.stages[frame.stage].does),
		svg("rect", { x: frame.x, y: frame.y, width: frame.w, height: frame.h, rx: 6, class: "stage" }),
		text(narrow ? 8 : 12, frame.y + (narrow ? 15 : 23), "name halo", frame.stage), parts.load, ...(narrow ? [] : [parts.where]));
	return parts;
}

function draw() {
	const width = byId("drawing").clientWidth, narrow = width < NARROW_BELOW;
	const plan = layOut(topology, { width, ...(narrow ? NARROW : WIDE) });
	const called = new Set(Object.values(topology.calls).map(({ to }) => to));
	drawn = { width, frames: {}, modules: {}, edges: {} };
	const head = svg("marker", { id: "head", viewBox: "0 0 6 6", refX: 6, refY: 3, markerWidth: 6, markerHeight: 6,
		orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" }, svg("path", { d: "M0 0L6 3L0 6z", class: "head" }));
	const picture = svg("svg", { width, height: plan.height, viewBox: `0 0 ${width} ${plan.height}` }, svg("defs", {}, head));
	for (const frame of plan.frames)
		picture.append((drawn.frames[frame.stage] = drawFrame(frame, narrow)).element);
	for (const edge of plan.edges)
		picture.append((drawn.edges[edge.name] = drawEdge(edge)).element);
	for (const box of plan.boxes) {
		picture.append((drawn.modules[box.name] = drawModule(box, called.has(box.name))).element);
		drawn.modules[box.name].width = box.w;
	}
	byId("drawing").replaceChildren(picture);
}

export function setTopology(answer) {
	topology = answer;
	drawn = null;
}

// ---- the engine that is shown ----

const key = (hca, index) => `${hca},${index}`;

function listEngines(now) {
	const all = Object.entries(now.hcas).flatMap(([hca, { engines }]) => engines.map((one) => ({ hca, one, of: engines.length })));
	const names = all.map(({ hca, one }) => key(hca, one.engine));
	if (!names.includes(engine))
		engine = names[0];
	const group = byId("engines");
	if (group.dataset.names !== names.join()) {
		group.dataset.names = names.join();
		group.replaceChildren(...all.map(({ hca, one, of }, i) => {
			const button = el("button", { type: "button", "data-key": names[i] }, of > 1 ? `${hca}, engine ${one.engine}` : hca);
			button.onclick = () => {
				engine = names[i];
				choose();
			};
			return button;
		}));
	}
	choose();
}

function choose() {
	for (const button of byId("engines").children)
		button.setAttribute("aria-pressed", button.dataset.key === engine);
}

const find = (all) => {
	const [hca, index] = engine.split(",");
	return all?.hcas[hca]?.engines.find((one) => String(one.engine) === index);
};

// ---- numbers ----

const of = (then, now, name) => (then && now ? now[name] - then[name] : null);

// Cycles per element and the share of the time of each module, between two answers; empty if nothing was measured.
function loads(then, now) {
	const a = then?.[engine], b = now?.[engine], result = {};
	if (!a || !b || !a.measured || !b.measured || b.tsc <= a.tsc)
		return result;
	for (const [name, module] of Object.entries(b.modules)) {
		const cycles = of(a.modules[name], module, "cycles"), elements = of(a.modules[name], module, "elements");
		result[name] = { stage: module.stage, busy: cycles / (b.tsc - a.tsc), each: elements ? cycles / elements : null, elements };
	}
	return result;
}

function showModules(load, calls, paused, seconds) {
	for (const [name, parts] of Object.entries(drawn.modules)) {
		const module = load[name], asked = calls[name], info = topology.modules[name];
		const narrow = parts.width < 120;
		parts.cost.textContent = paused?.[name] ? "paused"
			: asked !== undefined ? `${digits(asked)}${narrow ? "/s" : " calls/s"}`
				: `${digits(module?.each)} ${narrow ? "cyc" : "cycles/element"}`;
		parts.busy.textContent = module ? `${digits(100 * module.busy)} %` : "";
		parts.load.setAttribute("width", Math.min(1, module?.busy ?? 0) * parts.width);
		parts.frame.classList.toggle("paused", Boolean(paused?.[name]));
		parts.hint.textContent = `${name}: ${info.module}` + (module ? `\n${digits(module.elements / seconds)} elements/s` : "");
	}
}

function showFrames(load, cpus) {
	for (const [name, parts] of Object.entries(drawn.frames)) {
		const modules = Object.values(load).filter(({ stage }) => stage === name);
		const busy = modules.reduce((sum, module) => sum + module.busy, 0);
		parts.load.textContent = modules.length ? `${digits(100 * busy)} % busy` : "";
		parts.where.textContent = cpus[name] === undefined ? "" : `CPU ${cpus[name]}`;
	}
}

function showRing(name, ring, put, full) {
	const parts = drawn.edges[name], info = topology.channels[name];
	parts.line.classList.toggle("flows", put > 0);
	parts.line.classList.toggle("stalls", full > 0);
	parts.fill?.setAttribute("width", Math.min(1, ring.used / ring.depth) * RING_WIDTH);
	parts.high?.setAttribute("x", parts.x + Math.min(1, ring.high_water / ring.depth) * RING_WIDTH - 0.75);
	parts.hint.textContent = `${name}: ${info.fifos}\n${info.ring}\n${ring.used} of ${ring.depth}, at most ${ring.high_water} so far\n` +
		`${digits(put)} put/s, ${digits(full)} times full/s\nwhen full: ${info.full}`;
}

function showRings(then, now, seconds) {
	const rows = [];
	for (const [name, ring] of Object.entries(now.fifos)) {
		const before = then?.fifos[name], put = of(before, ring, "put"), full = of(before, ring, "full");
		const puts = put === null ? null : put / seconds, fulls = full === null ? null : full / seconds;
		showRing(name, ring, puts, fulls);
		rows.push({ key: name, kind: full > 0 ? "bad" : "",
			cells: [name, ring.used, ring.high_water, ring.depth, digits(puts), digits(fulls), ring.full] });
	}
	rings.update(rows);
}

// Which CPU each stage of the engine runs on: {stage: CPU}.
function cpusOf(now) {
	const place = engine.replace(",", "."), result = {};
	for (const [cpu, { stages }] of Object.entries(now.daemon.lcores))
		for (const stage of Object.keys(topology.stages))
			if (stages.includes(`${place}.${stage}`))
				result[stage] = cpu;
	return result;
}

// then: {all, runtime} of the look before, or null
export function showPipeline(then, now, seconds) {
	rings ??= new Table(byId("rings"), [["ring"], ["used", 1], ["high water", 1], ["depth", 1], ["put/s", 1], ["full/s", 1], ["full", 1]]);
	listEngines(now.all);
	const one = engine && find(now.all), before = engine && find(then?.all);
	if (!one)
		return;
	if (drawn?.width !== byId("drawing").clientWidth)
		draw();
	const load = loads(then?.runtime, now.runtime), calls = {};
	for (const [name, { to }] of Object.entries(topology.calls)) {
		const count = of(before?.calls, one.calls, name);
		calls[to] = (calls[to] ?? 0) + (count === null ? NaN : count / seconds);
		drawn.edges[name].line.classList.toggle("flows", count > 0);
		drawn.edges[name].hint.textContent = `${name}: ${topology.calls[name].asks}`;
	}
	showModules(load, calls, one.paused, seconds);
	showFrames(load, cpusOf(now.all));
	showRings(before, one, seconds);
}
