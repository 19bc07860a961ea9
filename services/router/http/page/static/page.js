// The page while somebody looks at it: rows by their ids, seconds that pass, a dialogue with a decision, buttons.
import "./ask.js";
import { call } from "./sse.js";
import { fill, late, span, toGo, words } from "./words.js";

const body = document.body;
const said = document.getElementById("said");
const line = document.getElementById("line");
const dialog = document.getElementById("why");
let version = body.dataset.version;
let ahead = Date.now() / 1000 - Number(body.dataset.now); // of the router's clock
let source = null;
let lostAt = null;

// --- rows ------------------------------------------------------------------------------------------------------------

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// Cell by cell, so that a button that did not change can be pressed while its row does, and keeps the focus.
function morph(row, fresh) {
  if (row.tagName !== "TR" || row.children.length !== fresh.children.length) {
    row.replaceChildren(...fresh.childNodes);
    return;
  }
  const focused = row.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  [...fresh.children].forEach((cell, at) => {
    const old = row.children[at];
    if (old.innerHTML !== cell.innerHTML) old.innerHTML = cell.innerHTML;
  });
  if (focused && !row.contains(document.activeElement)) {
    (row.querySelector(`[data-key="${focused}"]`) ?? row.querySelector("[data-key]"))?.focus();
  }
}

function patch(name, step) {
  const region = document.querySelector(`[data-region="${name}"]`);
  if (name === "map") {
    const html = step.rows?.map;
    if (html !== undefined && region.innerHTML !== html) region.innerHTML = html;
    return;
  }
  const known = new Map([...region.children].map((row) => [row.dataset.id, row]));
  for (const id of step.gone ?? []) known.get(id)?.remove();
  const whole = step.order && !step.gone && Object.keys(step.rows ?? {}).length === step.order.length;
  for (const [id, html] of Object.entries(step.rows ?? {})) {
    const fresh = parsed(html), row = known.get(id);
    if (row) morph(row, fresh);
    else {
      if (!whole) fresh.className = "new";
      region.insertBefore(fresh, known.get(step.before?.[id]) ?? null);
      known.set(id, fresh);
    }
  }
  if (step.order) {
    const wanted = new Set(step.order);
    for (const [id, row] of known) if (!wanted.has(id)) row.remove();
    let next = region.firstElementChild;
    for (const id of step.order) {
      const row = known.get(id);
      if (row === next) next = next.nextElementSibling;
      else if (row) region.insertBefore(row, next);
    }
  }
  if (!region.children.length) region.replaceChildren(); // :empty
}

function onPage(event) {
  const told = JSON.parse(event.data);
  version = event.lastEventId;
  // A router of another version answers now: its rows want its own scripts. Who has an answer in front of them keeps it.
  if (told.digest && !import.meta.url.includes(told.digest) && !document.querySelector("article.answer")) location.reload();
  ahead = Date.now() / 1000 - told.now;
  for (const [name, step] of Object.entries(told.regions ?? {})) patch(name, step);
  for (const [name, value] of Object.entries(told.counts ?? {})) {
    document.querySelector(`[data-count="${name}"]`).textContent = value;
    if (name === "waiting") announce(value);
  }
  tick();
}

// At most every five seconds, and only how many wait: a queue read out row by row would never stop.
let announced = 0;
function announce(waiting) {
  if (Date.now() - announced < 5000) return;
  announced = Date.now();
  said.textContent = `${words.queue}: ${waiting}`;
}

function clock(date) {
  const language = document.documentElement.lang, time = date.toLocaleTimeString(language, { hour12: false });
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString(language)} ${time}`;
}

function tick() {
  if (lostAt) return; // what is shown is from then
  const now = Date.now() / 1000 - ahead;
  const write = (each, text) => { if (each.textContent !== text) each.textContent = text; };
  for (const each of document.querySelectorAll("[data-since]")) write(each, span(now - each.dataset.since));
  for (const each of document.querySelectorAll("[data-until]")) write(each, toGo(each.dataset.until - now));
  for (const each of document.querySelectorAll("[data-due]")) write(each, late(now - each.dataset.due));
  for (const each of document.querySelectorAll("[data-at]")) {
    write(each, clock(new Date(each.dataset.at * 1000)));
  }
}

// --- the line --------------------------------------------------------------------------------------------------------

function shown(state) {
  lostAt = state === "on" ? null : lostAt ?? new Date();
  line.className = `dot ${state}`;
  body.classList.toggle("lost", state !== "on");
  const text = state === "on" ? words.live : fill(words.offline, clock(lostAt));
  if (line.textContent !== text) line.textContent = text;
}

function open() {
  source?.close();
  source = new EventSource(`/page/events?lang=${document.documentElement.lang}&since=${version}`);
  source.onopen = () => shown("on");
  source.onerror = () => {
    shown("off");
    if (source.readyState === EventSource.CLOSED) setTimeout(again, 3000);
  };
  source.addEventListener("page", onPage);
}

// The stream says only that it failed: whose key was taken away is shown where to sign in.
async function again() {
  if (document.hidden) return;
  const asked = await fetch("/routes").catch(() => null);
  if (asked && (asked.status === 401 || asked.status === 429)) location.reload();
  else open();
}

// A browser has six connections for all its tabs; one that nobody sees needs none.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) source?.close();
  else open();
});
open();
tick();
setInterval(tick, 1000);

// --- what is clicked on ----------------------------------------------------------------------------------------------

async function explain(href) {
  const into = document.getElementById("why-body");
  const response = await fetch(`${href}?part=1`).catch(() => null);
  if (!response?.ok) { location.href = href; return; }
  into.innerHTML = await response.text();
  if (!dialog.open) dialog.showModal();
  if (history.state?.why !== href) history.pushState({ why: href }, "", href);
  into.scrollTop = 0;
}

// The back button closes what a click has opened, and closing goes back.
dialog.addEventListener("close", () => { if (history.state?.why) history.back(); });
window.addEventListener("popstate", () => {
  if (history.state?.why) explain(history.state.why);
  else if (dialog.open) dialog.close();
});

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch { // pages without https have no clipboard of that kind
    getSelection().selectAllChildren(button.parentElement.querySelector(".id"));
    if (!document.execCommand("copy")) return; // it is marked, at least
  }
  button.textContent = words.copied;
}

async function post(button) {
  if (button.ariaBusy === "true") return;
  button.ariaBusy = "true"; // not disabled: that would take the focus away from whoever pressed a key
  const asked = button.dataset.for ? { for_s: Number(button.dataset.for), reason: "page" } : { reason: "page" };
  try {
    await call(button.dataset.post, asked);
    said.textContent = button.getAttribute("aria-label");
  } catch (error) {
    said.textContent = error.message;
    button.title = error.message;
  } finally {
    button.ariaBusy = "false";
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-why]");
  const button = event.target.closest("button[data-post]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    explain(link.getAttribute("href"));
  } else if (button) post(button);
  else if (event.target.matches("button[data-copy]")) copy(event.target);
});

// --- what is measured unasked ----------------------------------------------------------------------------------------

async function measuring() {
  if (document.hidden || lostAt) return;
  const told = await fetch("/page/measuring").catch(() => null);
  if (told?.ok) document.getElementById("measuring").textContent = await told.text();
}
measuring();
setInterval(measuring, 60_000);
