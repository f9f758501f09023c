// Everything beside Slack: sending events, trouble, the outside world, the header's counts.

import { h, keep, post, say, toast } from "./dom.js";
import { clock } from "./words.js";

const HEADS = new Set(["subject", "title"]);
const WORD = { 0: "no answer", 200: "OK", 202: "Accepted", 409: "Conflict", 422: "Invalid", 429: "Too many", 503: "Away" };

/** Build the buttons and the switches once. `after()` looks at once what has changed; `show(key)` opens a history. */
export function buildControls(choices, { after, show }) {
  const buttons = document.getElementById("event-buttons");
  for (const { id, label, hint } of choices.buttons) {
    const button = h("button", { type: "button", title: hint, class: id === "ticket" ? "primary" : "", "data-button": id }, label);
    button.addEventListener("click", async () => {
      button.disabled = true;
      const answer = await post("/api/event", { button: id });
      button.disabled = false;
      if (answer.why) toast(answer.why);
      else show(answer.key, { open: false });
      await after();
    });
    const explain = () => say(document.getElementById("event-hint"), hint);
    button.addEventListener("mouseenter", explain);
    button.addEventListener("focus", explain);
    buttons.append(button);
  }
  buildMoods("model", choices.model_moods, after);
  buildMoods("world", choices.world_moods, after);
}

function buildMoods(whose, moods, after) {
  const select = document.getElementById(`${whose}-mood`);
  select.append(...moods.map((mood) => h("option", { value: mood.id }, mood.id)));
  select.addEventListener("change", async () => {
    await post("/api/mood", { whose, mood: select.value });
    await after();
  });
  select.hints = Object.fromEntries(moods.map((mood) => [mood.id, mood.hint]));
}

/** What n8n saw for each event, the newest first. */
export function drawPosted(posted, show) {
  keep(
    document.getElementById("posted"),
    posted,
    (each) => String(each.number),
    (each) =>
      h(
        "li",
        {},
        h(
          "details",
          {},
          h(
            "summary",
            {},
            h("span", { class: `status s${String(each.status)[0]}` }, each.status || "—"),
            h("span", { class: "what" }, each.label, h("span", { class: "soft" }, ` ${wordOf(each)}`)),
            h("span", { class: "soft" }, `${each.ms} ms`),
          ),
          h("pre", {}, JSON.stringify(each.answer, null, 1)),
          h("button", { type: "button", class: "plain", onclick: () => show(each.key, { open: true }) }, "History of this key"),
        ),
      ),
  );
}

function wordOf(each) {
  return each.answer?.status && typeof each.answer.status === "string" ? each.answer.status : (WORD[each.status] ?? "");
}

/** Both switches as they stand. */
export function drawMoods(moods) {
  for (const [whose, mood] of Object.entries(moods)) {
    const select = document.getElementById(`${whose}-mood`);
    if (document.activeElement !== select) select.value = mood;
    select.classList.toggle("bad", mood !== "behaves");
    say(document.getElementById(`${whose}-hint`), select.hints?.[mood] ?? "");
  }
}

/** What the outside world received: one entry an effect. */
export function drawWorld(world, show) {
  document.getElementById("world-empty").hidden = world.length > 0;
  keep(document.getElementById("world"), world, (each) => each.id, (each) => (each.resume ? resumed(each, show) : effect(each, show)));
}

function effect(each, show) {
  const { body } = each;
  // JSON sorts its names; a person reads the short line before the long text.
  const parts = Object.entries(body.output ?? {})
    .filter(([, value]) => typeof value === "string")
    .sort(([one], [other]) => (HEADS.has(other) ? 1 : 0) - (HEADS.has(one) ? 1 : 0));
  return h(
    "li",
    { class: "received" },
    h("div", { class: "top" }, h("b", {}, body.recipient ?? each.path), count(each)),
    h("dl", {}, parts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h(
      "div",
      { class: "small" },
      h("span", {}, `${each.path.split("/").at(-1)} · `),
      clock(each.at),
      each.provider_id && ` · id ${each.provider_id}`,
      each.signed !== null && (each.signed ? " · signature valid" : " · NOT SIGNED"),
      each.look_ups > 0 && ` · asked after ${times(each.look_ups)}`,
    ),
    keyLine(each.key, show),
  );
}

function resumed(each, show) {
  return h(
    "li",
    { class: "received resume" },
    h(
      "div",
      { class: "top" },
      h("span", {}, "waiting execution told: ", h("b", {}, each.body.outcome ?? "?")),
      each.tries > 1 && h("span", { class: "soft" }, times(each.tries)),
    ),
    keyLine(each.key, show),
  );
}

function times(number) {
  return number === 1 ? "once" : number === 2 ? "twice" : `${number} times`;
}

function count(each) {
  const text = each.done === 0 ? "not done" : `done ${times(each.done)}`;
  const tries = each.tries > each.done ? `, ${each.tries} ${each.tries === 1 ? "try" : "tries"}` : "";
  return h("span", { class: `times ${each.done > 1 ? "twice" : each.done === 1 ? "once" : ""}` }, text + tries);
}

function keyLine(key, show) {
  if (!key) return null;
  return h("button", { type: "button", class: "plain key", title: "Show the history", onclick: () => show(key, { open: true }) }, key);
}

/** The strip at the top: the kill switch and what has happened. */
export function drawStrip(state) {
  const chip = document.getElementById("switch");
  chip.className = `chip ${state.switch.state}`;
  const closed = state.switch.closed.map((each) => each.scope).join(", ");
  const words = { open: "Sending: on", closed: "Sending: off", partly: `Off: ${closed}`, starting: "Starting…" };
  say(chip, words[state.switch.state] ?? state.switch.state);
  chip.title = state.switch.closed.map((each) => `${each.scope}: ${each.reason ?? "no reason given"}`).join("\n");
  const { counts } = state;
  const shown = [
    ["events", counts.events],
    ["duplicates", counts.duplicate],
    ["stale", counts.stale],
    ["conflicts", counts.conflict],
    ["model calls", counts.model_calls],
    ["delivered", counts.delivered],
    ["sent twice", counts.twice],
  ];
  keep(
    document.getElementById("counts"),
    shown,
    ([name]) => name,
    ([name, value]) =>
      h("div", { class: name === "sent twice" && value ? "wrong" : "" }, h("b", {}, value), h("span", {}, name)),
  );
}
