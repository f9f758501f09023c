// The Slack window's middle: a channel's messages with their threads, what was whispered, and the App Home.

import { drawBlocks } from "./blocks.js";
import { h, keep } from "./dom.js";
import { clock, mrkdwn } from "./words.js";

const NEAR_THE_END = 160;
const dismissed = new Set();
let lastWhisper = "";
let wanted = false;
let pressIn = async () => {};
let ask = async () => true;

/** `press(where, index)` does what a button does; `confirm(dialog)` asks once more. */
export function startChannel({ press, confirm }) {
  pressIn = press;
  ask = confirm;
}

/** Whoever sent an event wants to see its card, also where an older one has grown below the edge. */
export function expectNewest() {
  wanted = true;
}

/** Draw one channel into `list`, and keep the reader's place. */
export function drawChannel(list, slack, channel) {
  const whispers = slack.ephemerals.filter((each) => each.channel === channel.id && !dismissed.has(each.ts));
  const loose = whispers.filter((each) => !channel.messages.some((message) => message.ts === each.thread_ts));
  const items = [
    ...channel.messages.map((message) => ({
      message,
      replies: message.replies,
      whispers: whispers.filter((each) => each.thread_ts === message.ts),
    })),
    ...loose.map((message) => ({ message, whispered: true, replies: [], whispers: [] })),
  ].sort((one, other) => Number(one.message.ts) - Number(other.message.ts));
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_THE_END;
  const sameChannel = list.dataset.channel === channel.id;
  if (!sameChannel) list.replaceChildren();
  list.dataset.channel = channel.id;
  const before = list.childElementCount;
  keep(list, items, (item) => item.message.ts, drawItem, flash);
  const grown = list.childElementCount > before;
  if (!sameChannel || ((atEnd || wanted) && grown)) showNewest(list);
  if (grown) wanted = false;
  showWhisper(list, whispers.at(-1)?.ts ?? "");
}

/** What was just said to this person alone answers what they did: it must not stay below the edge. */
function showWhisper(list, ts) {
  if (ts <= lastWhisper) return;
  lastWhisper = ts;
  list.querySelector(`[data-whisper="${ts}"]`)?.scrollIntoView({ block: "nearest" });
}

/** The newest message from its top, if it is taller than the window; else the end. */
function showNewest(list) {
  const newest = list.lastElementChild;
  if (!newest) return;
  const tall = newest.offsetHeight > list.clientHeight;
  list.scrollTop = tall ? newest.offsetTop - 8 : list.scrollHeight;
}

function flash(node) {
  node.classList.add("changed");
}

function drawItem({ message, replies, whispers, whispered }) {
  const thread = [...replies, ...whispers].sort((one, other) => Number(one.ts) - Number(other.ts));
  return h(
    "li",
    { class: `message ${whispered ? "whispered" : ""}`, "data-whisper": whispered && message.ts },
    h("div", { class: "avatar", "aria-hidden": "true" }, "st"),
    h(
      "div",
      { class: "content" },
      whispered && onlyYou(message),
      h("div", { class: "by" }, h("b", {}, "Stet"), h("span", { class: "app" }, "APP"), clock(Number(message.ts))),
      body(message),
      thread.length > 0 &&
        h(
          "div",
          { class: "thread" },
          thread.map((reply) =>
            h(
              "div",
              whispers.includes(reply) ? { class: "reply whispered", "data-whisper": reply.ts } : { class: "reply" },
              whispers.includes(reply) && onlyYou(reply),
              h("div", { class: "by" }, h("b", {}, "Stet"), clock(Number(reply.ts))),
              body(reply),
            ),
          ),
        ),
    ),
  );
}

function onlyYou(message) {
  const hide = h("button", { type: "button", class: "plain" }, "Dismiss");
  hide.addEventListener("click", () => {
    dismissed.add(message.ts);
    hide.closest(".whispered").remove();
  });
  return h("div", { class: "only-you" }, "👁 Only visible to you", hide);
}

function body(message) {
  if (!message.blocks) return h("div", { class: "para" }, mrkdwn(message.text));
  const press = (index) => pressIn({ act: "click", channel: message.channel, ts: message.ts }, index);
  return h("div", { class: "blocks" }, drawBlocks(message.blocks, { press, confirm: ask }));
}

/** Draw the App Home into `list`. */
export function drawHome(list, home) {
  if (list.dataset.channel !== "home") list.replaceChildren();
  list.dataset.channel = "home";
  const items = [home ?? { id: "empty" }];
  keep(list, items, (item) => item.id, (item) =>
    item.blocks
      ? h(
          "li",
          { class: "home blocks" },
          drawBlocks(item.blocks, { press: (index) => pressIn({ act: "press_home" }, index), confirm: ask }),
        )
      : h("li", { class: "empty" }, "Stet has not drawn a Home for this person."),
  );
}
