// The prompt box: one answer, or everybody's side by side; stop, thumbs, and which one is best.
import { call, events } from "./sse.js";
import { fill, span, toGo, words } from "./words.js";

const form = document.getElementById("ask-form");
const answers = document.getElementById("answers");
const told = document.getElementById("ask-told");
const stopButton = document.getElementById("stop");
const compareButton = document.getElementById("compare");
let running = null; // { controller, task }

// A machine's name as the list of machines has it; that of one that left is its id.
function nameOf(worker) {
  return worker && (document.querySelector(`[data-region="fleet"] tr[data-id="${CSS.escape(worker)}"] bdi`)?.textContent ?? worker);
}

function who(model, machine) { return model ? (machine ? `${model} @ ${machine}` : model) : "…"; }

// Why a task waits, as row_waiting.html has it: the router's own sentences are English.
function held(reason) {
  const [code, ...rest] = reason.split(":"), detail = rest.join(":").trim();
  const meaning = words[`hold_${code.trim().split("(")[0]}`] ?? code;
  if (!detail) return meaning;
  return document.documentElement.lang === "en" ? detail : `${meaning} (${detail})`;
}

class Answer {
  constructor(title) {
    this.root = document.getElementById("answer").content.firstElementChild.cloneNode(true);
    this.title(title);
    this.text = this.root.querySelector(".text");
    this.status = this.root.querySelector(".told-of");
    answers.append(this.root);
  }

  title(text) {
    const title = this.root.querySelector("h3");
    if (title.textContent !== text) title.textContent = text;
  }

  say(words) { if (this.status.textContent !== words) this.status.textContent = words; }

  token(piece) {
    if (piece.text) this.text.append(piece.text);
    if (piece.thinking) {
      const box = this.root.querySelector(".thinking");
      box.hidden = false;
      box.querySelector("p").append(piece.thinking);
    }
  }

  state(status) {
    const parts = [words[`state_${status.state}`] ?? status.state];
    if (status.position !== null) parts.push(`${words.place} ${status.position}`);
    if (status.state === "waiting") {
      parts.push(status.eta_s === null ? words.start_unknown : `${words.starts_in} ${toGo(status.eta_s)}`);
      if (status.reason) parts.push(held(status.reason));
    } else if (status.ends_s != null) {
      this.predicted = `${words.predicted} ${span(status.ran_s + status.ends_s)}`;
      parts.push(this.predicted);
    }
    this.say(parts.join(" · "));
  }

  restart(reason) {
    this.text.textContent = "";
    this.say(`${words.restarted} ${reason}`);
  }

  // `end` is that of docs/http.md; what was asked may be judged once it has an answer.
  end(end, compare, entry) {
    const { status, worker_name: on, answer } = end;
    if (answer && !this.text.textContent) this.text.textContent = answer.text;
    const parts = [words[`state_${status.state}`] ?? status.state];
    if (status.model) parts.push(who(status.model, on));
    if (status.times?.total_s != null) {
      parts.push(span(status.times.total_s) + (this.predicted && !compare ? ` (${this.predicted})` : ""));
    }
    if (status.times?.decode_s && status.tokens?.output) {
      parts.push(`${(status.tokens.output / status.times.decode_s).toFixed(1)} ${words.tokens_s}`);
    }
    if (status.state !== "completed" && (status.detail || status.reason)) parts.push(status.detail || status.reason);
    this.say(parts.join(" · "));
    this.root.dataset.state = status.state;
    const judging = this.root.querySelector(".judging");
    judging.hidden = false;
    judging.querySelector("[data-why]").href = `/page/explain/${status.task}`;
    const thumbs = [...judging.querySelectorAll("[data-rate]")];
    for (const button of thumbs) {
      button.hidden = status.state !== "completed";
      button.onclick = () => this.judge(button, { task: status.task, rating: Number(button.dataset.rate) }, thumbs);
    }
    if (status.state === "completed") this.render(status.task);
    const pick = judging.querySelector("[data-pick]");
    pick.hidden = !compare || status.state !== "completed";
    pick.onclick = () => this.judge(pick, { compare, pick: entry }, [...answers.querySelectorAll("[data-pick]")]);
  }

  // As HTML, where it was written as Markdown; words that somebody is marking stay where they are.
  async render(task) {
    const response = await fetch(`/page/answer/${task}`).catch(() => null);
    if (response?.status !== 200) return;
    const shown = this.root.querySelector(".shown"), button = this.root.querySelector("[data-written]");
    shown.innerHTML = await response.text();
    const written = (is) => {
      this.text.hidden = !is;
      shown.hidden = is;
      button.setAttribute("aria-pressed", is);
    };
    button.hidden = false;
    button.onclick = () => written(shown.hidden === false);
    written(getSelection().containsNode(this.text, true) && !getSelection().isCollapsed);
  }

  // Of `among` one counts: the latest.
  async judge(button, word, among) {
    const thanks = this.root.querySelector(".thanks");
    try {
      await call("/feedback", word);
      for (const each of among) {
        each.setAttribute("aria-pressed", each === button);
        each.closest("article").querySelector(".thanks").textContent = "";
      }
      thanks.textContent = words.thanks;
    } catch (error) {
      thanks.textContent = error.message;
    }
  }
}

function tell(text) {
  const line = document.createElement("p");
  line.textContent = text;
  told.append(line);
}

// A verdict that cannot be read is none, and no tie.
function verdict({ judge, first, second, value, words: why }, names) {
  const [one, other] = [names.get(first), names.get(second)];
  if (value === null) return `${fill(words.verdict_none, one, other)} (${why})`;
  if (value === 0.5) return `${fill(words.verdict_tie, judge, one, other)} (${why})`;
  return `${fill(words.verdict_better, judge, ...(value > 0.5 ? [one, other] : [other, one]))} (${why})`;
}

function busy(is) {
  stopButton.hidden = !is;
  compareButton.disabled = is;
  form.querySelector("[type=submit]").disabled = is;
}

async function during(work) {
  const mine = running = { controller: new AbortController(), task: null };
  answers.replaceChildren();
  told.replaceChildren();
  busy(true);
  try {
    await work(mine);
  } catch (error) {
    if (error.name !== "AbortError") tell(error instanceof TypeError ? words.failed_to_send : error.message);
  } finally {
    busy(false);
  }
}

async function ask(mine, prompt, choice) {
  const [kind, ...name] = choice.split(":");
  const asked = kind === "auto" ? { prompt } : { prompt, [kind]: name.join(":") };
  const submitted = await (await call("/route", asked)).json();
  mine.task = submitted.task;
  const decided = submitted.decision;
  const domain = submitted.domain.label === "unknown" ? words.unknown : submitted.domain.label;
  const title = (model, machine) => `${words.domain} ${domain} → ${who(model, machine)}`;
  const answer = new Answer(title(decided?.model, decided?.worker_name));
  const response = await fetch(`/task/${submitted.task}/stream`, { signal: mine.controller.signal });
  for await (const { name: event, data } of events(response)) {
    if (event === "token") answer.token(data);
    else if (event === "status") {
      answer.state(data);
      if (data.model) answer.title(title(data.model, nameOf(data.worker ?? data.expected_worker)));
    } else if (event === "restart") answer.restart(data.reason);
    else if (event === "end") {
      answer.end(data);
      if (data.worker_name) answer.title(title(data.status.model, data.worker_name));
    }
    else if (event === "error") answer.say(data.message);
  }
}

async function compare(mine, prompt, judge) {
  const response = await call("/compare", { prompt, judge }, { signal: mine.controller.signal });
  const columns = new Map(), names = new Map();
  let id = null;
  for await (const { name, data } of events(response)) {
    const column = columns.get(data.entry);
    if (name === "compare") {
      id = data.compare;
      for (const entry of data.entries) {
        const seconds = entry.predicted?.total_s != null ? ` · ${words.predicted} ${span(entry.predicted.total_s)}` : "";
        names.set(entry.entry, `${entry.entry}. ${entry.model}`);
        columns.set(entry.entry, new Answer(`${entry.entry}. ${entry.model} @ ${entry.worker_name}${seconds}`));
      }
      if (data.removed.length) {
        const list = data.removed.map((each) => `${each.model} @ ${each.worker_name}: ${each.reason}`);
        tell(`${words.left_out}: ${list.join("; ")}`);
      }
    } else if (name === "token") column.token(data);
    else if (name === "status") column.state(data);
    else if (name === "restart") column.restart(data.reason);
    else if (name === "end") column.end(data, id, data.entry);
    else if (name === "judged") tell(verdict(data, names));
    else if (name === "error") tell(data.message);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const data = new FormData(form);
  during((mine) => ask(mine, data.get("prompt"), data.get("model")));
});
compareButton.addEventListener("click", () => {
  if (!form.reportValidity()) return;
  const data = new FormData(form);
  during((mine) => compare(mine, data.get("prompt"), data.has("judge")));
});
stopButton.addEventListener("click", () => {
  if (running?.task) fetch(`/task/${running.task}`, { method: "DELETE" });
  else running?.controller.abort();
});
form.elements.prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
