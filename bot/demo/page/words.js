// Slack's inline texts: dates in the reader's zone, mentions, links, emoji, rich text and mrkdwn.

import { h } from "./dom.js";

const DAY = 86_400_000;
const SAFE_LINK = /^(https?|mailto):/i;
const names = { users: {}, groups: {}, channels: {} };
const SHORTCODES = { white_check_mark: "✅", x: "❌", warning: "⚠️", bell: "🔔", hourglass: "⌛", eyes: "👀" };

/** Tell who and what the ids are. */
export function learnNames(slack) {
  names.users = slack.users;
  names.channels = slack.named;
}

/** `@Name` for a user id. */
export function nameOf(user) {
  return names.users[user] ?? user;
}

function day(date, options) {
  const today = new Date();
  const distance = Math.round((new Date(date).setHours(0, 0, 0, 0) - today.setHours(0, 0, 0, 0)) / DAY);
  const word = { "-1": "Yesterday", 0: "Today", 1: "Tomorrow" }[distance];
  return options.pretty && word ? word : date.toLocaleDateString(undefined, options.shape);
}

const LONG = { weekday: "long", month: "long", day: "numeric", year: "numeric" };
const SHORT = { month: "short", day: "numeric", year: "numeric" };
const NORMAL = { month: "long", day: "numeric", year: "numeric" };
const TOKENS = {
  date_num: (date) => date.toISOString().slice(0, 10),
  date: (date) => day(date, { shape: NORMAL }),
  date_slash: (date) => date.toLocaleDateString(undefined, { dateStyle: "short" }),
  date_short: (date) => day(date, { shape: SHORT }),
  date_long: (date) => day(date, { shape: LONG }),
  date_pretty: (date) => day(date, { shape: NORMAL, pretty: true }),
  date_short_pretty: (date) => day(date, { shape: SHORT, pretty: true }),
  date_long_pretty: (date) => day(date, { shape: LONG, pretty: true }),
  date_long_full: (date) => day(date, { shape: LONG }),
  day_divider_pretty: (date) => day(date, { shape: LONG, pretty: true }),
  time: (date) => date.toLocaleTimeString(undefined, { timeStyle: "short" }),
  time_secs: (date) => date.toLocaleTimeString(undefined, { timeStyle: "medium" }),
  ago: (date) => ago(date),
};

function ago(date) {
  const seconds = Math.round((date - Date.now()) / 1000);
  const minutes = Math.round(seconds / 60);
  const words = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  if (Math.abs(seconds) < 60) return words.format(seconds, "second");
  if (Math.abs(minutes) < 60) return words.format(minutes, "minute");
  if (Math.abs(minutes) < 2880) return words.format(Math.round(minutes / 60), "hour");
  return words.format(Math.round(minutes / 1440), "day");
}

function formatted(date, format) {
  return format.replace(/\{(\w+)\}/g, (whole, token) => (TOKENS[token] ? TOKENS[token](date) : whole));
}

/** A Slack date: the format's tokens in the reader's zone. */
export function dateNode(seconds, format, fallback) {
  const date = new Date(seconds * 1000);
  const running = format.includes("{ago}") ? { "data-format": format } : {};
  return h("time", { datetime: date.toISOString(), title: fallback || date.toString(), ...running }, formatted(date, format));
}

/** Let the dates that say how far off they are say it anew. */
export function goOn() {
  for (const node of document.querySelectorAll("time[data-format]")) {
    const text = formatted(new Date(node.dateTime), node.dataset.format);
    if (node.textContent !== text) node.textContent = text;
  }
}

/** When something happened, short. */
export function clock(seconds) {
  return dateNode(seconds, "{time}");
}

function link(url, text) {
  if (!SAFE_LINK.test(url)) return h("span", {}, text || url);
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text || url);
}

function mention(text) {
  return h("span", { class: "mention" }, text);
}

function styled(node, style = {}) {
  if (style.code) node = h("code", {}, node);
  if (style.bold) node = h("strong", {}, node);
  if (style.italic) node = h("em", {}, node);
  if (style.strike) node = h("s", {}, node);
  if (style.underline) node = h("u", {}, node);
  return node;
}

function inline(element) {
  switch (element.type) {
    case "text":
      return styled(document.createTextNode(element.text), element.style);
    case "link":
      return styled(link(element.url, element.text), element.style);
    case "user":
      return mention(`@${nameOf(element.user_id)}`);
    case "usergroup":
      return mention(`@${element.usergroup_id.replace(/^S0/, "").toLowerCase()}`);
    case "channel":
      return mention(`#${names.channels[element.channel_id] ?? element.channel_id}`);
    case "broadcast":
      return mention(`@${element.range}`);
    case "emoji":
      return h("span", {}, emoji(element.name, element.unicode));
    case "date":
      return styled(dateNode(element.timestamp, element.format, element.fallback), element.style);
    default:
      return h("span", { class: "odd" }, `[${element.type}]`);
  }
}

function emoji(name, unicode) {
  if (unicode) return String.fromCodePoint(...unicode.split("-").map((each) => parseInt(each, 16)));
  return SHORTCODES[name] ?? `:${name}:`;
}

/** A rich_text block. */
export function richText(block) {
  return h("div", { class: "rich" }, block.elements.map(richPart));
}

function richPart(part) {
  const inside = () => part.elements.map(inline);
  switch (part.type) {
    case "rich_text_quote":
      return h("blockquote", {}, inside());
    case "rich_text_preformatted":
      return h("pre", {}, inside());
    case "rich_text_list": {
      const items = part.elements.map((item) => h("li", {}, item.elements.map(inline)));
      const start = part.offset ? part.offset + 1 : null;
      const attributes = { class: `indent-${Math.min(part.indent ?? 0, 4)}`, start };
      return h(part.style === "ordered" ? "ol" : "ul", attributes, items);
    }
    default:
      return h("div", { class: "para" }, inside());
  }
}

const MARKS = { "*": "strong", _: "em", "~": "s" };
const PIECE = /```([\s\S]+?)```|`([^`\n]+)`|<([^<>\n]+)>|(?<![\w*_~])([*_~])(?=\S)((?:(?!\4)[^\n])*?\S)\4(?![\w*_~])/;

function plain(text) {
  return text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
}

function angled(inside) {
  const [target, label] = [inside.split("|")[0], inside.split("|").slice(1).join("|")];
  if (target.startsWith("@")) return mention(`@${nameOf(target.slice(1))}`);
  if (target.startsWith("#")) return mention(`#${label || names.channels[target.slice(1)] || target.slice(1)}`);
  const date = target.match(/^!date\^(\d+)\^([^^]*)/);
  if (date) return dateNode(Number(date[1]), plain(date[2]), plain(label));
  if (target.startsWith("!subteam^")) return mention(label || `@${target.slice(9).replace(/^S0/, "").toLowerCase()}`);
  if (target.startsWith("!")) return mention(`@${target.slice(1)}`);
  return link(plain(target), plain(label));
}

/** Slack's own mark-up language, of which only our own program may be the author. */
export function mrkdwn(text) {
  const nodes = [];
  for (let rest = text; rest; ) {
    const found = rest.match(PIECE);
    if (!found) {
      nodes.push(plain(rest));
      break;
    }
    if (found.index) nodes.push(plain(rest.slice(0, found.index)));
    if (found[1]) nodes.push(h("pre", {}, plain(found[1])));
    else if (found[2]) nodes.push(h("code", {}, plain(found[2])));
    else if (found[3]) nodes.push(angled(found[3]));
    else nodes.push(h(MARKS[found[4]], {}, mrkdwn(found[5])));
    rest = rest.slice(found.index + found[0].length);
  }
  return nodes;
}

/** A text object: plain_text or mrkdwn. */
export function textObject(text) {
  return text.type === "mrkdwn" ? mrkdwn(text.text) : [text.text];
}
