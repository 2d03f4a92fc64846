// SPDX-License-Identifier: BSD-3-Clause
// Asks `softhca web` about once a second while somebody looks, and says when it, or the daemon behind it, is away.
import { byId, digits } from "./dom.js";
import { showHcas, skipHcas } from "./hca.js";
import { setTopology, showPipeline } from "./pipeline.js";
import { choose, showLife, showQps, wanted } from "./qps.js";

const PERIOD_MS = 1000, PATIENCE_MS = 15000, NEWS_MS = 10000;

// Behind the '#' of the address, which the browser sends to nobody: the key, then the queue pair that is looked at.
const [key, ...opened] = location.hash.slice(1).split("/").map(decodeURIComponent);

let last = null, before = null; // {all, runtime, at, seconds: since the one before}
let daemon = null; // which one: its process and the moment of its start
let newsUntil = 0;

class Refusal extends Error {
	constructor(status, words) {
		super(words);
		this.status = status;
	}
}

async function ask(path) {
	const answer = await fetch(path, { headers: { Authorization: `Bearer ${key}` }, cache: "no-store",
		signal: AbortSignal.timeout(PATIENCE_MS) });
	if (!answer.ok)
		throw new Refusal(answer.status, (await answer.text()).trim());
	return answer.json();
}

function say(words, bad) {
	byId("news").textContent = words;
	byId("news").hidden = !words;
	byId("news").className = bad ? "bad" : "";
	byId("all").classList.toggle("stale", Boolean(bad));
}

// "3 d 4 h", "12 s"
function duration(seconds) {
	const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]], parts = [];
	for (const [name, size] of units)
		if (seconds >= size || name === "s") {
			parts.push(`${Math.floor(seconds / size)} ${name}`);
			seconds %= size;
		}
	return parts.slice(0, 2).join(" ");
}

function describe(all) {
	const { daemon: { version, pid, uptime_s, lcores, memory }, client_count } = all;
	const loads = Object.entries(lcores).map(([cpu, { busy_permille }]) => `CPU ${cpu} ${digits(busy_permille / 10)} %`);
	byId("daemon").textContent = [`softhcad ${version}`, `pid ${pid}`, `up ${duration(uptime_s)}`, ...loads,
		`${client_count} clients`, `${digits(memory.resident_kib / 1024)} MiB`].join(" · ");
}

// Numbers of another daemon than the last one's have begun anew, and its pipeline may be another one.
async function meet(all, now) {
	const began = now - all.daemon.uptime_s * 1000;
	if (daemon && daemon.pid === all.daemon.pid && Math.abs(daemon.began - began) < 5000)
		return;
	if (daemon) {
		say("The daemon was restarted.");
		newsUntil = now + NEWS_MS;
	}
	daemon = null;
	setTopology(await ask("topology.json"));
	daemon = { pid: all.daemon.pid, began };
	last = null;
}

async function look() {
	const [all, runtime] = await Promise.all([ask("all.json"), ask("runtime.json")]);
	const at = performance.now();
	if (last && at - last.at > PATIENCE_MS) { // nobody looked
		last = null;
		skipHcas();
	}
	await meet(all, at);
	const seconds = last ? (at - last.at) / 1000 : 1, now = { all, runtime, at, seconds };
	describe(all);
	showHcas(last?.all ?? null, all, seconds);
	showPipeline(last, now, seconds);
	showQps(last?.all ?? null, all, seconds);
	[before, last] = [last, now];
	const one = wanted();
	showLife(one ? await ask(`qp.json?hca=${encodeURIComponent(one.hca)}&qpn=${one.qpn}`).catch(gone) : null);
}

// A queue pair may end while the page asks for it.
function gone(error) {
	if (error.status !== 404)
		throw error;
	return null;
}

function explain(error) {
	if (error.status === 401)
		return "The key in this address is not, or no longer, right: open the one that softhca web has printed.";
	if (error.status)
		return `${error.message} Trying again.`;
	return error instanceof TypeError || error.name === "TimeoutError" ? "softhca web does not answer; trying again." : String(error);
}

async function turn() {
	try {
		if (!document.hidden) {
			await look();
			if (performance.now() >= newsUntil)
				say("");
		}
	} catch (error) {
		say(explain(error), true);
		skipHcas();
		last = null;
	}
	setTimeout(turn, PERIOD_MS);
}

addEventListener("hashchange", () => location.reload()); // which what choose() does is not
addEventListener("resize", () => last && showPipeline(before, last, last.seconds));
if (opened.length === 2)
	choose(opened[0], opened[1]);
turn();
