// The live monitor: the list of streams, the open alarms of all, and one stream in full.

import { api, bar, few, h, tell, toast, whole } from "../common.js";
import { AlarmList } from "./alarms.js";
import { StreamList } from "./list.js";
import { live } from "./live.js";
import { emptyPage, tokenNeeded } from "./post.js";
import { link } from "./row.js";
import { Streams } from "./streams.js";
import { StreamView } from "./stream.js";

const TITLE = document.title;
const main = document.getElementById("main");
const streams = new Streams();
const list = new StreamList(streams);
const alarms = new AlarmList({ stream: null, open: true });
let view = null; // the stream in full
let byKey = false; // whether Escape brought one back to the list
let seen = Infinity; // the newest alarm when the page was opened: only later ones are told

// For tests, and for the curious at the console.
window.limpet = {
  monitor: {
    streams,
    list,
    alarms,
    get stream() {
      return view;
    },
  },
};

// The parts of the page

const mark = h(
  "span",
  { class: "live waiting", role: "status" },
  h("span", { class: "dot", "aria-hidden": "true" }),
  h("span", {}, "connecting…"),
);
const totals = h("dl", { class: "facts totals" });
const tabs = h(
  "nav",
  { class: "tabs segments", "aria-label": "What to show" },
  h("a", { class: "to-streams", href: "#" }, "Streams"),
  h("a", { class: "to-alarms", href: "#alarms" }, "Alarms"),
);
const left = h("section", { class: "left", "aria-label": "Streams" }, totals, list.element);
const overview = h(
  "section",
  { class: "overview stack" },
  h("div", { class: "row" }, h("h1", {}, "Open alarms"), h("div", { class: "end" }, alarms.all)),
  alarms.element,
);
const right = h("div", { class: "right" }, overview);
const empty = emptyPage();
empty.hidden = true;

function drawTotals() {
  const { n_streams, n_alarming, open_alarms } = streams.totals;
  const facts = {
    streams: whole(n_streams),
    alarming: whole(n_alarming),
    "open alarms": whole(open_alarms),
    "points/s": few(streams.rate(), 3),
  };
  if (!totals.children.length)
    totals.append(...Object.keys(facts).map((name) => h("div", {}, h("dt", {}, name), h("dd", {}))));
  Object.values(facts).forEach((text, i) => (totals.children[i].lastChild.textContent = text));
  totals.classList.toggle("alarming", n_alarming > 0);
  tabs.lastChild.textContent = open_alarms ? `Alarms (${whole(open_alarms)})` : "Alarms";
  document.title = open_alarms ? `(${whole(open_alarms)}) ${TITLE}` : TITLE;
  const none = streams.loaded && n_streams === 0 && !streams.query.search && !view;
  empty.hidden = !none;
  main.classList.toggle("none", none);
}

// Which of them is shown: the part of the address after #

function route() {
  const key = location.hash.startsWith("#stream=") ? decoded(location.hash.slice(8)) : null;
  if (view?.key !== key) {
    const before = view?.key;
    view?.close();
    view = key === null ? null : new StreamView(key, { streams, leave });
    if (view) right.append(view.element);
    else if (byKey) list.focusOn(before);
  }
  byKey = false;
  main.dataset.view = key !== null ? "stream" : location.hash === "#alarms" ? "alarms" : "start";
  overview.hidden = key !== null;
  list.select(key);
  right.scrollTop = 0;
  for (const tab of tabs.children)
    tab.setAttribute("aria-current", String((tab.hash === "#alarms") === (main.dataset.view === "alarms")));
  drawTotals();
  list.draw();
}

/** The stream was deleted here. */
function leave() {
  location.hash = "";
  list.update();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that stands for itself
  }
}

function onKey(event) {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "/") {
    if (main.dataset.view !== "start" && getComputedStyle(left).display === "none") location.hash = "";
    list.search.focus();
    list.search.select();
    event.preventDefault();
  } else if (event.key === "Escape" && location.hash.length > 1) {
    byKey = true;
    location.hash = "";
  }
}

// Live

function onAlarms(fresh) {
  alarms.load();
  const news = fresh.filter((summary) => summary.last_alarm.id > seen);
  if (!news.length) return;
  seen = Math.max(...news.map((summary) => summary.last_alarm.id));
  const room = 3 - document.querySelectorAll("#toasts .told").length; // a flood of alarms must not cover the page
  for (const { key, last_alarm } of news.slice(0, Math.max(0, room)))
    toast(h("a", { class: "told", href: link(key) }, h("b", {}, key), " ", last_alarm.message), "error");
}

function connect() {
  let lost = false;
  live(
    () => "/events",
    { streams: (data) => onStreams(data) },
    (state) => {
      mark.classList.remove("waiting");
      mark.classList.toggle("lost", state === "lost");
      mark.lastChild.textContent = state === "lost" ? "reconnecting…" : "live";
      if (lost && state === "live") back();
      lost = state === "lost";
    },
  );
}

/** The connection is back: asks for what changed meanwhile and was not told. */
function back() {
  streams.refresh();
  alarms.load();
  view?.again();
}

function onStreams(data) {
  const fewer = data.n_streams < streams.totals.n_streams;
  const first = streams.totals.n_streams === 0;
  streams.apply(data);
  if (first) list.update();
  if (fewer) view?.check();
}

async function start() {
  const end = bar("monitor");
  end.append(mark);
  main.append(tabs, left, right, empty);
  drawTotals();
  streams.addEventListener("totals", drawTotals);
  streams.addEventListener("alarms", ({ detail }) => onAlarms(detail));
  addEventListener("hashchange", route);
  document.addEventListener("keydown", onKey);
  setInterval(drawTotals, 1000);
  const newest = await api("/alarms?limit=1"); // also asks for the token where one is needed
  seen = newest.alarms[0]?.id ?? 0;
  await streams.need(0, 30);
  route();
  alarms.load();
  connect();
  if (await tokenNeeded())
    end.append(h("button", { type: "button", class: "quiet small", onclick: logOut }, "Log out"));
}

async function logOut() {
  await api("/session", { method: "DELETE" });
  location.reload();
}

start().catch(tell);
