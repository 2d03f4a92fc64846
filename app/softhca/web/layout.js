// SPDX-License-Identifier: BSD-3-Clause
// Places the modules of a topology and routes the channels and calls between them. Each stage is a row of modules, in
// the topology's order. A line runs straight between neighbours. Otherwise it leaves its module for the gutter above or
// below the row, and reaches rows further away through the lanes at the right. No two lines share a track.

// Gives each line {from, to} a `track`, of as few as there can be if those on one track are to be more than `apart`
// from each other. Returns how many.
function pack(lines, apart) {
	const ends = [];
	for (const line of [...lines].sort((a, b) => a.from - b.from)) {
		let track = ends.findIndex((end) => end + apart < line.from);
		if (track < 0)
			track = ends.length;
		ends[track] = line.to;
		line.track = track;
	}
	return ends.length;
}

const span = (a, b, more = {}) => ({ from: Math.min(a, b), to: Math.max(a, b), ...more });

// The sides on which an edge leaves and reaches its modules, and the gutters and rows that it passes. Gutter g lies
// below row g, gutter -1 above all.
function routeOf({ a, b }) {
	if (a.row === b.row)
		return Math.abs(a.column - b.column) === 1 ? { straight: true }
			: { leave: "bottom", reach: "bottom", first: a.row, last: a.row };
	return a.row < b.row ? { leave: "bottom", reach: "top", first: a.row, last: b.row - 1 }
		: { leave: "top", reach: "bottom", first: a.row - 1, last: b.row };
}

// Spreads the ends of lines over the sides of each module: those that go left first, those for the lanes last. Those of
// modules that face each other over a gutter stand `shift` to the left and to the right of where they would meet.
function placeEnds(boxes, edges, shift) {
	for (const box of boxes)
		for (const side of ["top", "bottom"]) {
			const ends = [];
			for (const edge of edges) {
				const far = edge.route.first !== edge.route.last ? Infinity : 0;
				if (edge.a === box && edge.route.leave === side)
					ends.push({ edge, key: "leaveX", at: Math.max(far, edge.b.x) });
				if (edge.b === box && edge.route.reach === side)
					ends.push({ edge, key: "reachX", at: Math.max(far, edge.a.x) });
			}
			ends.sort((p, q) => (p.at === q.at ? 0 : p.at - q.at));
			ends.forEach(({ edge, key }, i) => {
				edge[key] = box.x + box.w * (i + 1) / (ends.length + 1) + (side === "top" ? shift : -shift);
			});
		}
}

// The two of a pair of neighbours that talk in both directions run side by side.
function straightPath(edge, edges) {
	const { a, b } = edge, right = a.column < b.column;
	const both = edges.some((other) => other.a === b && other.b === a);
	const y = a.y + a.h / 2 + (both ? (right ? -9 : 9) : 0);
	const from = right ? a.x + a.w : a.x, to = right ? b.x : b.x + b.w;
	return [[from, y], [to, y]];
}

function bentPath(edge, gutterY, laneX) {
	const { a, b, route } = edge;
	const y1 = gutterY(edge.parts[0]), y2 = gutterY(edge.parts[edge.parts.length - 1]);
	const points = [[edge.leaveX, route.leave === "top" ? a.y : a.y + a.h], [edge.leaveX, y1]];
	if (edge.lane)
		points.push([laneX(edge.lane), y1], [laneX(edge.lane), y2]);
	points.push([edge.reachX, y2], [edge.reachX, route.reach === "top" ? b.y : b.y + b.h]);
	return points;
}

// topology: the daemon's. size: {width, margin: left of the modules, gap: between them, height: of one, pitch: of tracks in
// gutters, lane: of lanes, title: room above the modules of a row}. Returns {boxes: of modules, edges: with `path`, frames: of stages, height}.
export function layOut(topology, size) {
	const stages = Object.keys(topology.stages), boxes = new Map(), counts = stages.map(() => 0);
	for (const [name, module] of Object.entries(topology.modules)) {
		const row = stages.indexOf(module.stage);
		boxes.set(name, { name, module, row, column: counts[row]++ });
	}
	const edges = [["channel", topology.channels], ["call", topology.calls]].flatMap(([kind, all]) =>
		Object.entries(all).map(([name, info]) => ({ kind, name, info, a: boxes.get(info.from), b: boxes.get(info.to) })));
	edges.forEach((edge) => {
		edge.route = routeOf(edge);
	});

	const lanes = edges.filter(({ route }) => !route.straight && route.first !== route.last);
	lanes.forEach((edge) => {
		edge.lane = span(edge.route.first, edge.route.last);
	});
	const laneCount = pack(lanes.map((edge) => edge.lane), 0);
	const right = size.width - laneCount * size.lane - 4;
	const columns = Math.max(...counts), width = (right - size.margin - (columns - 1) * size.gap - 14) / columns;
	for (const box of boxes.values())
		Object.assign(box, { x: size.margin + 4 + box.column * (width + size.gap), w: width, h: size.height });
	placeEnds([...boxes.values()], edges, width / 30);

	const gutters = new Map([[-1, []], ...stages.map((_, i) => [i, []])]);
	const laneX = ({ track }) => right + 8 + track * size.lane;
	for (const edge of edges.filter(({ route }) => !route.straight)) {
		const ends = edge.lane ? [[edge.leaveX, laneX(edge.lane)], [laneX(edge.lane), edge.reachX]] : [[edge.leaveX, edge.reachX]];
		edge.parts = ends.map(([x1, x2], i) => span(x1, x2, { gutter: i ? edge.route.last : edge.route.first }));
		edge.parts.forEach((part) => gutters.get(part.gutter).push(part));
	}
	let y = 0;
	const tops = new Map(), frames = [];
	for (const [gutter, parts] of gutters) {
		tops.set(gutter, y + 10);
		const tracks = pack(parts, 6);
		y += tracks ? tracks * size.pitch + 12 : 8;
		if (gutter + 1 < stages.length) {
			frames.push({ stage: stages[gutter + 1], x: 1, y, w: right - 2, h: size.title + size.height + 16 });
			for (const box of boxes.values())
				if (box.row === gutter + 1)
					box.y = y + size.title + 8;
			y += size.title + size.height + 16;
		}
	}
	const gutterY = (part) => tops.get(part.gutter) + part.track * size.pitch + 2;
	for (const edge of edges)
		edge.path = edge.route.straight ? straightPath(edge, edges) : bentPath(edge, gutterY, laneX);
	return { boxes: [...boxes.values()], edges, frames, height: y + 4 };
}
