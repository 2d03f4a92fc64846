// SPDX-License-Identifier: BSD-3-Clause
// A small plot of one or two values over the last two minutes, the newest at its right. Its heading says what its upper
// edge means.
import { digits, el, svg } from "./dom.js";

const POINTS = 120, WIDTH = 240, HEIGHT = 56;

// 1, 2 or 5 times a power of ten, not below `value`.
function roundUp(value) {
	const power = 10 ** Math.floor(Math.log10(value));
	return power * [1, 2, 5, 10].find((factor) => factor * power >= value * 0.999999);
}

export class Plot {
	// names: of the values, drawn in this order
	constructor(title, unit, names) {
		this.names = names;
		this.values = names.map(() => []);
		this.lines = names.map((_, i) => svg("path", { class: `line line${i}` }));
		this.now = names.map(() => el("b"));
		this.unit = unit;
		this.top = el("span", { class: "faint" }, unit);
		this.element = el("figure", {},
			el("figcaption", {}, el("span", {}, title), this.top),
			el("div", { class: "plot" },
				svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
					"aria-label": title },
				svg("path", { class: "grid", d: `M0 1H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}` }),
				...this.lines)),
			el("p", { class: "key" }, ...names.map((name, i) =>
				el("span", {}, el("i", { class: `line${i}` }), name, this.now[i]))));
	}

	// null: not known
	add(...values) {
		values.forEach((value, i) => {
			this.values[i].push(value);
			if (this.values[i].length > POINTS)
				this.values[i].shift();
			this.now[i].textContent = digits(value);
		});
		this.draw();
	}

	draw() {
		const highest = Math.max(...this.values.flat().map((value) => value ?? 0));
		const top = highest > 0 ? roundUp(highest) : 1;
		this.top.textContent = highest > 0 ? `${digits(top)} ${this.unit}` : this.unit;
		this.values.forEach((values, i) => {
			const first = POINTS - values.length;
			let path = "", pen = "M";
			values.forEach((value, n) => {
				if (value === null) {
					pen = "M";
					return;
				}
				const x = (first + n) / (POINTS - 1) * WIDTH, y = HEIGHT - 1 - value / top * (HEIGHT - 2);
				path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
				pen = "L";
			});
			this.lines[i].setAttribute("d", path);
		});
	}
}
