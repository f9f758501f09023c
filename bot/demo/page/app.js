// The page of the demo: one picture, asked for again and again while somebody looks.

import { drawChannel, drawHome, expectNewest, startChannel } from "./channel.js";
import { h, post, toast } from "./dom.js";
import { chooseKey, emptyHistory, loadHistory, offerKeys } from "./history.js";
import { confirmDialog, drawModal, startModal } from "./modal.js";
import { buildControls, drawMoods, drawPosted, drawStrip, drawWorld } from "./panes.js";
import { goOn, learnNames } from "./words.js";

const EVERY_MS = 400;
const HOME = "home";
const WIDE = matchMedia("(min-width: 900px)");
const $ = (id) => document.getElementById(id);
const self = { user: "U0ALICE", tab: "C0REVIEW", seen: "", read: {}, failures: 0, roles: {} };
let state = null;

async function look() {
  const asked = self.user;
  const seen = state && state.user === asked ? state.version : "";
  let answer;
  try {
    answer = await fetch(`/api/state?user=${asked}&seen=${encodeURIComponent(seen)}`);
    self.failures = 0;
  } catch {
    self.failures += 1;
    $("gone").hidden = self.failures < 3;
    return;
  }
  $("gone").hidden = true;
  if (answer.status !== 200 || asked !== self.user) return;
  state = { ...(await answer.json()), user: asked };
  draw();
}

function draw() {
  if (!state) return;
  learnNames(state.slack);
  drawPeople();
  drawTabs();
  drawMiddle();
  drawModal(state.slack.views);
  drawStrip(state);
  drawMoods(state.moods);
  drawPosted(state.posted, showKey);
  drawWorld(state.world, showKey);
  offerKeys(state.posted);
  loadHistory();
}

function drawMiddle() {
  const channel = state.slack.channels.find((each) => each.id === self.tab);
  const list = $("messages");
  if (self.tab === HOME) drawHome(list, state.slack.home);
  else if (channel) drawChannel(list, state.slack, channel);
  $("first-hint").hidden = self.tab !== "C0REVIEW" || !channel || channel.messages.length > 0;
  $("slash-form").hidden = self.tab === HOME;
  if (channel) self.read[channel.id] = newestIn(channel);
}

function newestIn(channel) {
  return channel.messages.at(-1)?.ts ?? "";
}

function drawTabs() {
  const tabs = [...state.slack.channels.map((each) => ({ id: each.id, name: each.is_im ? `@ ${each.name}` : `# ${each.name}` })), { id: HOME, name: "App Home" }];
  const news = new Set(state.slack.channels.filter((each) => newestIn(each) > (self.read[each.id] ?? "")).map((each) => each.id));
  const nav = $("tabs");
  const now = JSON.stringify([tabs, self.tab, [...news]]);
  if (nav.dataset.now === now) return;
  const focused = nav.contains(document.activeElement) ? document.activeElement.dataset.tab : null;
  nav.dataset.now = now;
  nav.replaceChildren(
    ...tabs.map(({ id, name }) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          "aria-selected": String(id === self.tab),
          "data-tab": id,
          class: news.has(id) && id !== self.tab ? "news" : "",
          onclick: () => openTab(id),
        },
        name,
      ),
    ),
  );
  if (focused) nav.querySelector(`[data-tab="${focused}"]`)?.focus();
}

function openTab(id) {
  self.tab = id;
  drawTabs();
  drawMiddle();
  if (id === HOME) act("home", {});
}

function drawPeople() {
  const select = $("who");
  if (select.options.length || !state.slack.users) return;
  for (const [user, role] of Object.entries(self.roles)) {
    select.append(h("option", { value: user }, `${state.slack.users[user] ?? user} · ${role}`));
  }
  select.value = self.user;
}

/** Act as the chosen person; say what Slack itself would say when the bot does not answer. */
async function act(name, more, { quiet = false } = {}) {
  const answer = await post(`/_stand_in/${name}`, { user: self.user, ...more });
  if (answer.done === false && !quiet) toast(answer.why);
  else if (answer.kept === false) {
    const why = answer.status ? `status ${answer.status}` : "no answer within three seconds";
    toast(`Slack would show an error here: Stet gave ${why}.`);
  }
  await look();
  return answer;
}

function showKey(key, { open }) {
  chooseKey(key);
  if (open) choosePane("history-pane");
}

function choosePane(id) {
  document.body.dataset.pane = id;
  for (const button of $("bottom").children) button.setAttribute("aria-current", String(button.dataset.pane === id));
  if (id === "slack-pane" && state) {
    $("messages").dataset.channel = ""; // What was drawn unseen could not be scrolled to its newest.
    drawMiddle();
  }
  if (WIDE.matches) $(id).scrollIntoView({ block: "nearest", behavior: "smooth" });
}

function startSlash() {
  const box = $("slash");
  $("slash-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = box.value.trim().replace(/^\/stet\b\s*/, "");
    box.value = "";
    await act("slash", { text, channel: self.tab });
    const list = $("messages");
    list.scrollTop = list.scrollHeight;
  });
  for (const chip of document.querySelectorAll("[data-slash]")) {
    chip.addEventListener("click", () => {
      box.value = chip.dataset.slash;
      box.focus();
    });
  }
}

function startTheme() {
  const stored = localStorage.getItem("theme");
  if (stored) document.documentElement.dataset.theme = stored;
  $("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    const seesDark = document.documentElement.dataset.theme ? dark : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = seesDark ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
  });
}

async function beat() {
  if (!document.hidden) await look();
  setTimeout(beat, EVERY_MS);
}

async function start() {
  startTheme();
  const choices = await (await fetch("/api/choices")).json();
  self.roles = Object.fromEntries(choices.people.map((each) => [each.id, each.role]));
  self.user = localStorage.getItem("who") in self.roles ? localStorage.getItem("who") : self.user;
  const after = () => {
    expectNewest();
    return look();
  };
  buildControls(choices, { after, show: showKey });
  startChannel({ press: ({ act: name, ...where }, button) => act(name, { ...where, button }), confirm: confirmDialog });
  startModal(act);
  startSlash();
  emptyHistory();
  $("who").addEventListener("change", async () => {
    self.user = $("who").value;
    localStorage.setItem("who", self.user);
    await look();
    if (self.tab === HOME) act("home", {});
  });
  $("history-key").addEventListener("change", () => chooseKey($("history-key").value.trim()));
  for (const button of $("bottom").children) button.addEventListener("click", () => choosePane(button.dataset.pane));
  choosePane(WIDE.matches ? "slack-pane" : "send-pane");
  beat();
}

document.addEventListener("visibilitychange", () => document.hidden || look());
setInterval(() => document.hidden || loadHistory(), 3000);
setInterval(goOn, 1000);
start();
