// The page: login, navigation, and the part to show for an address.

import { isLoggedIn, logIn, logOut, get, whenLoggedOut } from "./api.js";
import { alarmBanner } from "./attention.js";
import { compatible, mark, NAME } from "./brand.js";
import { announce, h, icon, marked, put, show, text, toast } from "./dom.js";
import { form } from "./form.js";
import { duration } from "./format.js";
import { termsButton } from "./terms_button.js";
import { install, shortcuts } from "./keys.js";
import { live } from "./live.js";
import { state } from "./state.js";
import * as advice from "./pages/advice.js";
import * as channels from "./pages/channels.js";
import * as clock from "./pages/clock.js";
import * as connections from "./pages/connections.js";
import * as definitions from "./pages/definitions.js";
import * as demo from "./pages/demo.js";
import * as exchanges from "./pages/exchanges.js";
import * as featureFlags from "./pages/feature_flags.js";
import * as faults from "./pages/faults.js";
import * as flow from "./pages/flow.js";
import * as limits from "./pages/limits.js";
import * as overview from "./pages/overview.js";
import * as policies from "./pages/policies.js";
import * as queue from "./pages/queue.js";
import * as queues from "./pages/queues.js";
import * as shovels from "./pages/shovels.js";
import * as topology from "./pages/topology.js";
import * as users from "./pages/users.js";
import * as vhosts from "./pages/vhosts.js";

// Groups of the navigation: title, and entries of address, label, icon, key and required tag.
const NAVIGATION = [
  [
    "",
    [
      ["", "Overview", "M2 13V8M6 13V3M10 13V6M14 13v-3", "o"],
      ["connections", "Connections", "M6.5 9.5l3-3M5 8L3.4 9.6a2.1 2.1 0 003 3L8 11M8 5l1.6-1.6a2.1 2.1 0 013 3L11 8", "c"],
      ["channels", "Channels", "M2 4.5h12M2 8h12M2 11.5h12", "h"],
      ["exchanges", "Exchanges", "M2 8h4l6-4.5M6 8l6 4.5M6 8h7", "e"],
      ["queues", "Queues and Streams", "M2 4h3v8H2zM6.5 4h3v8h-3zM11 4h3v8h-3z", "q"],
      ["topology", "Topology", "M2 6.500h4v3H2zM10 2h4v3h-4zM10 11h4v3h-4zM6 8h2M10 3.500H8v9h2", "t"],
    ],
  ],
  [
    "Admin",
    [
      ["users", "Users", "M8 8a2.7 2.7 0 100-5.4A2.7 2.7 0 008 8zM2.5 14c.5-3 2.500-4.200 5.500-4.200s5 1.200 5.500 4.200", "u", "administrator"],
      ["vhosts", "Virtual Hosts", "M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.1M5 11h.1", "v"],
      ["policies", "Policies", "M4 2h6l3 3v9H4zM6.500 8h4M6.500 11h4", "p"],
      ["limits", "Limits", "M2.500 12a5.500 5.500 0 1111 0M8 12l2.500-4", "l"],
      ["shovels", "Shovels", "M2 5h7M6.500 2.500L9 5 6.500 7.500M14 11H7M9.500 8.500L7 11l2.500 2.500", "w", "monitoring"],
      ["features", "Feature Flags", "M4 14V2.500h8l-2 3 2 3H4", "f"],
      ["definitions", "Definitions", "M8 2v7M5 6.500l3 3 3-3M2.500 11v2.500h11V11", "d", "administrator"],
    ],
  ],
  [
    "Testing",
    [
      ["faults", "Faults", "M9 1.500L3.500 9H8l-1 5.500L12.500 7H8z", "x", "administrator"],
      ["messages", "Live Messages", "M1.5 8h3L6.5 3l3 10 2-5h3", "m", "administrator"],
      ["advice", "Advice", "M5.500 11.500a4.500 4.500 0 115 0V13h-5zM6.500 15h3", "a", "administrator"],
      ["clock", "Clock", "M8 14.500a6.500 6.500 0 100-13 6.500 6.500 0 000 13zM8 4.500V8l2.500 1.500", "k", "administrator"],
      ["demo", "Confirm Demo", "M8 1.500l5.500 2v4.500c0 3-2.500 5.300-5.500 6.500-3-1.200-5.500-3.500-5.500-6.500V3.500zM5.500 8l2 2 3.500-4", "s", "monitoring"],
    ],
  ],
];

const ROUTES = [
  [/^$/, overview.page],
  [/^connections$/, connections.list],
  [/^connections\/([^/]+)$/, connections.one],
  [/^channels$/, channels.list],
  [/^channels\/([^/]+)$/, channels.one],
  [/^exchanges$/, exchanges.list],
  [/^exchanges\/([^/]+)\/([^/]+)$/, exchanges.one],
  [/^queues$/, queues.list],
  [/^queues\/([^/]+)\/([^/]+)$/, queue.one],
  [/^topology$/, topology.page],
  [/^messages$/, flow.page],
  [/^users$/, users.list],
  [/^users\/([^/]+)$/, users.one],
  [/^vhosts$/, vhosts.list],
  [/^vhosts\/([^/]+)$/, vhosts.one],
  [/^policies$/, policies.list],
  [/^limits$/, limits.page],
  [/^clock$/, clock.page],
  [/^definitions$/, definitions.page],
  [/^shovels$/, shovels.list],
  [/^features$/, featureFlags.list],
  [/^faults$/, faults.list],
  [/^advice$/, advice.list],
  [/^demo$/, demo.page],
];

/** The navigation without the pages that the user may not open. */
const navigation = () =>
  NAVIGATION.map(([title, entries]) => [title, entries.filter(([, , , , needs]) => !needs || state.is(needs))]).filter(([, entries]) => entries.length);

const root = document.getElementById("app");
let current = null;

function loginPage() {
  current?.leave?.();
  current = null;
  live.end();
  state.user = null;
  const element = form({
    fields: [
      { name: "name", label: "Username", required: true },
      { name: "password", label: "Password", type: "password" },
    ],
    action: "Log in",
    submit: async ({ name, password }) => {
      await logIn(name, password);
      await start();
    },
  });
  element.controls.name.control.autocomplete = "username";
  element.controls.password.control.autocomplete = "current-password";
  put(root, h("main", { class: "login" }, h("div", { class: "card" }, mark(), h("h1", null, NAME), compatible(), element)));
  element.controls.name.control.focus();
}

async function start() {
  try {
    state.user = await get("/api/whoami");
  } catch (error) {
    if (error.status === 401) {
      logOut();
    } else {
      toast(error.message, "error");
      setTimeout(start, 2000);
    }
    return;
  }
  live.start();
  frame();
  await state.loadVhosts().catch(() => {});
  window.dispatchEvent(new Event("vhostschange"));
  route();
}

const links = new Map();
// On a narrow screen, the button that shows the pages. It has the name of the one that is open.
const menu = h("button", { type: "button", class: "menu", "aria-expanded": "false", "aria-controls": "pages", onclick: () => unfold(menu.getAttribute("aria-expanded") !== "true") }, icon("M2 4h12M2 8h12M2 12h12"), h("span"));
const unfold = (isOpen) => menu.setAttribute("aria-expanded", String(isOpen));
const main = h("main", { id: "main", tabindex: "-1" });
let alarms = [];
let banner = alarmBanner();
let looking = null;

function frame() {
  links.clear();
  alarms = [];
  banner = alarmBanner();
  const groups = navigation().map(([title, entries]) => [
    title ? h("h2", null, title) : null,
    entries.map(([address, label, drawing, key]) => {
      const link = h("a", { href: `#/${address}`, title: `g ${key}` }, icon(drawing), h("span", null, label));
      links.set(address, link);
      return link;
    }),
  ]);
  put(
    root,
    h("a", { href: "#main", class: "skip", onclick: (event) => (event.preventDefault(), main.focus()) }, "Skip to content"),
    h("nav", { "aria-label": "Pages" }, h("a", { href: "#/", class: "brand", title: "Overview" }, mark(), h("span", { class: "name" }, NAME, compatible())), menu, h("div", { class: "pages", id: "pages" }, groups)),
    h("div", { class: "work" }, head(), banner.element, main),
  );
}

/** Show the alarms of a live update: in the banner, in the navigation, and in the title. */
function showAlarms(found = []) {
  alarms = found;
  banner.update(alarms);
  const first = links.get("");
  first?.classList.toggle("alarmed", alarms.length > 0);
  first?.setAttribute("title", alarms.length ? "g o: there is an alarm" : "g o");
  retitle();
}

const retitle = () => (document.title = marked(`${alarms.length ? "Alarm – " : ""}${current ? `${current.title} – ` : ""}${NAME}`));

function head() {
  const node = h("div", { class: "node" }, h("b"));
  const status = h("button", { type: "button", class: "live", onclick: () => live.pause(!live.isPaused) }, h("i"), h("span"));
  live.on((event, value) => {
    if (event === "overview") {
      text(node.firstChild, value.cluster_name);
      showAlarms(value.alarms);
    }
    showCondition();
  });
  // A silent broker sends no event that could say so.
  clearInterval(looking);
  looking = setInterval(showCondition, 1000);

  /** Say whether what is shown is of now. Numbers of a lost broker are grey. */
  function showCondition() {
    const silent = live.silentMs;
    const condition = !live.isOpen || silent !== null ? "lost" : live.isPaused ? "paused" : "on";
    status.dataset.state = condition;
    const lost = silent === null ? "Reconnecting" : `Reconnecting, last seen ${duration(silent)} ago`;
    text(status.lastChild, { lost, paused: "Paused", on: "Live" }[condition]);
    status.title = condition === "paused" ? "Resume updates (space)" : "Pause updates (space)";
    main.classList.toggle("lost", silent !== null);
  }

  const selector = h("select", { "aria-label": "Virtual host", id: "vhost", onchange: () => chooseVhost(selector.value) });
  const choices = () => {
    show(selector, [state.vhosts, state.vhost], () => [
      h("option", { value: "" }, "All virtual hosts"),
      state.vhosts.map((name) => h("option", { value: name, selected: name === state.vhost }, name)),
    ]);
    selector.value = state.vhost;
  };
  choices();
  addEventListener("vhostschange", choices);
  return h(
    "header",
    null,
    node,
    h("div", { class: "tools" }, [
      status,
      h("label", { class: "vhost" }, h("span", null, "Virtual host"), selector),
      h("button", { type: "button", class: "quiet square", "aria-label": "Refresh", title: "Refresh (r)", onclick: refresh }, icon("M13 8a5 5 0 11-1.600-3.700M13 2.500v3h-3")),
      h("button", { type: "button", class: "quiet square", id: "theme", "aria-label": "Light or dark", title: "Light or dark (t)", onclick: switchTheme }, icon("M8 2.500a5.500 5.500 0 100 11zM8 2.500a5.500 5.500 0 010 11")),
      h("button", { type: "button", class: "quiet square", "aria-label": "Keys", "aria-haspopup": "dialog", title: "Keys (?)", onclick: () => shortcuts(navigation()) }, "?"),
      h("button", { type: "button", class: "quiet", id: "logout", onclick: logOut, title: "Log out" }, h("span", { class: "user" }, state.user.name), icon("M6 2.500H3v11h3M7 8h6.500M11 5.500L13.500 8 11 10.500")),
    ]),
  );
}

function chooseVhost(name) {
  state.vhost = name;
  sessionStorage.setItem("vhost", name);
  route();
}

function switchTheme() {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  dispatchEvent(new Event("themechange"));
}

const refresh = () => current?.refresh?.();

function route() {
  if (!state.user) return;
  // A question belongs to the page that asked it.
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  const address = location.hash.replace(/^#\/?/, "").split("?")[0];
  const page = address.split("/")[0];
  unfold(false);
  text(menu.lastChild, links.get(page)?.textContent ?? "Pages");
  for (const [name, link] of links) {
    if (name === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  current?.leave?.();
  current = null;
  const needs = NAVIGATION.flatMap(([, entries]) => entries).find(([name]) => name === page)?.[4];
  if (needs && !state.is(needs)) {
    say(`This page requires the tag ${needs}.`);
    return;
  }
  for (const [pattern, build] of ROUTES) {
    const match = pattern.exec(address);
    if (!match) continue;
    let parts;
    try {
      parts = match.slice(1).map(decodeURIComponent);
    } catch {
      break;
    }
    current = build(...parts);
    retitle();
    put(main, current.element);
    current.element.querySelector(".title")?.append(termsButton(current.title, current.element));
    scrollTo(0, 0);
    enter();
    busyUntil(current.refresh?.(), current);
    return;
  }
  retitle();
  say("This page does not exist.");
}

let isEntered = false;

/** Say the title of a page that was just opened. The focus goes to it, unless it is outside of the page. */
function enter() {
  if (isEntered) {
    announce(current.title);
    if (document.activeElement === document.body) main.focus({ preventScroll: true });
  }
  isEntered = true;
}

/** Tell screen readers, until the first data is shown, that the page is not complete. */
async function busyUntil(loaded, page) {
  main.setAttribute("aria-busy", "true");
  await Promise.resolve(loaded).catch(() => {});
  if (current === page) main.removeAttribute("aria-busy");
}

function say(sentence) {
  main.removeAttribute("aria-busy");
  put(main, h("div", { class: "empty" }, h("h1", null, sentence), h("a", { href: "#/" }, "Overview")));
}

install({
  addresses: NAVIGATION.flatMap(([, entries]) => entries.map(([address, , , key]) => [key, address])),
  refresh,
  theme: switchTheme,
  pause: () => live.pause(!live.isPaused),
  help: () => shortcuts(navigation()),
});
addEventListener("hashchange", route);
addEventListener("pageshow", (event) => event.persisted && location.reload());
whenLoggedOut(loginPage);
live.on((event, value) => {
  if (event === "topology" && value.changed.includes("vhost")) state.loadVhosts().then(() => dispatchEvent(new Event("vhostschange")), () => {});
});
if (isLoggedIn()) start();
else loginPage();
