// The live monitor: the list of streams, all open alarms, and the details of one stream.

import { api } from "../common/api.js";
import { createHeader, h, showError, toast } from "../common/dom.js";
import { formatNumber, formatInteger } from "../common/format.js";
import { AlarmList } from "./alarms.js";
import { StreamList } from "./stream_list.js";
import { connectEvents } from "./event_stream.js";
import { emptyState, isTokenRequired } from "./snippets.js";
import { streamHref } from "./stream_row.js";
import { Streams } from "./streams.js";
import { StreamView } from "./stream.js";

const TITLE = document.title;
const main = document.getElementById("main");
const streams = new Streams();
const list = new StreamList(streams);
const alarms = new AlarmList({ stream: null, open: true });
let view = null; // of the open stream
let openedByKeyboard = false; // whether Escape closed the stream
let lastSeenAlarmId = Infinity; // the newest alarm when the page was opened: toasts show later ones only

// For tests and the console.
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

const connectionBadge = h(
  "span",
  { class: "live waiting", role: "status" },
  h("span", { class: "dot", "aria-hidden": "true" }),
  h("span", {}, "connecting…"),
);
const totals = h("dl", { class: "facts totals" });
const tabs = h(
  "nav",
  { class: "tabs segments", "aria-label": "Views" },
  h("a", { class: "to-streams", href: "#" }, "Streams"),
  h("a", { class: "to-alarms", href: "#alarms" }, "Alarms"),
);
const left = h("section", { class: "left", "aria-label": "Streams" }, totals, list.element);
const overview = h(
  "section",
  { class: "overview stack" },
  h("div", { class: "row" }, h("h1", {}, "Open alarms"), h("div", { class: "end" }, alarms.acknowledgeAllButton)),
  alarms.element,
);
const right = h("div", { class: "right" }, overview);
const empty = emptyState();
empty.hidden = true;

function drawTotals() {
  const { n_streams, n_alarming, open_alarms } = streams.totals;
  const facts = {
    streams: formatInteger(n_streams),
    alarming: formatInteger(n_alarming),
    "open alarms": formatInteger(open_alarms),
    "points/s": formatNumber(streams.rate(), 3),
  };
  if (!totals.children.length)
    totals.append(...Object.keys(facts).map((name) => h("div", {}, h("dt", {}, name), h("dd", {}))));
  Object.values(facts).forEach((text, i) => (totals.children[i].lastChild.textContent = text));
  totals.classList.toggle("alarming", n_alarming > 0);
  tabs.lastChild.textContent = open_alarms ? `Alarms (${formatInteger(open_alarms)})` : "Alarms";
  document.title = open_alarms ? `(${formatInteger(open_alarms)}) ${TITLE}` : TITLE;
  const none = streams.loaded && n_streams === 0 && !streams.query.search && !view;
  empty.hidden = !none;
  main.classList.toggle("none", none);
}

// The view is in the fragment of the URL

function onHashChange() {
  const key = location.hash.startsWith("#stream=") ? decodeKey(location.hash.slice(8)) : null;
  if (view?.key !== key) {
    const before = view?.key;
    view?.close();
    view = key === null ? null : new StreamView(key, { streams, closeView });
    if (view) right.append(view.element);
    else if (openedByKeyboard) list.focusOn(before);
  }
  openedByKeyboard = false;
  main.dataset.view = key !== null ? "stream" : location.hash === "#alarms" ? "alarms" : "start";
  overview.hidden = key !== null;
  list.select(key);
  right.scrollTop = 0;
  for (const tab of tabs.children)
    tab.setAttribute("aria-current", String((tab.hash === "#alarms") === (main.dataset.view === "alarms")));
  drawTotals();
  list.draw();
}

/** Close the view after its stream was deleted. */
function closeView() {
  location.hash = "";
  list.update();
}

function decodeKey(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a literal %
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
    openedByKeyboard = true;
    location.hash = "";
  }
}

// Live

function onAlarms(changed) {
  alarms.load();
  const newAlarms = changed.filter((summary) => summary.last_alarm.id > lastSeenAlarmId);
  if (!newAlarms.length) return;
  lastSeenAlarmId = Math.max(...newAlarms.map((summary) => summary.last_alarm.id));
  const nToasts = 3 - document.querySelectorAll("#toasts .toast-link").length; // many alarms must not cover the page
  for (const { key, last_alarm } of newAlarms.slice(0, Math.max(0, nToasts)))
    toast(h("a", { class: "toast-link", href: streamHref(key) }, h("b", {}, key), " ", last_alarm.message), "error");
}

function connect() {
  let lost = false;
  connectEvents(
    () => "/events",
    { streams: (data) => onStreams(data) },
    (state) => {
      connectionBadge.classList.remove("waiting");
      connectionBadge.classList.toggle("lost", state === "lost");
      connectionBadge.lastChild.textContent = state === "lost" ? "reconnecting…" : "live";
      if (lost && state === "live") onReconnect();
      lost = state === "lost";
    },
  );
}

/** Fetch what has changed while the connection was lost. */
function onReconnect() {
  streams.refresh();
  alarms.load();
  view?.onReconnect();
}

function onStreams(data) {
  const hasDeleted = data.n_streams < streams.totals.n_streams;
  const first = streams.totals.n_streams === 0;
  streams.apply(data);
  if (first) list.update();
  if (hasDeleted) view?.checkExists();
}

async function start() {
  const end = createHeader("monitor");
  end.append(connectionBadge);
  main.append(tabs, left, right, empty);
  drawTotals();
  streams.addEventListener("totals", drawTotals);
  streams.addEventListener("alarms", ({ detail }) => onAlarms(detail));
  addEventListener("hashchange", onHashChange);
  document.addEventListener("keydown", onKey);
  setInterval(drawTotals, 1000);
  const newest = await api("/alarms?limit=1"); // also shows the login dialog if a token is required
  lastSeenAlarmId = newest.alarms[0]?.id ?? 0;
  await streams.ensureLoaded(0, 30);
  onHashChange();
  alarms.load();
  connect();
  if (await isTokenRequired())
    end.append(h("button", { type: "button", class: "quiet small", onclick: logOut }, "Log out"));
}

async function logOut() {
  await api("/session", { method: "DELETE" });
  location.reload();
}

start().catch(showError);
