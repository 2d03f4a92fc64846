// SPDX-License-Identifier: BSD-3-Clause
// Elements and numbers. What comes from a daemon, and names of processes with it, becomes text and attributes only.

function fill(element, attributes, children) {
	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	element.append(...children);
	return element;
}

export const el = (name, attributes = {}, ...children) =>
	fill(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
	fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

export const byId = (id) => document.getElementById(id);

// Three digits: "1.23", "45.6", "7 890"; "–" for what is not known.
export function digits(value) {
	if (value === null || value === undefined || Number.isNaN(value))
		return "–";
	const places = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	return value ? value.toFixed(places).replace(/\B(?=(\d{3})+$)/g, "\u2009") : "0";
}

// A table whose rows stay the same elements from one update to the next, so that a click finds its row.
export class Table {
	// columns: [heading, is it a number?]; chosen(key): a row was clicked
	constructor(table, columns, chosen) {
		this.columns = columns;
		this.chosen = chosen;
		this.rows = new Map();
		this.body = el("tbody");
		table.append(el("thead", {}, el("tr", {}, ...columns.map(([heading, number]) =>
			el("th", number ? { class: "number" } : {}, heading)))), this.body);
	}

	add(key) {
		const row = el("tr", {}, ...this.columns.map(([, number]) =>
			el("td", number ? { class: "number" } : {})));
		if (this.chosen) {
			row.tabIndex = 0;
			row.onclick = () => this.chosen(key);
			row.onkeydown = (event) => event.key === "Enter" && this.chosen(key);
		}
		this.rows.set(key, row);
		return row;
	}

	// rows: {key, cells: texts, kind: a class or ""}, in their order
	update(rows) {
		const kept = new Set(rows.map(({ key }) => key));
		for (const [key, row] of this.rows)
			if (!kept.has(key)) {
				row.remove();
				this.rows.delete(key);
			}
		rows.forEach(({ key, cells, kind }, i) => {
			const row = this.rows.get(key) ?? this.add(key);
			row.className = kind;
			cells.forEach((text, c) => {
				if (row.cells[c].textContent !== String(text))
					row.cells[c].textContent = text;
			});
			if (this.body.rows[i] !== row)
				this.body.insertBefore(row, this.body.rows[i] ?? null);
		});
	}
}
