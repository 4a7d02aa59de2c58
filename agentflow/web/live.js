// Keeps the page as its files are: parts arrive as HTML by id, and only what differs is touched.
"use strict";

const byId = (id) => document.getElementById(id);

// ---- parts

const CONTAINER = ".turns"; // parts of their own live in it
const received = new Set(); // ids of the parts

function findContainer(id) {
  const turn = /^turn-(\d+)-\d+$/.exec(id);
  return turn && byId(`turns-${turn[1]}`);
}

function build(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content.firstElementChild;
}

function takeAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    const isOpened = name === "open" && old.matches("details"); // the reader's own choice
    if (!isOpened && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    const isClosed = name === "open" && old.matches("details");
    if (!isClosed && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

// Makes an element equal to a fresh one, and keeps those of its children that need no change.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id || old.nodeType !== Node.ELEMENT_NODE) {
    old.replaceWith(fresh);
    return;
  }
  takeAttributes(old, fresh);
  if (old.matches(CONTAINER)) return;
  const children = [...fresh.childNodes];
  children.forEach((child, place) => {
    const present = old.childNodes[place];
    if (child.id && received.has(child.id) && present?.id === child.id) return; // it comes by itself
    if (!present) old.append(child);
    else if (child.id && present.id !== child.id) {
      const moved = [...old.children].find((one) => one.id === child.id);
      if (!moved) present.before(child);
      else {
        present.before(moved);
        morph(moved, child);
      }
    } else morph(present, child);
  });
  while (old.childNodes.length > children.length) old.lastChild.remove();
}

// Puts a section of the page before the first that comes after it.
function insert(root, id, fresh) {
  const order = root.dataset.order.split(" ");
  const later = order.slice(order.indexOf(id) + 1).map(byId).find((one) => one?.parentElement === root);
  if (later && order.includes(id)) later.before(fresh);
  else root.append(fresh);
}

function show(parts) {
  for (const [id, html] of Object.entries(parts)) {
    const old = byId(id);
    const fresh = html ? build(html) : null;
    received.add(id);
    if (!fresh) old?.remove();
    else if (old) morph(old, fresh);
    else if (findContainer(id)) findContainer(id).append(fresh);
    else insert(byId("parts"), id, fresh);
  }
}

// ---- the stream of changes; a hidden page holds no connection

const connection = byId("connection");
let source = null;

function tell(state, text) {
  connection.dataset.state = state;
  connection.textContent = text;
}

function follow() {
  const root = byId("parts");
  if (!root || source) return;
  source = new EventSource(root.dataset.live);
  source.onopen = () => tell("live", "live");
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => {
    const isOver = source.readyState === EventSource.CLOSED;
    tell("lost", isOver ? "The server has ended: start agentflow web again" : "no connection, trying again …");
  };
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) follow();
  else if (source) {
    source.close();
    source = null;
  }
});

// ---- what a person does

const toast = byId("said");
let fading = 0;

function say(text, isBad = false) {
  toast.textContent = text;
  toast.classList.toggle("bad", isBad);
  toast.hidden = !text;
  clearTimeout(fading);
  if (!isBad) fading = setTimeout(() => say(""), 8000);
}

async function act(action, body) {
  try {
    const reply = await fetch(action, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const told = await reply.json();
    if (reply.ok) return told.said;
    say([told.error, told.hint].filter(Boolean).join("\n"), true);
  } catch {
    say("The server does not answer; nothing was decided.", true);
  }
  return null;
}

function readAnswer(field) {
  const chosen = field.querySelector("input[type=radio]:checked");
  const words = field.querySelector("[name=words]")?.value.trim() ?? "";
  if (chosen && words) return chosen.hasAttribute("data-words") ? `${chosen.value} ${words}` : words;
  return chosen ? chosen.value : words;
}

function readForm(form) {
  const values = Object.fromEntries(new FormData(form));
  switch (form.dataset.action) {
    case "answer":
      return { said: [...form.querySelectorAll("fieldset")].map(readAnswer) };
    case "say":
      return { said: [values.said] };
    default:
      return values;
  }
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.action) return;
  event.preventDefault();
  const buttons = form.querySelectorAll("button");
  buttons.forEach((button) => (button.disabled = true));
  const said = await act(form.dataset.action, readForm(form));
  buttons.forEach((button) => (button.disabled = false));
  if (said === null) return;
  form.reset();
  const place = form.querySelector("output");
  if (place) place.textContent = said;
  else say(said);
});

async function undo() {
  const plan = await act("undo", { dry_run: true });
  if (plan === null) return;
  const dialog = byId("undo");
  byId("undo-plan").textContent = plan;
  dialog.returnValue = "";
  dialog.showModal();
  dialog.onclose = async () => {
    if (dialog.returnValue !== "undo") return;
    const said = await act("undo", { dry_run: false, force: byId("undo-force").checked });
    if (said !== null) say(said);
  };
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-action]");
  if (event.target.closest("#show-keys")) byId("keys").showModal();
  if (!button) return;
  if (button.dataset.action === "undo") return undo();
  const said = await act(button.dataset.action, {});
  if (said !== null) say(said);
});

// ---- keys

const keysOn = byId("keys-on");
keysOn.checked = localStorage.getItem("keys") !== "off";
keysOn.addEventListener("change", () => localStorage.setItem("keys", keysOn.checked ? "on" : "off"));

const STOPS = "#diff tr.hunk, a.stop";

function step(way) {
  const stops = [...document.querySelectorAll(STOPS)];
  if (!stops.length) return;
  const now = stops.indexOf(document.activeElement.closest?.(STOPS));
  goTo(stops[now < 0 ? (way > 0 ? 0 : stops.length - 1) : (now + way + stops.length) % stops.length]);
}

function goTo(place) {
  if (!place) return;
  place.closest("details")?.setAttribute("open", "");
  if (!place.matches("a, input, button, [tabindex]")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
  place.scrollIntoView({ block: "nearest" });
  if (place.getBoundingClientRect().top > innerHeight * 0.7) place.scrollIntoView({ block: "start" });
}

function press(key) {
  const link = document.querySelector(`a[data-key="${CSS.escape(key)}"]`);
  if (link) return link.click();
  if (key === "?") return byId("keys").showModal();
  if (key === "n" || key === "p") return step(key === "n" ? 1 : -1);
  if (key === "s") return goTo(byId("say-text"));
  if (key === "w") return goTo(byId("waiting"));
  if (/^[1-9]$/.test(key)) goTo(document.querySelectorAll("#parts > section[id]:not([hidden])")[key - 1]);
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
  if (!keysOn.checked || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^[tunpsw?1-9]$/.test(event.key)) {
    event.preventDefault();
    press(event.key);
  }
});

if (!document.hidden) follow();
