// Shows what the server sends: parts of the page, each an element with an id, rendered and escaped there.
"use strict";

const byId = (id) => document.getElementById(id);
const main = byId("main");

// --- putting new content where old was, with focus, selection and scrolling left alone ------------------

function parsed(html, context) {
  const template = document.createElement("template");
  template.innerHTML = context === "tbody" ? `<table><tbody>${html}</tbody></table>` : html;
  return context === "tbody" ? template.content.querySelector("tbody") : template.content;
}

function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh.cloneNode(true));
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    const kept = name === "hidden" || (name === "open" && old.nodeName === "DETAILS");
    if (!kept && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    const kept = name === "open" && old.nodeName === "DETAILS";
    if (!kept && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  wanted.forEach((child, place) => {
    const there = old.childNodes[place];
    if (there) morph(there, child);
    else old.append(child.cloneNode(true));
  });
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
}

function show(id, html) {
  const old = byId(id);
  if (old && old.nodeName === "TR") {
    const fresh = parsed(html, "tbody").querySelector("tr");
    if (fresh) morph(old, fresh);
  } else if (old) {
    morphChildren(old, parsed(html));
  }
}

// Where a picture is wider than the screen, the newest is seen first.
function toNewest(element) {
  for (const figure of element.querySelectorAll("figure")) figure.scrollLeft = figure.scrollWidth;
}
toNewest(main);

// --- rows that come and go ------------------------------------------------------------------------------

let ids = [];

function order(rows) {
  const body = byId("rows");
  const wanted = new Set(ids);
  for (const row of [...body.children]) if (!wanted.has(row.id)) row.remove();
  let before = body.firstElementChild;
  for (const id of ids) {
    let row = byId(id);
    if (!row) {
      row = rows[id] && parsed(rows[id], "tbody").querySelector("tr");
      if (!row) continue;
    }
    if (row === before) before = before.nextElementSibling;
    else body.insertBefore(row, before);
  }
}

// --- the filter of the fleet ----------------------------------------------------------------------------

const filter = byId("filter");
function sift() {
  if (!filter) return;
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  let all = 0;
  for (const row of byId("rows").children) {
    if (row.classList.contains("none")) continue;
    const text = row.textContent.toLowerCase();
    const fits = words.every((word) => text.includes(word));
    if (row.hidden === fits) row.hidden = !fits;
    all += 1;
    shown += fits ? 1 : 0;
  }
  const told = words.length ? `${shown} of ${all} shown` : "";
  if (byId("shown").textContent !== told) byId("shown").textContent = told;
}
if (filter) filter.addEventListener("input", sift);

// --- what the server sends ------------------------------------------------------------------------------

let source = null;
let after = main.dataset.after;
let retry = 0;

function live(word, text) {
  document.documentElement.dataset.live = word;
  if (byId("live-text").textContent !== text) byId("live-text").textContent = text;
}

function took(event) {
  const message = JSON.parse(event.data);
  after = event.lastEventId || after;
  const rows = message.rows || {};
  for (const [id, html] of Object.entries(message.parts || {})) show(id, html);
  for (const [id, html] of Object.entries(rows)) show(id, html);
  if (message.order) ids = message.order;
  if (message.order || Object.keys(rows).some((id) => !byId(id))) order(rows);
  if (message.rows || message.order) sift();
  document.documentElement.dataset.change = after;
  document.documentElement.dataset.shown = String(Date.now());
}

function listen() {
  clearTimeout(retry);
  if (!main.dataset.events || document.hidden || source) return;
  source = new EventSource(`${main.dataset.events}?after=${after}`);
  source.addEventListener("open", () => live("yes", "live"));
  source.addEventListener("parts", took);
  source.addEventListener("ended", () => {
    quiet();
    live("no", "this workload is no longer split");
  });
  source.addEventListener("error", () => {
    live("no", "not live: no answer, trying again");
    quiet();
    retry = setTimeout(listen, 2000);
  });
}

function quiet() {
  if (source) source.close();
  source = null;
}

// A browser opens few connections to one address: a tab that nobody looks at leaves its own to others.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    quiet();
    live("no", "paused while hidden");
  } else {
    listen();
  }
});
addEventListener("pagehide", quiet);
if (main.dataset.events) listen();
else live("yes", "ready");

// --- what is read when it is asked for ------------------------------------------------------------------

async function load(address, into) {
  into.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    morphChildren(into, parsed(await answer.text()));
  } catch {
    into.textContent = "No answer: is the command still running?";
  } finally {
    into.removeAttribute("aria-busy");
  }
}

for (const button of document.querySelectorAll("[data-load]")) {
  button.addEventListener("click", () => load(button.dataset.load, byId(button.dataset.into)));
}

// --- the simulator: what is asked for last is drawn, and no more than one replay is under way ------------

const form = byId("policy-form");
if (form) {
  let busy = false;
  let again = false;
  const redraw = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      const asked = new URLSearchParams(new FormData(form)).toString();
      history.replaceState(null, "", `?${asked}`);
      await load(`${form.dataset.replay}?${asked}`, byId("replay"));
    } while (again);
    busy = false;
  };
  form.addEventListener("input", redraw);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    redraw();
  });
  redraw();
}
