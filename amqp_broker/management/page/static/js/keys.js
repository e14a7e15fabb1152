// Keyboard shortcuts: `g` and a letter open a page; other keys press buttons.

import { h } from "./dom.js";
import { sheet } from "./form.js";

const isTyping = (event) => /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;

const isPage = (element) => element === document.body || element.id === "main";

export function install({ addresses, refresh, theme, pause, help }) {
  let isGoing = false;
  const go = new Map(addresses);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event)) {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    if (isGoing) {
      isGoing = false;
      if (go.has(event.key)) location.hash = `#/${go.get(event.key)}`;
      return;
    }
    const press = (selector) => document.querySelector(`#main ${selector}`)?.click();
    const focus = (selector) => document.querySelector(`#main ${selector}`)?.focus();
    const actions = {
      g: () => (isGoing = true),
      r: refresh,
      t: theme,
      "?": help,
      n: () => press("[data-key=n]"),
      "/": () => focus("input[type=search]"),
      j: () => focus("tbody a, tbody button"),
      ArrowDown: () => isPage(event.target) && focus("tbody a, tbody button"),
      "[": () => press("[data-key=previous]"),
      "]": () => press("[data-key=next]"),
    };
    if (event.key === " " && isPage(event.target)) actions[" "] = pause;
    const action = actions[event.key];
    if (!action) return;
    if (event.key !== "ArrowDown") event.preventDefault();
    action();
  });
}

export function shortcuts(navigation) {
  const rows = [
    ...navigation.flatMap(([, entries]) => entries.map(([, label, , key]) => [["g", key], label])),
    [["/"], "Filter or search"],
    [["j"], "Enter the list; ↑ ↓ select a row, Enter opens it"],
    [["[", "]"], "Previous page, next page"],
    [["n"], "Add an object to the list"],
    [["r"], "Refresh"],
    [["space"], "Pause and resume updates"],
    [["t"], "Light or dark"],
    [["Esc"], "Close a dialog, leave a field"],
  ];
  sheet(
    "Keys",
    h("dl", { class: "keys" }, rows.map(([keys, label]) => h("div", null, h("dt", null, keys.map((key) => h("kbd", null, key))), h("dd", null, label)))),
  );
}
