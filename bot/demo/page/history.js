// The pane with a key's history: what Stet itself answers to GET /runs.

import { h, say } from "./dom.js";
import { dateNode, nameOf } from "./words.js";

// Names and digests are for machines: they stand in the JSON below the timeline.
const FOR_MACHINES = /(_id|_hash|_key|_version|fingerprint|release)$/;
let key = "";
let drawn = "";

/** Choose the key to show. */
export function chooseKey(name) {
  key = name;
  drawn = "";
  document.getElementById("history-key").value = name;
  return loadHistory();
}

/** Ask again, and draw if anything is different. */
export async function loadHistory() {
  if (!key) return;
  const asked = key;
  let found;
  try {
    found = await (await fetch(`/api/history?key=${encodeURIComponent(asked)}`)).json();
  } catch {
    return;
  }
  const now = JSON.stringify(found);
  if (asked !== key || now === drawn) return;
  drawn = now;
  document.getElementById("history").replaceChildren(...(found.run ? drawRun(found) : [h("p", { class: "soft" }, found.detail ?? found.message ?? "")]));
}

/** The keys that were sent, for the box. */
export function offerKeys(posted) {
  const list = document.getElementById("known-keys");
  const keys = [...new Set(posted.map((each) => each.key))];
  if (list.dataset.keys === keys.join()) return;
  list.dataset.keys = keys.join();
  if (!key && keys.length) chooseKey(keys[0]);
  list.replaceChildren(...keys.map((each) => h("option", { value: each })));
}

function drawRun(found) {
  const facts = [
    ["state", found.state],
    ["outcome", found.outcome ?? "none yet"],
    ["entity", found.run.entity],
    ["version", found.run.source_version],
    found.draft && ["draft", `${found.draft.status}, revision ${found.draft.revision}`],
    found.run.failure && ["failure", String(found.run.failure)],
  ].filter(Boolean);
  return [
    h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    found.effects.length > 0 && h("ul", { class: "chips" }, found.effects.map(effectChip)),
    h("ol", { class: "timeline" }, found.audit.map(entry)),
    h("details", {}, h("summary", {}, "Everything, as JSON"), h("pre", {}, JSON.stringify(found, null, 1))),
  ].filter(Boolean);
}

function effectChip(effect) {
  return h(
    "li",
    { class: effect.state },
    `${effect.effect_type}: ${effect.state}`,
    effect.provider_id && h("span", { class: "soft" }, ` ${effect.provider_id}`),
  );
}

function entry(line) {
  const seconds = Date.parse(line.at) / 1000;
  return h(
    "li",
    {},
    h("div", {}, h("b", {}, line.action.replaceAll("_", " ")), h("span", { class: "soft" }, ` by ${actor(line.actor)}`)),
    h("div", { class: "small" }, dateNode(seconds, "{time_secs}"), line.detail && brief(line.detail)),
  );
}

function actor(name) {
  const parts = name.split(":");
  return parts[0] === "slack" ? nameOf(parts.at(-1)) : name.replace(/^source:/, "");
}

function brief(detail) {
  const parts = Object.entries(detail).filter(([name, value]) => !FOR_MACHINES.test(name) && ["string", "number", "boolean"].includes(typeof value));
  if (detail.source_version) parts.push(["version", detail.source_version]);
  const text = parts.map(([name, value]) => `${name.replaceAll("_", " ")} ${shorten(String(value))}`).join(", ");
  return text && ` · ${text.length > 180 ? `${text.slice(0, 180)}…` : text}`;
}

function shorten(text) {
  return text.length > 34 ? `${text.slice(0, 12)}…` : text;
}

/** The placeholder before anything was sent. */
export function emptyHistory() {
  say(document.getElementById("history"), "Send an event, or press a key in the outside world.");
}
